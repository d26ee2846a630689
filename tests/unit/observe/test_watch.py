"""Rates and shares from the gauges, with a clock of our own."""

import os

import pytest

from tests.fakes.roles import TWO_ACTORS
from tianji.channels.gauges import CARRIED, Activity, Gauge, Gauges
from tianji.observe.watch import LONGEST_WINDOW_S, WINDOW_S, Watch
from tianji.records import NOTHING_MEASURED

S = 10**9


class Rig:
    def __init__(self, kinds=TWO_ACTORS):
        self.now_ns = 50 * S
        self.gauges = Gauges(kinds)
        self.gauges.rows["actor-0"][Gauge.FIRST_STEP_NS] = 1
        self.watch = Watch(self.gauges, lambda: self.now_ns)

    def add(self, role, gauge, amount):
        self.gauges.rows[role][gauge] += amount

    def pass_s(self, seconds):
        self.now_ns += int(seconds * S)
        self.watch.look()


@pytest.fixture
def rig():
    return Rig()


def test_there_is_nothing_to_say_before_the_first_look(rig):
    assert rig.watch.now().measured == NOTHING_MEASURED
    rig.watch.look()
    assert set(rig.watch.now().measured["rates_per_s"].values()) == {0.0}


def test_each_rate_comes_from_its_own_gauge(rig):
    rig.watch.look()
    rig.add("actor-0", Gauge.STEPS, 100)
    rig.add("actor-1", Gauge.STEPS, 60)
    rig.add("buffer", Gauge.RECEIVED_STEPS, 140)
    rig.add("learner", Gauge.STEPS, 1000)
    rig.add("learner", Gauge.UNIQUE_STEPS, 120)
    rig.pass_s(2)
    assert rig.watch.now().measured["rates_per_s"] == {
        "produced": 80.0, "received": 70.0, "trained": 500.0, "unique_trained": 60.0
    }  # fmt: skip


def test_what_was_counted_before_the_first_look_is_no_rate(rig):
    rig.add("learner", Gauge.STEPS, 10**9)
    rig.watch.look()
    rig.add("learner", Gauge.STEPS, 10)
    rig.pass_s(1)
    assert rig.watch.now().measured["rates_per_s"]["trained"] == 10.0


def test_rates_are_those_of_the_last_seconds(rig):
    rig.watch.look()
    rig.add("actor-0", Gauge.STEPS, 1000)
    for _ in range(10):
        rig.pass_s(WINDOW_S / 3)
        rig.add("actor-0", Gauge.STEPS, 1)
    assert rig.watch.now().measured["rates_per_s"]["produced"] == pytest.approx(1.0)


def make_versions(rig, count, seconds):
    """Versions that take so long, each with all of its 1,000 steps at its end; yield each look."""
    for _ in range(count):
        rig.add("actor-0", Gauge.STEPS, 1000)
        rig.add("learner", Gauge.UPDATES, 8)
        rig.add("learner", Gauge.VERSION, 1)
        for _ in range(10):
            rig.pass_s(seconds / 10)
            yield rig.watch.now().measured


@pytest.mark.parametrize("seconds", [2.0, 5.0, 12.0])
def test_rates_of_long_versions_are_those_of_the_last_few(rig, seconds):
    rig.watch.look()
    for number, seen in enumerate(make_versions(rig, 30, seconds)):
        if number >= 40:
            assert seen["rates_per_s"]["produced"] == pytest.approx(1000 / seconds, rel=0.3)
            assert seen["span_s"] <= LONGEST_WINDOW_S + seconds
        elif number >= 10:
            assert seen["rates_per_s"]["produced"] >= 0.4 * 1000 / seconds, "no gap at the start"


def test_rates_follow_versions_that_become_longer(rig):
    rig.watch.look()
    for _ in make_versions(rig, 300, 1.0):
        pass
    for number, seen in enumerate(make_versions(rig, 20, 8.0)):
        if number >= 40:
            assert seen["rates_per_s"]["produced"] == pytest.approx(1000 / 8, rel=0.3)


def test_no_window_is_longer_than_a_minute(rig):
    rig.watch.look()
    *_, seen = make_versions(rig, 10, 100.0)
    assert LONGEST_WINDOW_S <= seen["span_s"] <= LONGEST_WINDOW_S + 10.0


def test_the_rates_of_a_run_that_stands_still_fall_to_those_of_a_few_versions(rig):
    rig.watch.look()
    *_, seen = make_versions(rig, 1000, 0.05)
    assert seen["rates_per_s"]["produced"] == pytest.approx(20_000, rel=0.01)
    for _ in range(10):
        rig.pass_s(1.0)
    assert rig.watch.now().measured["rates_per_s"]["produced"] < 0.03 * 20_000


