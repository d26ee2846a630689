"""metrics.jsonl, events.jsonl, TensorBoard events and summary.json."""

import json
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from tests.unit.observe.accounts import make_record
from tianji.observe import tensorboard
from tianji.observe.run_log import (
    TAIL_BYTES,
    JsonLines,
    RunLog,
    highest_version,
    read_last,
    read_lines,
)
from tianji.observe.summary import build_summary, read_summary, write_summary
from tianji.observe.tensorboard import to_scalars
from tianji.records import NO_METRICS

DESIGN_KEYS = {
    "env", "algorithm", "style", "engine", "seed", "stopped_because", "target_return",
    "mean_return_100", "time_to_target_s", "start_up_s", "wall_s", "env_steps", "updates",
    "version", "rates_per_s", "lag_versions", "ratio", "discarded_items", "env_failures",
    "restarts", "busy_share",
}  # fmt: skip
RECORD = {
    **NO_METRICS,
    "wall_s": 1.5,
    "env_steps": 8192,
    "version": 4,
    "mean_return_100": float("nan"),
    "rates_per_s": {**NO_METRICS["rates_per_s"], "produced": np.float32(5461.0)},
    "lag_versions": {"mean": 1.0, "p95": 2, "max": 3},
    "lag_histogram": [1, 2, 1],
    "busy_share": {"actor-0": 0.5, "learner": 0.9},
    "activity": {"actor-0": "stepping"},
    "learner": {"approx_kl": 0.01},
    "evaluation": {"mean_return": 300.0},
}


def config(tensorboard=True):
    return SimpleNamespace(
        env_name="CartPole-v1",
        algorithm=SimpleNamespace(name="ppo"),
        style="tianji",
        engine="local",
        seed=1,
        target_return=475.0,
        observe=SimpleNamespace(tensorboard=tensorboard),
    )


def read_scalars(run_dir):
    (file,) = run_dir.glob("events.out.tfevents.*")
    events = [event for event in EventFileLoader(str(file)).Load() if event.HasField("summary")]
    return [(e.step, {v.tag: v.tensor.float_val[0] for v in e.summary.value}) for e in events]


def test_metrics_are_json_lines_without_nan(tmp_path):
    log = RunLog(tmp_path, config(tensorboard=False))
    log.metrics(RECORD)
    on_disk_before_close = list(read_lines(tmp_path / "metrics.jsonl"))
    log.metrics(RECORD)
    log.close()
    text = (tmp_path / "metrics.jsonl").read_text()
    lines = [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]
    assert len(lines) == 2 and lines[0] == on_disk_before_close[0]
    assert lines[0]["mean_return_100"] is None
    assert lines[0]["rates_per_s"]["produced"] == 5461.0
    assert not list(tmp_path.glob("*tfevents*"))


def test_tensorboard_reads_every_record_over_environment_steps(tmp_path):
    log = RunLog(tmp_path, config())
    log.metrics(RECORD)
    log.metrics({**RECORD, "env_steps": 16384, "learner": {"approx_kl": 0.02}})
    log.close()
    found = read_scalars(tmp_path)
    assert [step for step, _ in found] == [8192, 16384]
    assert [round(s["learner/approx_kl"], 4) for _, s in found] == [0.01, 0.02]


def test_tensorboard_is_not_imported_by_the_first_metrics():
    code = """if True:
        import sys, pathlib, types
        from tianji.observe.run_log import RunLog
        from tianji.records import NO_METRICS
        log = RunLog(pathlib.Path("/nowhere"), types.SimpleNamespace(
            observe=types.SimpleNamespace(tensorboard=True)))
        log.metrics(NO_METRICS)
        log.event("kind", "role", "text")
        sys.exit("torch" in sys.modules or "tensorboard" in sys.modules)
    """
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_scalars_have_a_room_a_quantity_and_a_unit():
    found = to_scalars(RECORD)
    assert found["actor/produced_steps_per_s"] == 5461.0
    assert found["buffer/lag_p95_versions"] == 2.0
    assert found["actor-0/busy_share"] == 0.5
    assert found["evaluator/mean_return"] == 300.0
    assert "actor/mean_return_100" not in found, "a number that is not finite is no scalar"


def test_where_the_time_went_is_a_scalar_of_each_side():
    found = to_scalars(make_record(actors=0.2, environment=0.5, num_actors=3, no_core=0.1))
    assert found["actor/environment_share"] == pytest.approx(0.1)
    assert found["actor/wait_grant_share"] == pytest.approx(0.8)
    assert found["learner/wait_core_share"] == pytest.approx(0.1)
    assert found["learner/saving_share"] == 0.0


