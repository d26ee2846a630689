"""Resume: exact where the environments offer their state, honest where they do not."""

import json
import shutil
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from tests.system.runs import (
    APEX,
    CONTINUOUS,
    DQN,
    IMPALA,
    PPO,
    SAC,
    differences,
    resume,
    run,
    saved_state,
)
from tianji.errors import UsageError
from tianji.run import resume_run

CLOCK = ".state.progress.wall_s"
MEMORY = {"model": {"memory": "lstm", "memory_size": 8}}
NORMALIZED = {"normalize": {"observations": True, "rewards": True}}


def clocks(state):
    return [name for name in state if name.endswith("row_ns") or name == CLOCK]


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [(PPO, {}), (PPO, NORMALIZED), (PPO, MEMORY), (DQN, {}), (APEX, {}), (IMPALA, {})],
    ids=["ppo", "ppo-normalized", "ppo-memory", "dqn", "apex", "impala"],
)
@pytest.mark.parametrize("env", ["CartPole-v1", "tianji.envs.worlds:Counting"])
def test_2n_steps_equal_n_and_resume_and_n(algorithm, more, env, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_exact({"algorithm": algorithm, "env": env, **more})


@pytest.mark.parametrize("env", ["Pendulum-v1", CONTINUOUS])
def test_2n_steps_of_sac_equal_n_and_resume_and_n(env, tmp_path, monkeypatch):
    """Critics, targets, temperature and noise go on where they were."""
    monkeypatch.chdir(tmp_path)
    assert_exact({"algorithm": SAC, "env": env, "normalize": {"observations": True}})


def assert_exact(settings):
    shared = {"engine": "inline", "num_actors": 2, **settings}
    whole = run(run="whole", max_env_steps=2000, **shared)
    half = run(run="half", max_env_steps=1000, **shared)
    assert half["env_steps"] < whole["env_steps"]
    resumed = resume(half["run_dir"], max_env_steps=2000)
    for key in ("env_steps", "updates", "version", "episodes", "mean_return_100"):
        assert resumed[key] == whole[key], key
    one, other = saved_state(whole["run_dir"]), saved_state(resumed["run_dir"])
    assert differences(one, other, but=clocks(one)) == []


def test_without_state_a_resume_equals_a_run_that_begins_new_episodes_at_n(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = {
        "algorithm": PPO, "engine": "inline", "num_actors": 2,
        "env": "tests.fakes.stateless:Stateless",
    }  # fmt: skip
    half = run(run="half", max_env_steps=2000, **shared)
    resumed = resume(half["run_dir"], max_env_steps=4000)
    begin_new_episodes_at(monkeypatch, 2000)
    whole = run(run="whole", max_env_steps=4000, **shared)
    one, other = saved_state(whole["run_dir"]), saved_state(resumed["run_dir"])
    assert differences(one, other, but=clocks(one)) == []
    assert "new episodes" in (Path(half["run_dir"]) / "events.jsonl").read_text()


def begin_new_episodes_at(monkeypatch, env_steps):
    """The reference: all environments of a run that goes on begin anew at that point."""
    from tianji.engines.inline import InlineEngine

    tick = InlineEngine._loop

    def watched(self, stop):
        side, after = self.roles.side, self.roles.side._after_version
        pending = [True]

        def after_version(now_ns):
            after(now_ns)
            if pending and side.progress.env_steps >= env_steps:
                pending.clear()
                for actor in self.roles.actors.values():
                    actor._assembler._episodes._carry = None

        side._after_version = after_version
        return tick(self, stop)

    monkeypatch.setattr(InlineEngine, "_loop", watched)


def test_the_local_engine_continues_counters_schedules_and_the_bound_on_lag(tmp_path, monkeypatch):
    """The engine may change on resume."""
    monkeypatch.chdir(tmp_path)
    shared = {"algorithm": DQN, "num_actors": 2, "max_lag": 1}
    half = run(run="half", max_env_steps=3000, engine="inline", **shared)
    resumed = resume(half["run_dir"], max_env_steps=6000, engine="local")
    assert resumed["env_steps"] >= 6000 > half["env_steps"]
    assert resumed["version"] > half["version"]
    assert resumed["updates"] > half["updates"]
    assert resumed["lag_versions"]["max"] <= 1
    assert resumed["wall_s"] > half["wall_s"]
    steps = DQN["unroll_length"] * 8
    # One version per round of all environments, warm-up only once: the store came back full.
    assert abs(resumed["version"] - (6000 - DQN["warmup_steps"]) / steps) < 20
    lines = (Path(half["run_dir"]) / "metrics.jsonl").read_text().splitlines()
    versions = [json.loads(line)["version"] for line in lines]
    assert versions == sorted(versions)
    last = resume(half["run_dir"], max_env_steps=7000, engine="inline")
    assert (resumed["engine"], last["engine"]) == ("local", "inline")
    assert last["env_steps"] >= 7000 and last["version"] > resumed["version"]


def files_of(folder):
    found = {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
    return {path: data for path, data in found.items() if path.name != ".lock"}


NUMBERS, IMAGES = Box(-1, 1, (4,)), Box(0, 255, (84, 84, 3), np.uint8)
TWO = Discrete(2)


class Changed(gym.Env):
    """CartPole as it might be after its code was changed."""

    def __init__(self, observation=NUMBERS, action=TWO):
        self.observation_space, self.action_space = observation, action

    def reset(self, *, seed=None, options=None):
        return np.zeros_like(self.observation_space.low), {}

    def step(self, action):
        return self.reset()[0], 0.0, False, False, {}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run that has ended as it should, in a folder of its own."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        summary = run(run="run", max_env_steps=300, algorithm=PPO, engine="inline")
    return folder / summary["run_dir"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"observation": Box(-1, 1, (6,))}, r"observation .*Box \(6,\) of float32 now"),
        ({"observation": IMAGES}, r"observation .*Box \(84, 84, 3\) of uint8 now"),
        ({"action": Discrete(3)}, r"action .* was Discrete\(2\), and is Discrete\(3\) now"),
        ({"action": Box(-1, 1, (2,))}, r"action .*Discrete\(2\), and is Box \(2,\) of float32 now"),
    ],
    ids=["observations", "images", "actions", "numbers"],
)
def test_a_resume_with_other_spaces_leaves_a_finished_run_as_it_was(finished, change, told):
    before = files_of(finished)
    with pytest.raises(UsageError, match=f"cannot be continued: the {told}"):
        resume_run(finished, {"max_env_steps": 600}, env=lambda: Changed(**change))
    assert files_of(finished) == before


def test_a_resume_with_damaged_manifests_leaves_a_finished_run_as_it_was(finished, tmp_path):
    damaged = tmp_path / "damaged"
    shutil.copytree(finished, damaged)
    for manifest in damaged.glob("checkpoints/*/manifest.json"):
        manifest.write_text("{}")
    before = files_of(damaged)
    with pytest.raises(UsageError, match="has no valid checkpoint"):
        resume(damaged, max_env_steps=600)
    assert files_of(damaged) == before


def test_a_run_that_is_where_it_was_asked_to_be_is_not_resumed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(run="done", max_env_steps=300, algorithm=PPO, engine="inline")
    with pytest.raises(UsageError, match="--max-env-steps"):
        resume(done["run_dir"])
    aim = {"target_return": 5.0, "max_env_steps": 20_000}
    reached = run(run="reached", algorithm=PPO, engine="inline", **aim)
    assert reached["stopped_because"] == "target_reached"
    with pytest.raises(UsageError, match="--target-return"):
        resume(reached["run_dir"])
    assert resume(reached["run_dir"], target_return=10.0)["time_to_target_s"] is not None
