"""Whole runs of algorithms that gather gradients: the same roles in every engine."""

import pytest

from tests.system.agents import use_agents_here
from tests.system.runs import differences, resume, run, saved_state

CLOCK = (".state.progress.wall_s", ".state.progress.target_ns")
SMALL = {"unroll_length": 20, "learning_rate": 0.05}
NAMES = ("rennala-nigt", "malenia-nigt", "sync-nigt", "afedpg", "rennala-pg", "a3c", "gorila")
OWN = {"rennala": {"m": 3}, "malenia": {"m": 3}, "gorila": {"warmup_steps": 400, "n_step": 3}}


def gathered(engine, name="sync-nigt", **values):
    counted = OWN.get(name.split("-")[0], {})
    settings = {"num_envs": 4, "num_actors": 2, "max_env_steps": 2000, **values}
    return run(engine=engine, algorithm={"name": name, **SMALL, **counted}, **settings)


def weights(summary):
    state = saved_state(summary["run_dir"])
    return {name: value for name, value in state.items() if name.startswith(".weights")}


# With processes the short form has one for its buffer too: test_placements.py.
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("local", marks=pytest.mark.slow),
        "virtual",
        pytest.param("ray", marks=pytest.mark.slow),
        "mpi",
    ],
)
def test_rounds_with_a_barrier_are_the_same_in_every_engine(engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inline = gathered("inline")
    use_agents_here(monkeypatch)
    other = gathered(engine)
    for key in ("env_steps", "updates", "version", "episodes", "mean_return_100"):
        assert inline[key] == other[key], key
    assert inline["version"] > 5
    assert differences(weights(inline), weights(other)) == []


ENGINES = [(name, engine) for name in NAMES for engine in ("inline", "virtual")]


LOCAL = [
    ("afedpg", "local"),
    # With processes they learn in tests/learning/test_learns.py.
    *(pytest.param(name, "local", marks=pytest.mark.slow) for name in ("a3c", "gorila")),
]


@pytest.mark.parametrize(("name", "engine"), [*ENGINES, *LOCAL])
def test_every_algorithm_runs_in_every_engine(name, engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    summary = gathered(engine, name)
    assert summary["stopped_because"] == "max_env_steps"
    counts = summary["gather"]["counts"]
    assert sum(counts) >= summary["version"]
    assert summary["version"] >= 3
    if engine != "local":  # a process that gets its core late may find AFedPG's run ended
        assert all(count > 0 for count in counts), "both actors contribute"


@pytest.mark.parametrize("name", ["rennala-nigt", "sync-nigt"])
def test_a_resumed_run_goes_on_as_if_it_had_not_stopped(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = gathered("inline", name, max_env_steps=2000, run="whole")
    half = gathered("inline", name, max_env_steps=1000, run="half")
    assert half["version"] < whole["version"]
    rest = resume(half["run_dir"], max_env_steps=2000)
    assert rest["version"] == whole["version"]
    states = saved_state(whole["run_dir"]), saved_state(rest["run_dir"])
    assert differences(*states, but=CLOCK) == []


@pytest.mark.parametrize("law", ["sqrt", "random", "changing"])
@pytest.mark.parametrize("name", ["rennala-nigt", "malenia-nigt", "sync-nigt"])
def test_a_resumed_run_goes_on_in_its_simulated_time(name, law, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    times = {"law": law, "network": "sqrt"}
    whole = gathered("virtual", name, max_env_steps=2000, times=times, run="whole")
    half = gathered("virtual", name, max_env_steps=1000, times=times, run="half")
    rest = resume(half["run_dir"], max_env_steps=2000)
    assert half["version"] < rest["version"] == whole["version"]
    assert rest["wall_s"] == pytest.approx(whole["wall_s"], rel=1e-12)
    states = saved_state(whole["run_dir"]), saved_state(rest["run_dir"])
    assert differences(*states, but=CLOCK) == []


def test_a_resumed_run_says_that_gradients_in_work_are_made_anew(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    half = gathered("inline", "afedpg", max_env_steps=1000)
    rest = resume(half["run_dir"], max_env_steps=2000)
    assert rest["version"] > half["version"]
    events = (tmp_path / rest["run_dir"] / "events.jsonl").read_text()
    assert "Unfinished gradients are computed again" in events


@pytest.mark.parametrize("name", ["a3c", "gorila"])
@pytest.mark.parametrize("engine", ["inline", pytest.param("local", marks=pytest.mark.slow)])
def test_a_resumed_run_says_that_its_actors_begin_new_episodes(name, engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    half = gathered(engine, name, max_env_steps=1000)
    rest = resume(half["run_dir"], max_env_steps=2000)
    assert rest["version"] > half["version"]
    assert rest["env_steps"] >= 2000
    if engine == "inline":
        events = (tmp_path / rest["run_dir"] / "events.jsonl").read_text()
        assert "all environments begin new episodes" in events


@pytest.mark.parametrize("name", ["a3c", "gorila"])
def test_gradients_of_old_versions_are_discarded_and_counted(name, tmp_path, monkeypatch):
    """Two actors in turn: without a bound each gradient but the first is one version behind."""
    monkeypatch.chdir(tmp_path)
    late = gathered("inline", name)
    assert late["lag_versions"]["max"] == 1 and late["discarded_items"] == 0
    strict = gathered("inline", name, max_lag=0)
    assert strict["lag_versions"]["max"] == 0
    assert strict["discarded_items"] > 5
    assert strict["version"] < late["version"]


def test_steps_before_the_first_gradient_count(tmp_path, monkeypatch):
    """Four unrolls of each actor do not fill Gorila's memories: they make no version."""
    monkeypatch.chdir(tmp_path)
    summary = gathered("inline", "gorila")
    num_unrolls = summary["env_steps"] / (2 * SMALL["unroll_length"])  # resets are no steps
    assert num_unrolls - 8 < summary["version"] < num_unrolls - 6


def test_a_virtual_run_is_the_same_twice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    times = {"law": "given", "compute": [1.0, 2.5], "network": "sqrt"}
    one, other = (gathered("virtual", "rennala-nigt", times=times) for _ in range(2))
    assert one["gather"]["counts"] == other["gather"]["counts"]
    assert one["gather"]["counts"][0] > one["gather"]["counts"][1]
    assert differences(saved_state(one["run_dir"]), saved_state(other["run_dir"])) == []


def test_with_equal_times_and_as_many_gradients_as_actors_rennala_is_the_synchronous_method(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    times = {"law": "equal", "network": "sqrt"}
    shared = {"num_envs": 4, "num_actors": 4, "max_env_steps": 2000, "times": times}
    rennala = run(engine="virtual", algorithm={"name": "rennala-nigt", "m": 4, **SMALL}, **shared)
    barrier = run(engine="virtual", algorithm={"name": "sync-nigt", **SMALL}, **shared)
    assert rennala["version"] == barrier["version"] > 5
    assert differences(weights(rennala), weights(barrier)) == []
