"""`tianji status`: a run as its folder tells it."""

import fcntl
import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.observe.accounts import make_plan, make_record
from tianji.checkpoint.durable import replace_json
from tianji.checkpoint.schema import folder_name
from tianji.cli.main import main
from tianji.config.files import save_config
from tianji.config.run import RunConfig
from tianji.observe.run_log import JsonLines
from tianji.observe.summary import build_summary, write_summary

CONFIG = RunConfig(algorithm="ppo")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs" / "mine"
    folder.mkdir(parents=True)
    save_config(CONFIG, folder / "config.yaml")
    replace_json(folder / "plan.json", make_plan().model_dump(mode="json"))
    return folder


def log(folder, age_s=3.0, **changes):
    """A record that is so old."""
    at = (datetime.now(UTC) - timedelta(seconds=age_s)).isoformat()
    values = {
        "time": at, "env_steps": 1000, "busy_share": {"actor-0": 0.25, "learner": 0.97},
        "activity": {"learner": "updating"}, "lag_versions": {"mean": 1.0}, "restarts": 2,
    }  # fmt: skip
    lines = JsonLines(folder / "metrics.jsonl", pytest.fail)
    lines.append(make_record(**values) | changes)
    lines.close()


def end(folder, because, cause=None, **facts):
    facts = {"env_steps": 1000, "stopped_because": because, "first_cause": cause, **facts}
    write_summary(folder, build_summary(CONFIG, folder, facts))


def ask(capfd, *words):
    """Exit code, the JSON object, and what people see, however wide their terminal is."""
    code = main(["status", *(words or ("mine",)), "--json"])
    out, err = capfd.readouterr()
    return code, json.loads(out), " ".join(err.split())


@pytest.fixture
def held(folder):
    """The run is running."""
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_a_run_that_is_running_shows_its_newest_record_and_why(folder, held, capfd):
    log(folder, version=1)
    log(folder, version=2)
    code, report, seen = ask(capfd)
    assert (code, report["state"], report["run"]) == (0, "running", "mine")
    assert report["gauges"]["version"] == 2
    assert {"rates_per_s", "busy_share", "activity", "restarts"} <= set(report["gauges"])
    assert report["critical_path"] == "learner" and report["summary"] is None
    assert 3 <= report["age_s"] < 60
    assert "mine: running. Last record" in seen and "s ago." in seen
    assert "97 % busy" in seen and "updating" in seen
    assert report["explanation"][0] in seen


def test_roles_of_a_run_that_has_ended_do_nothing_now(folder, capfd):
    log(folder)
    _, _, seen = ask(capfd)
    assert "not running" in seen and "updating" in seen, "what a lost run did last"
    end(folder, "max_env_steps")
    _, report, seen = ask(capfd)
    assert report["state"] == "finished" and "97 % busy" in seen
    assert "updating" not in seen


def test_a_run_that_has_just_begun_has_no_record_yet(folder, held, capfd):
    code, report, seen = ask(capfd)
    assert (code, report["state"], report["gauges"]) == (0, "running", {})
    assert (report["critical_path"], report["age_s"]) == (None, None)
    assert "running. No record yet." in seen


@pytest.mark.parametrize(
    ("because", "state"),
    [
        ("target_reached", "finished"),
        ("max_env_steps", "finished"),
        ("max_wall", "finished"),
        ("interrupted", "interrupted"),
        ("failed", "failed"),
    ],
)
def test_a_run_that_ended_says_how(folder, capfd, because, state):
    log(folder)
    (folder / ".lock").touch()
    end(folder, because, "actor-0: it broke")
    _, report, seen = ask(capfd)
    assert report["state"] == state and report["summary"]["stopped_because"] == because
    words = {"target_reached": "target reached", "max_env_steps": "step limit reached",
             "max_wall": "time limit reached", "interrupted": "interrupted"}  # fmt: skip
    assert f"{state} ({words.get(because, 'actor-0: it broke')})." in seen


def test_the_explanation_of_a_run_that_ended_is_that_of_the_whole_run(folder, capfd):
    log(folder)
    end(folder, "max_wall", critical_path="actors", explanation=["The actors were slow."])
    _, report, seen = ask(capfd)
    assert (report["critical_path"], report["explanation"]) == (
        "actors", ["The actors were slow."]
    )  # fmt: skip
    assert "The actors were slow." in seen


def test_a_run_that_was_killed_is_lost(folder, capfd):
    log(folder, age_s=7300)
    (folder / ".lock").touch()
    _, report, seen = ask(capfd)
    assert report["state"] == "lost" and report["gauges"]["env_steps"] == 1000
    assert "not running" in seen and "Last record 2.0 h ago" in seen


