"""The figures of one run, and the bound of its speed."""

import json
import os
from pathlib import Path

import pytest

from tests.fakes.comparison import contestant
from tianji.comparison.bound import bound_of, find_profile, lower
from tianji.comparison.neighbours import MachineUse, _everybody_s, machine_use, others_cores
from tianji.comparison.outcomes import finished_summary, is_finished, read_figures, steps_at
from tianji.config.machine import Machine
from tianji.costs.profile import ActorCost, Cost, LearnerCost, Profile
from tianji.display.curve import Point
from tianji.observe.summary import build_summary, write_summary
from tianji.planning.keep import key_of, save

POINTS = [Point(10_000, 1.0, 50.0), Point(30_000, 2.0, 300.0)]


@pytest.mark.parametrize(
    ("time_s", "steps"), [(1.0, 10_000), (1.5, 20_000), (0.5, 5_000), (2.0, 30_000), (None, None)]
)
def test_steps_to_the_target_lie_between_the_records(time_s, steps):
    assert steps_at(time_s, POINTS) == steps


def test_a_target_that_was_reached_before_any_record_has_no_steps():
    assert steps_at(0.1, []) is None


def summary_of(tmp_path, **facts):
    facts = {"stopped_because": "max_wall", **facts}
    return build_summary(contestant().config, tmp_path, facts)


def test_a_side_is_the_mean_of_its_roles(tmp_path):
    record = {
        "kind": {"actor-0": "actor", "actor-1": "actor", "learner": "learner"},
        "wall_s": 10.0, "env_steps": 100, "mean_return_100": 5.0,
    }  # fmt: skip
    (tmp_path / "metrics.jsonl").write_text(json.dumps(record) + "\n")
    summary = summary_of(
        tmp_path,
        busy_share={"actor-0": 0.2, "actor-1": 0.4, "learner": 0.9},
        waited_s={"actor-0": {"grant": 6.0}, "actor-1": {"grant": 2.0, "parked": 1.0}},
    )
    figures = read_figures("impala", {**summary, "wall_s": 10.0}, tmp_path, None)
    assert figures["actors"]["busy_share"] == pytest.approx(0.3)
    assert figures["actors"]["waited_share"] == pytest.approx({"grant": 0.4, "parked": 0.05})
    assert figures["learner"] == {"busy_share": 0.9, "waited_share": {}}
    assert figures["curve"] == [[100, 10.0, 5.0]]
    assert figures["run_dir"] == str(tmp_path) and figures["style"] == "impala"


def test_idle_and_waiting_are_shares_of_the_same_time_of_each_group(tmp_path):
    """Group 0 existed for 4 s, of which the run counts 2; group 1 for 20 ms."""
    record = {
        "kind": {"0/actor-0": "actor", "1/actor-0": "actor", "1/learner": "learner"},
        "wall_s": 2.0, "env_steps": 100, "mean_return_100": 5.0,
    }  # fmt: skip
    (tmp_path / "metrics.jsonl").write_text(json.dumps(record) + "\n")
    summary = summary_of(
        tmp_path,
        busy_share={"0/actor-0": 0.25, "1/actor-0": 0.5, "1/learner": 1.0},
        busy_s={"0/actor-0": 1.0, "1/actor-0": 0.01, "1/learner": 0.02},
        waited_s={"0/actor-0": {"grant": 2.0}, "1/actor-0": {"grant": 1.0}},
    )
    figures = read_figures("gala", {**summary, "wall_s": 2.0}, tmp_path, None)
    assert figures["actors"] == {"busy_share": 0.25, "waited_share": {"grant": 0.5}}
    assert figures["learner"] == {"busy_share": None, "waited_share": {}}


def test_long_curves_are_thinned(tmp_path):
    lines = (
        json.dumps({"wall_s": i / 2, "env_steps": i, "mean_return_100": 1.0})
        for i in range(1, 4001)
    )
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    curve = read_figures("tianji", summary_of(tmp_path), tmp_path, None)["curve"]
    assert 300 <= len(curve) <= 400 and curve[0][0] == 1


