"""What the zoo relies on: runs made once, an even queue, and a page that tells the data."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from benchmarks.defaults.tasks import FIRST_EVAL_SEED
from benchmarks.harness import ROOT
from benchmarks.zoo import our_run, publish, workers
from benchmarks.zoo.page import make_page
from benchmarks.zoo.rl_zoo import SETTINGS
from benchmarks.zoo.runs import Runs, curve, settings_of
from benchmarks.zoo.summary import make_zoo, reached, timings
from benchmarks.zoo.tasks import OUR_SEEDS, PEER_SEEDS, ROWS, Job, jobs, wall_time_jobs
from benchmarks.zoo.workers import UNKNOWN_S, expected_s, work
from tianji.config.files import load_preset
from tianji.zoo.evidence import read_zoo

JOB = Job("tianji", ROWS[0], 1)


def result(job, mean_return=1.0, **more):
    return {
        "contestant": job.contestant, "preset": job.row.preset, "seed": job.seed,
        "env_steps": job.row.env_steps, "settings": settings_of(job), "mean_return": mean_return,
        "trained_steps": job.row.env_steps, "wall_s": 2.0, "process_s": 10.0, "commit": "a",
        "machine": {"cpu": "one"}, "versions": {}, "command": "python", **more,
    }  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.preset)
def test_rows_and_presets_agree(row):
    config = load_preset(row.preset).config
    assert (config["env"], config["algorithm"]["name"]) == (row.env, row.algorithm)
    assert row.has_peer == ((row.algorithm, row.env) in SETTINGS)
    assert row.env_steps <= (200_000 if row.algorithm == "sac" else 1_000_000)


def test_the_queue_gives_everything_one_seed_before_anything_two():
    seeds = [job.seed for job in jobs()]
    assert seeds == sorted(seeds)
    ours = [job.seed for job in jobs() if job.row == ROWS[0] and job.contestant == "tianji"]
    theirs = [job.seed for job in jobs() if job.row == ROWS[0] and job.contestant == "sb3"]
    assert (ours, theirs) == (list(OUR_SEEDS), list(PEER_SEEDS))


def test_wall_times_are_taken_in_turn():
    names = [job.contestant for job in wall_time_jobs()]
    assert names == ["sb3", "tianji"] * (len(names) // 2)


def test_a_run_is_made_once_and_again_when_its_length_or_preset_changes(tmp_path):
    runs, made = Runs(tmp_path), []

    def make(job):
        made.append(job.name)
        return result(job)

    for _ in range(2):
        work(runs, [JOB], make, float("inf"))
    assert made == [JOB.name]
    assert runs.find(replace(JOB, row=replace(JOB.row, env_steps=5))) is None
    runs.add(JOB, {**result(JOB), "settings": "of an older preset"})
    assert runs.find(JOB) is None


def test_a_run_that_was_ended_early_is_not_kept(tmp_path, monkeypatch, capsys):
    runs, job = Runs(tmp_path), jobs()[0]
    answer = {"episodes": [], "returns": [1.0], "trained_steps": job.row.env_steps - 1}
    monkeypatch.setattr(workers, "run_json", lambda *_, **__: dict(answer))
    work(runs, [job], lambda one: workers.make(one, 1), float("inf"))
    assert runs.find(job) is None
    assert "was ended after" in capsys.readouterr().err


def test_a_run_that_somebody_makes_is_left_to_them(tmp_path):
    made = []
    with Runs(tmp_path).claim(JOB) as is_ours:
        assert is_ours
        work(Runs(tmp_path), [JOB], made.append, float("inf"))
    assert made == []
    with Runs(tmp_path).claim(JOB) as is_ours:
        assert is_ours, "claims end"


def test_no_run_is_started_that_would_end_too_late(tmp_path):
    runs, made = Runs(tmp_path), []
    assert expected_s(runs, JOB) == UNKNOWN_S
    runs.add(replace(JOB, seed=2), result(replace(JOB, seed=2), process_s=100.0))
    assert expected_s(runs, JOB) == pytest.approx(130.0)
    work(runs, [JOB], made.append, time.monotonic() + 120.0)
    assert made == []


def test_a_curve_has_the_mean_return_of_every_part_of_the_run():
    episodes = [(10, 1.0), (10, 3.0), (480, 7.0)]
    assert curve(episodes, 500) == [[10, 1.0], [30, 3.0], [490, 7.0]]


def test_seeds_are_summed_up_by_mean_and_interquartile_mean():
    runs = [result(replace(JOB, seed=s), float(s)) for s in (1, 2, 3, 4)]
    found = reached([*runs, result(replace(JOB, seed=5), 100.0)])
    assert (found["mean"], found["iqm"], found["seeds"]) == (22.0, 3.0, 5)
    assert found["low"] < 3.0 < found["high"]


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (480.0, 500.0, "passed"),
        (470.0, 500.0, "not passed"),
        (21.39, 21.39, "kept up"),  # as random actions do
    ],
)
def test_rows_are_judged_by_the_rule_of_the_defaults(ours, theirs, verdict, tmp_path):
    peer, learnt = Job("sb3", ROWS[0], 1), Runs(tmp_path)
    learnt.add(JOB, result(JOB, ours))
    learnt.add(peer, result(peer, theirs))
    (row,) = make_zoo(learnt, Runs(tmp_path / "timed"))["rows"]
    assert row["verdict"] == verdict


@pytest.mark.parametrize(("env", "doing_nothing"), [("CartPole-v1", None), ("Ant-v5", 994.87)])
def test_a_row_tells_what_doing_nothing_returns_where_that_decides(env, doing_nothing, tmp_path):
    row = next(row for row in ROWS if row.env == env)
    job, learnt = Job("tianji", row, 1), Runs(tmp_path)
    learnt.add(job, result(job))
    (made,) = make_zoo(learnt, Runs(tmp_path / "timed"))["rows"]
    assert made["doing_nothing"] == doing_nothing


def test_wall_time_counts_the_steps_that_were_asked_for():
    ended_late = {"env_steps": 20_000, "trained_steps": 65_536}
    run = ended_late | {"training_s": 65.536, "process_s": 68.0}
    training_s, whole_s = timings(run)
    assert training_s == pytest.approx(20.0)
    assert whole_s == pytest.approx(20.0 + 68.0 - 65.536)


def test_the_page_and_the_package_tell_the_runs_that_are_kept():
    kept = ROOT / "benchmarks" / "zoo" / "results"
    made = make_zoo(Runs(kept / "runs"), Runs(kept / "wall_time"))
    again = "run python -m benchmarks.zoo.publish"
    assert made == read_zoo(), again
    assert publish.PAGE.read_text() == make_page(made), again


def test_greedy_episodes_start_in_the_same_states_as_those_of_the_peer(monkeypatch):
    seeds = []
    monkeypatch.setattr(our_run, "episode_return", lambda policy, env, seed: seeds.append(seed))
    summary = {"run_dir": "somewhere", "env": "Pendulum-v1"}
    our_run.greedy_returns(SimpleNamespace(summary=summary, policy=None), 3)
    assert seeds == [FIRST_EVAL_SEED, FIRST_EVAL_SEED + 1, FIRST_EVAL_SEED + 2]
    peers = (ROOT / "benchmarks" / "defaults" / "sb3_returns.py").read_text()
    assert f"FIRST_EVAL_SEED = {FIRST_EVAL_SEED:_}\n" in peers, "it cannot import ours"


def test_runs_with_other_starts_are_made_again():
    pendulum, doors = (
        Job("tianji", next(row for row in ROWS if row.preset == preset), 1)
        for preset in ("pendulum-ppo", "doors-masked-ppo")
    )
    assert settings_of(pendulum).endswith("same starts")
    assert "starts" not in settings_of(doors), "the peer has no such environment"