def test_a_look_after_a_long_pause_still_has_something_to_compare_with(rig):
    rig.watch.look()
    rig.pass_s(1)
    rig.add("actor-0", Gauge.STEPS, 1000)
    rig.pass_s(100)
    assert rig.watch.now().measured["rates_per_s"]["produced"] == pytest.approx(10.0)


def test_a_counter_that_fell_back_makes_no_negative_rate(rig):
    rig.add("learner", Gauge.STEPS, 500)
    rig.watch.look()
    rig.add("learner", Gauge.STEPS, -300)
    rig.pass_s(1)
    assert rig.watch.now().measured["rates_per_s"]["trained"] == 0.0


def test_shares_are_the_time_at_work_and_asleep_of_the_time_that_passed(rig):
    rig.add("actor-0", Gauge.BUSY_NS, 77 * S)
    rig.watch.look()
    rig.add("actor-0", Gauge.BUSY_NS, 1 * S)
    rig.add("actor-0", Gauge.WAIT_NS, 2 * S)
    rig.add("learner", Gauge.BUSY_NS, 5 * S)
    rig.pass_s(4)
    found = rig.watch.now().measured
    assert found["busy_share"] == {"actor-0": 0.25, "actor-1": 0.0, "buffer": 0.0, "learner": 1.0}
    assert found["paced_share"]["actor-0"] == 0.5


def test_the_first_step_is_that_of_the_first_actor(rig):
    rig.add("actor-0", Gauge.FIRST_STEP_NS, -1)
    assert rig.watch.first_step_ns() == 0
    rig.add("actor-1", Gauge.FIRST_STEP_NS, 9)
    assert rig.watch.first_step_ns() == 9
    rig.add("actor-0", Gauge.FIRST_STEP_NS, 4)
    assert rig.watch.first_step_ns() == 4


def test_activities_are_told_by_name(rig):
    rig.add("learner", Gauge.ACTIVITY, Activity.PUBLISHING)
    assert rig.watch.activities() == {
        "actor-0": "starting", "actor-1": "starting", "buffer": "starting", "learner": "publishing"
    }  # fmt: skip


def test_the_time_of_an_actor_is_told_by_what_it_went_to(rig):
    rig.watch.look()
    rig.add("actor-0", Gauge.BUSY_NS, 3 * S)
    rig.add("actor-0", Gauge.ENV_NS, 1 * S)
    rig.add("actor-0", Gauge.WAIT_NS, 5 * S)
    rig.pass_s(8)
    found = rig.watch.now().measured
    assert found["span_s"] == 8.0
    assert found["worked_s"]["actor-0"] == {"environment": 1.0, "inference": 2.0}
    assert found["waited_s"]["actor-0"] == {"grant": 5.0, "parked": 0.0, "core": 0.0}


def test_times_that_agents_of_other_hosts_have_measured_count_like_our_own(rig):
    rig.add("actor-1", Gauge.CORE_NS, 70 * S)
    rig.watch.look()
    rig.add("actor-1", Gauge.CORE_NS, 3 * S)
    rig.add("actor-1", Gauge.NO_CORE_NS, 2 * S)
    rig.pass_s(8)
    found = rig.watch.now().measured
    assert found["core_s"] == {"actor-1": 3.0}
    assert found["waited_s"]["actor-1"]["core"] == 2.0


def test_an_actor_waits_for_grants_and_for_the_answers_of_a_server():
    rig = Rig({**TWO_ACTORS, "inference": "inference"})
    rig.watch.look()
    rig.add("actor-0", Gauge.WAIT_NS, 5 * S)
    rig.add("actor-0", Gauge.ANSWER_NS, 3 * S)
    rig.add("inference", Gauge.BUSY_NS, 2 * S)
    rig.pass_s(8)
    found = rig.watch.now().measured
    waited = {"grant": 2.0, "parked": 0.0, "answers": 3.0, "core": 0.0}
    assert found["waited_s"]["actor-0"] == waited
    assert found["busy_share"]["inference"] == 0.25


def test_without_a_server_an_actor_waits_for_replies(rig):
    rig.watch.look()
    rig.add("actor-0", Gauge.WAIT_NS, 5 * S)
    rig.add("actor-0", Gauge.ANSWER_NS, 3 * S)
    rig.pass_s(8)
    waited = rig.watch.now().measured["waited_s"]
    assert waited["actor-0"] == {"grant": 2.0, "parked": 0.0, "replies": 3.0, "core": 0.0}
    assert "replies" not in waited["actor-1"], "it waited for none"


