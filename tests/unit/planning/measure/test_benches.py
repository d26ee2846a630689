"""The actor and the learner's side on channels of their own, in this process."""

import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.system.runs import CONTINUOUS, DQN, PPO, SAC
from tianji.channels.gauges import Gauge
from tianji.channels.layout import Layout
from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.engines.spec import RunSpec
from tianji.envs.build import probe
from tianji.planning.measure import actor_bench, durations, learner_bench
from tianji.planning.measure.actor_bench import ActorBench
from tianji.planning.measure.crew import Span
from tianji.planning.measure.learner_bench import LearnerBench, tiled
from tianji.planning.measure.measurement import learner_plan, with_small_replay
from tianji.planning.resolve.resolve import resolve
from tianji.types import Field

COUNTING = "tianji.envs.worlds:Counting"


def spec(algorithm, env=COUNTING, **values):
    settings = {"env": env, "num_envs": 4, "num_actors": 2, "algorithm": algorithm, **values}
    config = RunConfig.model_validate({**settings, "checkpoint": {"replay": False}})
    found = probe(config.env, config.env_kwargs)
    plan = resolve(config, Machine((0, 1), 1 << 33), found)
    return RunSpec(config, plan, found.spaces, config.env, None)


def span(seconds, is_alone=True):
    now_ns = time.monotonic_ns()
    return Span(begin_ns=now_ns, end_ns=now_ns + int(seconds * 1e9), is_alone=is_alone)


@pytest.fixture
def build():
    made = []

    def build(asked):
        made.append(ActorBench(asked))
        return made[-1]

    yield build
    for sampler in made:
        sampler.close()


@pytest.mark.parametrize("algorithm", [PPO, DQN], ids=["ppo", "dqn"])
def test_an_actor_makes_unrolls_and_its_costs_add_up(build, algorithm, monkeypatch):
    monkeypatch.setattr(durations, "_all_pids", list)  # processes of other tests are not its family
    reading = build(spec(algorithm)).work(span(0.1), threads=1)
    unroll = reading.cost.unroll
    assert 0 < reading.send_s < unroll.alone_s
    assert 0 < reading.cost.environment_share < 1
    assert unroll.cpu_s < 3 * unroll.alone_s
    in_steps = 2 * algorithm["unroll_length"] * reading.step_s
    assert in_steps < unroll.alone_s


def test_a_slow_environment_is_measured_by_the_steps_it_manages(build, monkeypatch):
    monkeypatch.setattr(actor_bench, "SLOW_S", 0.2)
    # Other processes of our session, such as those that run other tests, are not its family.
    monkeypatch.setattr(durations, "_all_pids", list)
    slow = spec(PPO | {"unroll_length": 64}, "tianji.envs.worlds:Slow")
    reading = build(slow).work(span(0.05), threads=1)
    assert reading.step_s >= 0.01
    unroll = reading.cost.unroll
    assert unroll.alone_s >= 0.98 * 64 * 2 * 0.01
    assert unroll.cpu_s < 0.7 * unroll.alone_s, "it sleeps, so it leaves the core to others"


def test_steps_with_a_reset_are_told_apart(build, monkeypatch):
    bench = build(spec(PPO))
    num_steps = 20 * 11  # episodes of ten steps and a reset
    for _ in range(num_steps):
        bench._tick()
    ticks = bench._ticks.rows(is_waiting=True)
    _, env_s, has_reset = ticks.T
    assert np.flatnonzero(has_reset).tolist() == list(range(10, num_steps, 11))
    env_s[:] = np.where(has_reset, 5e-3, 1e-4)  # known, whatever else the machine does
    monkeypatch.setattr(bench._ticks, "rows", lambda is_waiting: ticks)
    reading = bench._summary()
    assert reading.reset_factor == pytest.approx(50)
    assert reading.cost.unevenness == 1
    assert reading.step_s == pytest.approx(1e-4 / 2)


@pytest.mark.parametrize("algorithm", [PPO, DQN], ids=["ppo", "dqn"])
def test_the_learner_makes_versions_of_a_recorded_unroll(build, algorithm):
    asked = spec(algorithm)
    unroll = build(asked).record()
    trainer = LearnerBench(replace(asked, plan=with_small_replay(asked.plan)), unroll)
    reading = trainer.work(span(0.1), threads=1)
    parts_s = reading.receive_s + reading.update_s + reading.publish_s
    assert parts_s < reading.version.alone_s
    assert trainer.policy_bytes > 1000
    assert trainer.memory_bytes() > 1 << 20


