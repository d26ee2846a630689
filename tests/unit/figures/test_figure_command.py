"""`tianji figure` as a person types it."""

import json
from pathlib import Path

import pytest

from tests.system.runs import PPO, QUIET, run
from tests.unit.figures.made_up import actors_data, sizes_data
from tianji.bench import sweep
from tianji.cli.main import main
from tianji.figures import catalogue, files
from tianji.figures.catalogue import FIGURES, Wish

PNG = b"\x89PNG"
FIRST_PAPER = [
    "equation-1", "tianji-1", *(f"tianji-{number}{part}" for number in "456" for part in "abcd"),
]  # fmt: skip


@pytest.fixture
def in_new_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def traced(in_new_folder):
    run(run="mine", engine="inline", algorithm=PPO, max_env_steps=1500,
        observe={**QUIET, "trace": True})  # fmt: skip
    return in_new_folder


def fails(capfd, *words):
    """The message of a command that is refused."""
    assert main(["figure", *words]) == 2
    return " ".join(capfd.readouterr().err.split())


def test_without_a_name_the_figures_are_listed(capfd):
    assert main(["figure", "--json"]) == 0
    listed = json.loads(capfd.readouterr().out)["figures"]
    assert [figure["name"] for figure in listed] == sorted(FIGURES)
    assert {*FIRST_PAPER, "nigt-1"} <= set(FIGURES)
    assert all(figure["about"] for figure in listed)


def test_a_run_is_drawn_into_its_folder(traced, capfd):
    assert main(["figure", "tianji-1", "--run", "mine"]) == 0
    assert capfd.readouterr().out == "runs/mine/tianji-1.png\n"
    assert (traced / "runs/mine/tianji-1.png").read_bytes().startswith(PNG)


def test_the_file_and_the_window_can_be_chosen(traced, capfd):
    words = ["--output", "my picture.png", "--from-s", "0.01", "--for-s", "0.02", "--json"]
    assert main(["figure", "tianji-1", "--run", "runs/mine", *words]) == 0
    answer = json.loads(capfd.readouterr().out)
    assert answer == {"figure": "tianji-1", "path": "my picture.png"}
    assert (traced / "my picture.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("name", FIRST_PAPER)
def test_every_figure_of_the_first_paper_is_drawn_with_what_the_paper_reports(
    in_new_folder, capfd, name
):
    assert main(["figure", name, "--json"]) == 0
    answer = json.loads(capfd.readouterr().out)
    assert (answer["figure"], answer["path"]) == (name, f"{name}.png")
    assert all(len(answer[key]) > 50 for key in ("paper", "ours", "difference"))
    assert (in_new_folder / f"{name}.png").read_bytes().startswith(PNG)


def test_people_read_the_comparison_below_the_path(in_new_folder, capfd):
    assert main(["figure", "tianji-4c"]) == 0
    out, err = capfd.readouterr()
    assert out == "tianji-4c.png\n"
    assert "4.36 times as fast as RLlib" in " ".join(err.split())


@pytest.mark.parametrize(
    ("name", "data"), [("tianji-5a", sizes_data()), ("tianji-5b", actors_data())]
)
def test_the_notes_on_the_picture_come_from_the_data_that_is_drawn(monkeypatch, name, data):
    monkeypatch.setattr(catalogue, "read_data", {name: data}.__getitem__)
    drawn = FIGURES[name].make(Wish(), Path(f"{name}.json"))
    (legend,) = drawn.figure.legends
    said = " ".join(legend.get_title().get_text().split())
    assert f"Paper: {drawn.comparison.paper}" in said
    assert f"Ours: {drawn.comparison.ours}" in said and "Made-up CPU" in drawn.comparison.ours


@pytest.mark.parametrize(
    ("name", "measure", "data"),
    [("tianji-5a", "measure_sizes", sizes_data()), ("tianji-5b", "measure_actors", actors_data())],
)
def test_our_part_is_measured_again_and_kept_beside_the_picture(
    in_new_folder, capfd, monkeypatch, name, measure, data
):
    ours = [point for point in data["points"] if point["transport"] == "tianji"]
    monkeypatch.setattr(sweep, measure, lambda: ours)
    assert main(["figure", name, "--rerun"]) == 0
    assert capfd.readouterr().out == f"{name}.png\n"
    kept = json.loads((in_new_folder / f"{name}.json").read_text())
    assert (kept["figure"], kept["points"]) == (name, ours)
    assert set(kept) == set(data)


def test_an_unknown_figure_names_those_there_are(capfd):
    assert "No figure 'tianji-99'. There are: equation-1, nigt-1, " in fails(capfd, "tianji-99")


def test_a_run_without_a_trace_says_how_to_record_one(in_new_folder, capfd):
    run(run="mine", engine="inline", algorithm=PPO, max_env_steps=100)
    text = fails(capfd, "tianji-1", "--run", "mine")
    assert "Run 'runs/mine' has no trace." in text
    assert "`tianji train PRESET --trace`; this run is over (step limit reached)." in text
    summary = in_new_folder / "runs/mine/summary.json"
    ended = json.loads(summary.read_text())
    summary.write_text(json.dumps({**ended, "stopped_because": "interrupted"}))
    assert "`tianji resume mine --trace`" in fails(capfd, "tianji-1", "--run", "mine")


def test_a_run_that_is_not_there(in_new_folder, capfd):
    assert "No run 'mine'" in fails(capfd, "tianji-1", "--run", "mine")


def test_a_part_of_a_run_asks_for_the_run(capfd):
    assert "tianji figure tianji-1 --run RUN" in fails(capfd, "tianji-1", "--from-s", "1")


def test_a_run_is_drawn_or_recorded_but_not_both(traced, capfd):
    assert "choose one" in fails(capfd, "tianji-1", "--run", "mine", "--rerun")


def test_an_option_of_another_figure_is_refused(capfd):
    assert "tianji-5a takes no --run; that is for tianji-1." in fails(
        capfd, "tianji-5a", "--run", "mine"
    )


def test_a_damaged_trace_is_named(traced, capfd):
    (traced / "runs/mine/trace.json.gz").write_bytes(b"torn")
    assert "Cannot read the trace 'runs/mine/trace.json.gz'" in fails(
        capfd, "tianji-1", "--run", "mine"
    )


def test_a_folder_that_is_not_there(traced, capfd):
    assert "Cannot write the figure 'nowhere/x.png'" in fails(
        capfd, "tianji-1", "--run", "mine", "--output", "nowhere/x.png"
    )


def test_a_format_that_nobody_knows(traced, capfd):
    assert "Cannot write the figure 'x.doc'" in fails(
        capfd, "tianji-1", "--run", "mine", "--output", "x.doc"
    )


def test_data_that_is_not_in_the_package_is_named():
    with pytest.raises(Exception, match="data of figure no-such-figure cannot be read"):
        files.read_data("no-such-figure")