@pytest.mark.parametrize("because", ["target_reached", "max_env_steps", "max_wall"])
def test_a_run_that_came_to_its_end_counts(tmp_path, because):
    write_summary(tmp_path, summary_of(tmp_path, stopped_because=because))
    assert finished_summary(tmp_path) is not None


@pytest.mark.parametrize("because", ["interrupted", "failed"])
def test_a_run_that_did_not_come_to_its_end_does_not_count(tmp_path, because):
    summary = summary_of(tmp_path, stopped_because=because, first_cause="it broke")
    write_summary(tmp_path, summary)
    assert finished_summary(tmp_path) is None and not is_finished(summary)
    assert finished_summary(tmp_path / "nowhere") is None
    assert ("first_cause" in read_figures("a", summary, tmp_path, None)) == (because == "failed")


def cost(seconds):
    return Cost(alone_s=seconds, loaded_s=seconds, cpu_s=seconds, noise=0.0)


PROFILE = Profile(
    steps_per_version=1000,
    actors=(
        ActorCost(num_envs=8, threads=1, unroll=cost(0.01), environment_share=0.5, unevenness=1.0,
                  memory_bytes=1),
    ),
    learners=(
        LearnerCost(threads=1, version=cost(0.05), update_s=0.01, receive_s=0.0, publish_s=0.0,
                    memory_bytes=1),
    ),
    send_s=0.0, policy_bytes=1, unroll_bytes=1, rehearsals=(),
)  # fmt: skip


class Plan:
    num_actors, envs_per_actor, actor_threads, learner_threads = 2, 8, 1, 1
    steps_per_unroll = 8 * 16


LOCAL = contestant(engine="local").config


def test_the_bound_is_the_slower_side_alone():
    bound = bound_of(PROFILE, Plan(), num_cores=3, config=LOCAL)
    assert bound["actors_alone"] == pytest.approx(2 * 128 / 0.01)
    assert bound["learner_alone"] == pytest.approx(1000 / 0.05)
    assert lower(bound) == pytest.approx(20_000)


def test_a_side_alone_has_all_cores_and_its_own_threads_share_them():
    bound = bound_of(PROFILE, Plan(), num_cores=2, config=LOCAL)
    assert bound["learner_alone"] == pytest.approx(20_000), "the actors may wait all the time"
    bound = bound_of(PROFILE, Plan(), num_cores=1, config=LOCAL)
    assert bound["actors_alone"] == pytest.approx(128 / 0.01)
    assert bound["learner_alone"] == pytest.approx(20_000)


def test_cores_that_are_too_few_for_both_sides_bound_a_run_too():
    bound = bound_of(PROFILE, Plan(), num_cores=1, config=LOCAL)
    assert lower(bound) == pytest.approx(1 / (0.01 / 128 + 0.05 / 1000))


def test_every_learner_adds_its_own_bound():
    two = contestant(engine="local", num_groups=2, combine="gossip").config
    assert lower(bound_of(PROFILE, Plan(), num_cores=3, config=two)) == pytest.approx(40_000)


def test_actors_of_one_process_take_turns():
    bound = bound_of(PROFILE, Plan(), num_cores=1, config=contestant().config)
    assert bound["actors_alone"] == pytest.approx(128 / 0.01)
    assert bound["learner_alone"] == pytest.approx(20_000)


def test_a_profile_with_another_bound_on_the_lag_serves_too(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    machine = Machine(cores=(0, 1), memory_bytes=1 << 30)
    config = contestant(engine="local", max_lag=1).config
    serial = contestant(max_lag=0).config
    assert find_profile(serial, [1], machine) is None
    save(key_of(config, machine), PROFILE)
    assert find_profile(config, [], machine) is not None
    assert find_profile(serial, [], machine) is None
    assert find_profile(serial, [1], machine) is not None


def test_other_programs_are_what_children_did_not_use():
    before, after = MachineUse(1.0, 100.0, 10.0), MachineUse(11.0, 118.0, 16.0)
    assert others_cores(before, after) == pytest.approx(1.2)
    assert others_cores(before, before) == 0.0
    assert machine_use().everybody_s > 0


def test_idle_time_is_no_use(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text("cpu 100 200 300 99999 88888 10 20 30 0 0\n")
    assert _everybody_s(Path(stat)) == 660 / os.sysconf("SC_CLK_TCK")