@pytest.mark.parametrize("algorithm", [PPO, DQN, SAC], ids=["ppo", "dqn", "sac"])
def test_a_learner_that_is_measured_learns_nothing(build, algorithm):
    """PPO with Gaussian actions diverged after thousands of updates with the same unroll."""
    env = CONTINUOUS if algorithm is SAC else COUNTING
    asked = spec(algorithm | {"learning_rate": 0.5, "learning_rate_final": 0.25}, env)
    trainer = LearnerBench(
        replace(asked, plan=with_small_replay(asked.plan)), build(asked).record()
    )
    before = trainer._group.weights()
    trainer.work(span(0.05), threads=1)
    after = trainer._group.weights()
    assert trainer._row[Gauge.UPDATES] >= 3
    for name, _ in trainer._group._model.named_parameters():
        assert torch.allclose(after[name], before[name], rtol=0, atol=1e-15), name


def test_a_learner_that_is_looked_at_before_its_first_update_is_not_stable_yet(build, monkeypatch):
    # On a loaded machine the first tick of a span, here the end of a version, can take this long.
    monkeypatch.setattr(learner_bench, "LOOK_S", 0.0)
    asked = spec(PPO | {"epochs": 1, "minibatch_size": 64})
    trainer = LearnerBench(asked, build(asked).record())
    assert trainer.work(span(0.02), threads=1).update_s > 0


def test_a_version_too_long_for_its_span_is_put_together_from_its_parts(build):
    asked = spec(PPO | {"epochs": 500})
    unroll = build(asked).record()
    trainer = LearnerBench(asked, unroll)
    reading = trainer.work(span(0.02), threads=1)
    num_updates = 500 * 4 * 16 / 64
    assert reading.version.alone_s == pytest.approx(num_updates * reading.update_s, rel=0.2)


def test_a_replay_store_is_filled_before_anything_is_measured(build):
    asked = spec(DQN)
    plan = with_small_replay(asked.plan)
    assert plan.warmup_unrolls == 1024 // 8
    assert plan.replay_rows * plan.envs_per_actor * plan.num_actors == 1024
    unroll = build(asked).record()
    trainer = LearnerBench(replace(asked, plan=plan), unroll)
    trainer.work(span(0.01), threads=1)
    assert trainer._buffer.record()["store"]["fill"] == 1.0


def test_a_huge_replay_store_is_filled_in_part():
    plan = spec(DQN | {"replay_size": 10**6}).plan
    few = with_small_replay(plan.model_copy(update={"slot_bytes": 1 << 20}))
    assert few.warmup_unrolls == 256
    assert few.replay_rows * few.num_actors == 256 * few.unroll_length
    assert few.num_slots == plan.num_slots


def test_a_recording_that_was_cut_is_repeated(build, monkeypatch):
    monkeypatch.setattr(actor_bench, "RECORD_S", 0.05)
    asked = spec(PPO | {"unroll_length": 64}, "tianji.envs.worlds:Slow")
    recorded = build(asked).record()
    num_rows = len(recorded["reward"])
    assert 1 <= num_rows < 64
    assert len(recorded["obs"]) == num_rows + 1
    whole = tiled(Layout.from_json(asked.plan.layout), recorded)
    assert whole["reward"].shape == (64, 2)
    assert whole["valid"].all() == recorded["valid"].all()


def test_rows_and_environments_are_repeated_to_fit():
    layout = Layout((Field("reward", "float32"), Field("state", "float32", per="unroll")), 5, 3)
    recorded = {"reward": np.array([[1, 2], [3, 4]]), "state": np.array([7, 8])}
    whole = tiled(layout, recorded)
    assert whole["reward"].tolist() == [[1, 2, 1], [3, 4, 3], [1, 2, 1], [3, 4, 3], [1, 2, 1]]
    assert whole["state"].tolist() == [7, 8, 7]


@pytest.mark.parametrize("algorithm", [PPO, DQN], ids=["ppo", "dqn"])
def test_a_learner_behind_a_limiter_is_measured_as_if_it_were_paced(build, algorithm):
    asked = spec(algorithm, balance="limiter")
    found = probe(asked.config.env, {})
    plan = learner_plan(asked.config, Machine((0, 1), 1 << 33), found)
    assert (plan.balance, plan.limiter) == ("paced", None)
    trainer = LearnerBench(replace(asked, plan=plan), build(asked).record())
    assert trainer.work(span(0.01), threads=1).version.alone_s > 0