def test_a_run_that_was_killed_before_its_first_checkpoint_is_not_offered_a_resume(folder, capfd):
    _, _, seen = ask(capfd)
    assert "There is no record. Nothing was saved" in seen and "tianji resume" not in seen
    assert "start it again with `tianji train`" in seen


@pytest.mark.parametrize("place", ["checkpoints", "groups/0/checkpoints"])
def test_a_run_that_was_killed_after_a_checkpoint_is_continued_by_its_name(folder, capfd, place):
    (folder / place / folder_name(3)).mkdir(parents=True)
    _, _, seen = ask(capfd)
    assert "`tianji resume mine` continues it." in seen and "Nothing was saved" not in seen


def test_a_run_that_was_killed_after_a_resume_is_lost_though_it_once_ended_well(folder, capfd):
    end(folder, "max_env_steps")
    log(folder, env_steps=2000)
    _, report, _ = ask(capfd)
    assert (report["state"], report["summary"]) == ("lost", None)


def test_a_run_that_is_resumed_is_running_whatever_it_said_at_its_first_end(folder, held, capfd):
    log(folder)
    end(folder, "max_env_steps", explanation=["It was slow."])
    _, report, _ = ask(capfd)
    assert (report["state"], report["summary"]) == ("running", None)
    assert report["explanation"][0].startswith("The learner is the bottleneck")


def test_what_was_promised_stands_beside_what_was_measured(folder, held, capfd):
    plan = make_plan(promised=50_000)
    replace_json(folder / "plan.json", plan.model_dump(mode="json"))
    log(folder)
    _, report, seen = ask(capfd)
    assert report["predicted"]["produced"] == 50_000
    assert report["prediction_error"]["produced"] == pytest.approx(-0.2)
    assert "The run is 20 % slower than planned" in seen


def test_at_the_end_the_error_of_the_prediction_is_that_of_the_whole_run(folder, capfd):
    plan = make_plan(promised=50_000)
    replace_json(folder / "plan.json", plan.model_dump(mode="json"))
    log(folder)
    end(folder, "max_wall", prediction_error={"produced": -0.01})
    assert ask(capfd)[1]["prediction_error"] == {"produced": -0.01}


def test_an_old_run_without_times_is_as_old_as_its_file(folder, capfd):
    log(folder, time=None, span_s=None)
    end(folder, "max_wall")
    _, report, seen = ask(capfd)
    assert 0 <= report["age_s"] < 60 and report["critical_path"] is None
    assert "nothing to explain yet" in seen


@pytest.mark.parametrize("text", ["{", '{"num_actors": 1}', "[]"])
def test_a_broken_plan_is_an_error_that_names_the_file(folder, capfd, text):
    (folder / "plan.json").write_text(text)
    code, report, _ = ask(capfd)
    assert code == 2 and "plan.json' is not a valid plan" in report["error"]


def test_a_broken_summary_is_an_error_that_names_the_file(folder, capfd):
    (folder / "summary.json").write_text("{")
    code, report, _ = ask(capfd)
    assert code == 2 and "summary.json' is broken" in report["error"]


def test_a_run_without_a_plan_never_began(folder, capfd):
    (folder / "plan.json").unlink()
    code, report, _ = ask(capfd)
    assert code == 2 and "it never started" in report["error"]


def test_an_unknown_run_and_an_empty_folder_are_clear_errors(folder, capfd):
    code, report, _ = ask(capfd, "mime")
    assert code == 2 and "Did you mean 'mine'?" in report["error"]
    (folder.parent / "empty").mkdir()
    code, report, _ = ask(capfd, "runs/empty")
    assert code == 2 and "not the folder of a run" in report["error"]


def test_the_way_to_the_target_is_measured_from_the_first_return(folder, capfd):
    save_config(RunConfig(algorithm="ppo", target_return=200.0), folder / "config.yaml")
    log(folder, mean_return_100=None)
    log(folder, mean_return_100=100.0, best_mean_return_100=100.0)
    log(folder, mean_return_100=150.0, best_mean_return_100=170.0)
    _, _, text = ask(capfd)
    assert "150 of 200" in text and " 50 %" in text and "best 170" in text


def test_without_a_name_the_newest_run_is_shown_and_the_others_are_listed(folder, capfd):
    older = folder.parent / "older"
    older.mkdir()
    save_config(CONFIG, older / "config.yaml")
    os.utime(older / "config.yaml", (1.0, 1.0))
    assert main(["status", "--json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["run"] == "mine"
    assert "Runs under 'runs/', newest first: mine, older." in " ".join(err.split())


def test_without_a_name_and_without_runs_it_says_how_to_start_one(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(["status"]) == 2
    assert "There are no runs under 'runs/' here. Start one with `tianji train`" in " ".join(
        capfd.readouterr().err.split()
    )