def test_the_time_of_the_learner_includes_the_buffer_it_shares_a_process_with(rig):
    rig.watch.look()
    rig.add("learner", Gauge.BUSY_NS, 4 * S)
    rig.add("learner", Gauge.PUBLISH_NS, 1 * S)
    rig.add("learner", Gauge.SAVE_NS, 2 * S)
    rig.add("learner", Gauge.WAIT_NS, 3 * S)
    rig.add("buffer", Gauge.WAIT_NS, 3 * S)
    rig.add("buffer", Gauge.BUSY_NS, S // 2)
    rig.add("buffer", Gauge.LATE_NS, 1 * S)
    rig.pass_s(10)
    found = rig.watch.now().measured
    assert found["worked_s"]["learner"] == {"updates": 3.0, "publishing": 1.0, "buffer": 0.5}
    waited = {"unrolls": 2.0, "late_unrolls": 1.0, "saving": 2.0, "core": 0.0}
    assert found["waited_s"]["learner"] == waited
    assert "buffer" not in found["waited_s"]


def test_time_in_reductions_with_other_groups_is_waiting_and_no_work(rig):
    rig.watch.look()
    rig.add("learner", Gauge.BUSY_NS, 8 * S)
    rig.add("learner", Gauge.COMBINE_NS, 6 * S)
    rig.add("learner", Gauge.WAIT_NS, S)
    rig.pass_s(10)
    found = rig.watch.now().measured
    assert (found["busy_share"]["learner"], found["paced_share"]["learner"]) == (0.2, 0.7)
    assert found["worked_s"]["learner"]["updates"] == 2.0
    assert found["waited_s"]["learner"]["others"] == 6.0


def test_waiting_for_a_peer_is_no_waiting_for_unrolls(rig):
    rig.watch.look()
    rig.add("learner", Gauge.WAIT_NS, 5 * S)
    rig.add("learner", Gauge.PEER_NS, 3 * S)
    rig.pass_s(10)
    waited = rig.watch.now().measured["waited_s"]["learner"]
    assert (waited["unrolls"], waited["peers"]) == (2.0, 3.0)


def test_an_actor_that_is_parked_waits_for_that_and_not_for_the_learner(rig):
    rig.add("buffer", Gauge.ACTIVE, 1)
    rig.watch.look()
    rig.add("actor-0", Gauge.WAIT_NS, 3 * S)
    rig.add("actor-1", Gauge.WAIT_NS, S // 2)
    rig.pass_s(4)
    waited = rig.watch.now().measured["waited_s"]
    assert waited["actor-0"] == {"grant": 1.0, "parked": 2.0, "core": 0.0}, "half of them for 4 s"
    assert waited["actor-1"] == {"grant": 0.0, "parked": 0.5, "core": 0.0}, "it slept no longer"


def test_the_whole_run_begins_with_its_first_version(rig):
    rig.watch.look()
    rig.add("actor-0", Gauge.STEPS, 1000)
    rig.pass_s(5)
    rig.add("learner", Gauge.UPDATES, 1)
    rig.pass_s(1)
    for _ in range(10):
        rig.add("actor-0", Gauge.STEPS, 20)
        rig.add("learner", Gauge.VERSION, 2)
        rig.pass_s(1)
    whole = rig.watch.whole().measured
    assert whole["span_s"] == 10.0
    assert whole["rates_per_s"]["produced"] == 20.0, "what warm-up made is no part of it"
    assert rig.watch.now().measured["span_s"] < whole["span_s"]


def test_once_a_version_is_made_the_start_is_no_part_of_the_last_seconds(rig):
    rig.watch.look()
    rig.pass_s(0.5)
    rig.add("learner", Gauge.UPDATES, 1)
    rig.pass_s(0.5)
    assert rig.watch.now().measured["span_s"] == 1.0, "there is nothing else yet"
    rig.add("learner", Gauge.BUSY_NS, S // 2)
    rig.pass_s(0.5)
    assert rig.watch.now().measured["busy_share"]["learner"] == 1.0


def test_the_time_before_the_first_step_is_in_no_rate(rig):
    rig.add("actor-0", Gauge.FIRST_STEP_NS, -1)
    for _ in range(6):
        rig.pass_s(0.5)
    rig.add("actor-0", Gauge.FIRST_STEP_NS, rig.now_ns)
    rig.add("actor-0", Gauge.STEPS, 100)
    rig.pass_s(0.5)
    found = rig.watch.now().measured
    assert found["span_s"] == 0.5, "three seconds of start-up are no part of it"
    assert found["rates_per_s"]["produced"] == 200.0


def test_what_a_checkpoint_has_set_is_in_no_rate(rig):
    rig.watch.look()
    for gauge, carried in CARRIED.items():
        rig.add("learner", gauge, 1000)
        rig.add("learner", carried, 1000)
    rig.pass_s(1)
    assert rig.watch.now().measured["rates_per_s"]["trained"] == 0.0
    rig.add("learner", Gauge.STEPS, 50)
    rig.pass_s(1)
    whole = rig.watch.whole().measured
    assert whole["span_s"] == 2.0, "no version has been made since"
    assert whole["rates_per_s"]["trained"] == 25.0


def test_a_learner_that_went_back_goes_on_with_its_rates(rig):
    rig.add("learner", Gauge.STEPS, 500)
    rig.watch.look()
    rig.add("learner", Gauge.STEPS, 40 - 300)
    rig.add("learner", Gauge.CARRIED_STEPS, -300)
    rig.pass_s(1)
    assert rig.watch.now().measured["rates_per_s"]["trained"] == 40.0


def test_a_second_look_in_the_same_moment_of_simulated_time_takes_nothing_away(rig):
    rig.watch.look()
    rig.add("learner", Gauge.UPDATES, 3)
    rig.add("learner", Gauge.STEPS, 60)
    rig.pass_s(30)
    rig.watch.look()
    assert rig.watch.now().measured["rates_per_s"]["trained"] == 2.0
    assert rig.watch.whole().measured["rates_per_s"]["trained"] == 2.0


def test_a_run_that_was_looked_at_once_has_no_whole_to_speak_of(rig):
    assert rig.watch.whole().measured == NOTHING_MEASURED
    rig.watch.look()
    rig.add("learner", Gauge.UPDATES, 1)
    rig.pass_s(2)
    assert rig.watch.whole().measured["span_s"] == 2.0


def test_processor_time_is_that_of_the_processes_behind_the_roles(rig):
    pids = {"learner": os.getpid()}
    rig.watch.look(pids)
    assert rig.watch.resident_bytes()["learner"] > 0
    assert rig.watch.now().measured["core_s"] == {"learner": 0.0}
    rig.watch.look()
    assert rig.watch.resident_bytes()["learner"] > 0, "kept until the next look at processes"


def gathered(rig, seconds, **counts):
    """What is told when the gauges of these roles have grown by so much."""
    watch = Watch(rig.gauges, lambda: rig.now_ns)
    watch.look()
    for role, grown in counts.items():
        for gauge, count in grown.items():
            rig.add(role.replace("_", "-"), Gauge[gauge], count)
    rig.now_ns += seconds * S
    watch.look()
    return watch.now().gathered


def test_gathered_gradients_and_what_was_dropped_come_from_the_actors(rig):
    one = {"ITEMS": 6, "STEPS": 60, "OVERDUE": 2}
    other = {"ITEMS": 2, "STEPS": 20, "DISCARDED": 2, "DISCARDED_STEPS": 20}
    assert gathered(rig, 2, actor_0=one, actor_1=other, learner={"UPDATES": 4}) == {
        "rounds_per_s": 2.0, "gradients_per_s": 4.0, "discarded_share": 0.2,
        "discarded_step_share": 0.2, "overdue_share": 0.25,
    }  # fmt: skip


def test_gradients_that_came_too_late_are_among_those_that_were_discarded(rig):
    late = {"DISCARDED": 1, "DISCARDED_STEPS": 10}
    gather = gathered(rig, 1, actor_0={"ITEMS": 4, "STEPS": 40}, buffer=late)
    assert gather["discarded_share"] == gather["discarded_step_share"] == 0.25
    assert gather["gradients_per_s"] == 3.0, "those that count"


def test_no_share_of_gradients_is_above_all_of_them(rig):
    """A gradient is counted as overdue before it is handed over, and as late after it."""
    actor, late = {"ITEMS": 1, "STEPS": 10, "OVERDUE": 2}, {"DISCARDED": 2, "DISCARDED_STEPS": 20}
    gather = gathered(rig, 1, actor_0=actor, buffer=late)
    assert gather["overdue_share"] == gather["discarded_share"] == 1.0
    assert gather["discarded_step_share"] == 1.0 and gather["gradients_per_s"] == 0.0