def test_rounds_and_tasks_are_scalars():
    gather = {"rule": "first", "rounds_per_s": 2.0, "discarded_step_share": 0.25, "counts": [1]}
    returns = {"easy": 5.0, "hard": None}
    found = to_scalars({**NO_METRICS, "gather": gather, "returns_by_env": returns})
    assert found.items() >= {
        "learner/rounds_per_s": 2.0, "actor/discarded_step_share": 0.25,
        "actor/mean_return_100/easy": 5.0,
    }.items()  # fmt: skip
    assert "actor/mean_return_100/hard" not in found


def test_events_say_when_what_and_who(tmp_path):
    log = RunLog(tmp_path, config())
    log.event("restart", "actor-1", "killed by signal 9")
    log.close()
    (event,) = read_lines(tmp_path / "events.jsonl")
    assert (event["kind"], event["role"], event["text"]) == (
        "restart",
        "actor-1",
        "killed by signal 9",
    )
    assert event["time"].endswith("+00:00")


def test_a_run_that_goes_on_after_a_torn_line_appends_whole_ones(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"env_steps": 1}\n{"env_st')
    log = RunLog(tmp_path, config(tensorboard=False))
    log.metrics({**NO_METRICS, "env_steps": 2})
    log.close()
    assert [record["env_steps"] for record in read_lines(path)] == [1, 2]


def test_the_last_record_is_the_newest_whole_one(tmp_path):
    path = tmp_path / "metrics.jsonl"
    assert read_last(path) is None
    path.write_text("")
    assert read_last(path) is None
    path.write_text('{"env_steps": 1}\n{"env_steps": 2}\n{"env_st')
    assert read_last(path) == {"env_steps": 2}
    path.write_text("nothing\nbut noise\n")
    assert read_last(path) is None


def test_the_last_record_is_found_behind_a_long_file_and_a_long_line(tmp_path):
    path = tmp_path / "metrics.jsonl"
    long = json.dumps({"text": "x" * (2 * TAIL_BYTES)})
    path.write_text('{"env_steps": 1}\n' * TAIL_BYTES + long + "\n")
    assert len(read_last(path)["text"]) == 2 * TAIL_BYTES
    path.write_text(long + "\n" + '{"env_steps": 9}\n')
    assert read_last(path) == {"env_steps": 9}


def test_every_record_says_when_it_was_made(tmp_path):
    log = RunLog(tmp_path, config(tensorboard=False))
    log.metrics(RECORD)
    log.close()
    assert read_last(tmp_path / "metrics.jsonl")["time"].endswith("+00:00")


def rows(path):
    return [(record["version"], record["env_steps"]) for record in read_lines(path)]


@pytest.mark.parametrize(
    "padding", [0, TAIL_BYTES], ids=["short lines", "lines longer than a tail"]
)
def test_records_after_the_checkpoint_are_moved_so_that_counters_never_fall(tmp_path, padding):
    log = RunLog(tmp_path, config(tensorboard=False))
    for version in range(6):
        log.metrics(
            {**NO_METRICS, "version": version, "env_steps": 10 * version, "text": "x" * padding}
        )
    assert log.go_back(3, 30) == 2
    assert log.go_back(3, 30) == 0, "nothing is lost of a run that was stopped in order"
    log.metrics({**NO_METRICS, "version": 6, "env_steps": 40})
    assert rows(tmp_path / "metrics.jsonl") == [(0, 0), (1, 10), (2, 20), (3, 30), (6, 40)]
    assert rows(tmp_path / "metrics-lost.jsonl") == [(4, 40), (5, 50)]
    assert highest_version(tmp_path) == 6
    assert log.go_back(-1, -1) == 5, "a learner that begins anew has lost all"
    assert highest_version(tmp_path) == 6
    log.close()


def test_steps_that_arrived_after_the_checkpoint_of_the_same_version_are_lost(tmp_path):
    log = RunLog(tmp_path, config(tensorboard=False))
    for env_steps in (30, 35):
        log.metrics({**NO_METRICS, "version": 3, "env_steps": env_steps})
    log.go_back(3, 30)
    log.close()
    assert rows(tmp_path / "metrics.jsonl") == [(3, 30)]


def test_a_torn_line_of_a_killed_run_goes_with_what_is_lost(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"version": 1, "env_steps": 10}\n{"version": 2, "env_steps": 20}\n{"vers')
    log = RunLog(tmp_path, config(tensorboard=False))
    log.go_back(1, 10)
    log.metrics({**NO_METRICS, "version": 3, "env_steps": 20})
    log.close()
    assert rows(path) == [(1, 10), (3, 20)]


def test_tensorboard_forgets_what_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(tensorboard, "START_DELAY_S", 0.0)
    for back, steps in ((None, (10, 20, 30)), (10, (15, 25))):  # two sessions, two files
        log = RunLog(tmp_path, config())
        if back is not None:
            log.go_back(1, back)
        for step in steps:
            log.metrics({**RECORD, "version": step // 10, "env_steps": step})
        log.close()
    found = EventAccumulator(str(tmp_path)).Reload()
    assert [e.step for e in found.Scalars("learner/approx_kl")] == [10, 15, 25]


def test_a_disk_that_refuses_costs_lines_and_is_said_once(tmp_path):
    problems = []
    lines = JsonLines(tmp_path / "missing" / "metrics.jsonl", problems.append)
    for _ in range(3):
        lines.append({"env_steps": 1})
    assert lines.lost_lines == 3
    assert problems == ["metrics.jsonl loses lines: No such file or directory."]
    (tmp_path / "missing").mkdir()
    lines.append({"env_steps": 4})
    assert [r["env_steps"] for r in read_lines(tmp_path / "missing" / "metrics.jsonl")] == [4]


def test_tensorboard_that_cannot_write_says_so_and_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(tensorboard, "START_DELAY_S", 0.0)
    problems = []
    log = tensorboard.TensorBoardLog(tmp_path / "missing", problems.append)
    log.add(0.0, 1, {"a/b": 1.0})
    log.close()
    assert len(problems) == 1 and problems[0].startswith("TensorBoard events stop here")


def test_a_summary_has_the_keys_that_scripts_rely_on(tmp_path):
    facts = {"stopped_because": "target_reached", "mean_return_100": 480.0, "env_steps": 41_000}
    summary = build_summary(config(), tmp_path, facts)
    assert set(summary) >= DESIGN_KEYS
    assert set(summary) - DESIGN_KEYS == {
        "run_dir", "episodes", "best_mean_return_100", "lag_histogram", "checkpoint", "busy_s",
        "planning_s", "waited_s", "critical_path", "explanation", "predicted", "prediction_error",
        "replans", "gather", "returns_by_env", "can_be_filmed", "device", "inference",
        "gpu", "groups", "hosts", "blocked_inserts", "blocked_s",
    }  # fmt: skip
    assert (summary["env"], summary["target_return"], summary["env_steps"]) == (
        "CartPole-v1", 475.0, 41_000
    )  # fmt: skip


def test_a_summary_of_a_run_that_failed_at_once_is_whole_and_names_the_cause(tmp_path):
    cause = "actor-1: environment raised ZeroDivisionError"
    record = {"mean_return_100": float("nan"), "ratio": {"target": 1.0}}
    summary = build_summary(config(), tmp_path, {"first_cause": cause}, record)
    write_summary(tmp_path, summary)
    text = (tmp_path / "summary.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail) == summary == read_summary(tmp_path)
    assert summary["stopped_because"] == "failed" and summary["first_cause"] == cause
    assert summary["mean_return_100"] is None
    assert summary["ratio"] == {"target": 1.0, "actual": None}


def test_a_summary_that_is_not_there_is_none(tmp_path):
    assert read_summary(tmp_path) is None


def test_what_has_no_place_in_a_summary_is_left_out(tmp_path):
    summary = build_summary(config(), tmp_path, {"stopped_because": "max_wall"}, RECORD)
    assert summary["env_steps"] == 8192 and "first_cause" not in summary
    assert "learner" not in summary and "activity" not in summary


def test_lines_outlive_a_folder_that_cannot_be_made_again_at_once(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    lines = JsonLines(folder / "metrics.jsonl", pytest.fail)
    lines.append({"version": 1})
    shutil.rmtree(folder)
    lines.reopen()
    lines.append({"version": 2})
    folder.mkdir()
    lines.reopen()
    lines.append({"version": 3})
    lines.close()
    assert [line["version"] for line in read_lines(folder / "metrics.jsonl")] == [1, 2, 3]
