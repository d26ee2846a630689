"""`tianji bench comm` as a person or a script types it."""

import json

import pytest

from tests.unit.bench.made_up import sweep_made_up
from tianji.bench import experiment, message
from tianji.cli.main import main

NAMES = {
    "size_bytes", "actors", "sample_time_s", "received", "collection_s", "messages_per_s",
    "mb_per_s", "memcpy_mb_per_s", "share_of_memcpy",
}  # fmt: skip


@pytest.fixture(autouse=True)
def in_new_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(message, "REPEAT_S", 0.001)
    return tmp_path


def comm(*words):
    return main(["bench", "comm", *words])


def told(capfd):
    """What a person reads, on one line."""
    return " ".join(capfd.readouterr().err.split())


def test_a_script_gets_one_line_with_the_names_it_relies_on(capfd):
    words = ["--size", "4096", "--actors", "2", "--sample-time", "0.001", "--messages", "50"]
    assert comm(*words, "--json") == 0
    (line,) = capfd.readouterr().out.splitlines()
    found = json.loads(line)
    assert set(found) >= NAMES
    assert (found["size_bytes"], found["actors"], found["sample_time_s"]) == (4096, 2, 0.001)
    assert found["received"] == 50


def test_a_person_gets_a_table_with_a_legend_and_nothing_on_standard_output(capfd):
    assert comm("--size", "65536", "--messages", "50") == 0
    out, err = capfd.readouterr()
    said = " ".join(err.split())
    assert out == ""
    assert "64 KB 1 0 ms" in said
    assert "10,000 in: time to collect 10,000 messages." in said


def test_a_check_says_what_it_found(capfd):
    assert comm("--size", "4096", "--messages", "50", "--check", "--copy") == 0
    assert "All 50 messages arrived complete, once and in order." in told(capfd)


@pytest.fixture
def asked(monkeypatch):
    """The points that would be measured."""
    made = []

    def note(point):
        made.append(point)
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment, "measure", note)
    return made


def test_without_more_words_a_point_is_that_of_the_paper(asked):
    assert comm("--size", "524288") == 130
    (point,) = asked
    assert (point.num_actors, point.sample_time_s, point.num_messages) == (1, 0.0, 10_000)
    assert not point.is_copying and not point.is_checking


def test_every_word_reaches_the_point(asked):
    words = ["--actors", "3", "--sample-time", "0.5", "--messages", "9", "--copy", "--check"]
    assert comm("--size", "64", *words) == 130
    (point,) = asked
    assert (point.size_bytes, point.num_actors, point.sample_time_s) == (64, 3, 0.5)
    assert point.num_messages == 9 and point.is_copying and point.is_checking


REFUSED = {
    "--size 0": "--size is 0. It must be 1 to 1073741824 bytes.",
    "--size many": "--size",
    "--size 64 --actors 0": "--actors is 0.",
    "--size 64 --sample-time -1": "--sample-time is -1.0.",
    "--size 64 --sample-time nan": "--sample-time is nan.",
    "--size 64 --messages 0": "--messages is 0.",
    "--actors 2": "need --size",
    "--sample-time 0": "need --size",
    "--messages 5": "need --size",
    "--copy": "need --size",
    "--check": "need --size",
    "--output nowhere/x.png": "--output is 'nowhere/x.png', but there is no folder 'nowhere'.",
    "--speed 9": "--speed",
}


@pytest.mark.parametrize("words", REFUSED)
def test_nonsense_gets_words_and_exit_code_2(capfd, words):
    assert comm(*words.split(), "--json") == 2
    out, err = capfd.readouterr()
    assert REFUSED[words] in json.loads(out)["error"]
    assert "Traceback" not in err


def test_a_subject_that_is_not_there(capfd):
    assert main(["bench", "tea"]) == 2
    assert "comm" in told(capfd)


@pytest.fixture
def made_up(monkeypatch):
    sweep_made_up(monkeypatch)


def test_the_sweep_draws_a_picture_and_says_where(made_up, in_new_folder, capfd):
    assert comm() == 0
    said = told(capfd)
    assert "Wrote bench-comm.png" in said
    assert "1 of 31: 4096 bytes" in said
    assert "Experience moves at up to 21.0 GB/s" in said
    assert (in_new_folder / "bench-comm.png").read_bytes().startswith(b"\x89PNG")


def test_the_sweep_as_one_line_for_scripts(made_up, in_new_folder, capfd):
    assert comm("--output", "mine.png", "--json") == 0
    found = json.loads(capfd.readouterr().out)
    assert found["picture"] == "mine.png"
    assert (in_new_folder / "mine.png").exists()
    assert set(found["points"][0]) >= NAMES
