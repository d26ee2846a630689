"""The planner on made-up machines: the paper's cases, what is fixed, what does not fit."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.costs.profiles import MIB, actor, cost, demand, learner, machine, profile
from tianji.costs.profile import Rehearsal
from tianji.errors import UsageError
from tianji.planning.solve.candidates import TIE_SHARE, candidates
from tianji.planning.solve.demand import SUPERVISOR_BYTES
from tianji.planning.solve.solve import solve


def shares(solution):
    chosen = solution.chosen
    return chosen.num_actors, chosen.envs_per_actor, chosen.learner_threads


def test_sampling_bound_the_actors_get_every_core_that_the_learner_leaves():
    found = solve(profile(step_s=0.01, version=0.001), machine(9), demand())
    assert shares(found) == (8, 1, 1)
    assert found.chosen.prediction.bottleneck == "sampling"
    assert found.chosen.prediction.produced == pytest.approx(8 / 0.01)
    assert found.chosen.prediction.received == found.chosen.prediction.produced
    assert found.chosen.prediction.trained == pytest.approx(3 * found.chosen.prediction.produced)
    assert found.reasons[0].startswith("Sampling is the bottleneck: the actors need 10 ms")


def test_training_bound_a_few_actors_are_enough_and_the_learner_gets_threads():
    threads = (learner(1, 0.04), learner(2, cost(0.022, cpu_s=0.044)))
    found = solve(profile(step_s=0.001, learners=threads), machine(9), demand())
    assert shares(found) == (1, 8, 2)
    assert found.chosen.prediction.bottleneck == "training"
    assert found.chosen.prediction.produced == pytest.approx(8 / 0.022)
    assert "1 thread would be 45 % slower" in " ".join(found.reasons)
    assert found.advice[0].startswith("One more core would not help: the learner is the bottleneck")


def test_communication_bound_groups_are_advised_with_their_number():
    slow = (learner(1, 0.032, receive_s=0.003),)
    found = solve(profile(step_s=0.0001, learners=slow), machine(9), demand(num_actors=8))
    assert found.chosen.prediction.bottleneck == "communication"
    assert "receiving the 8 unrolls of a version takes 24 ms of the 32 ms" in found.reasons[0]
    (groups,) = [words for words in found.advice if words.startswith("Several groups of learners")]
    assert "with 3 groups it takes 8 ms per version, beside 8 ms of other work" in groups
    assert "--num-groups 3" in groups


def test_processor_bound_one_more_core_is_promised_what_it_brings():
    found = solve(profile(step_s=0.001, version=0.008), machine(1), demand())
    assert found.chosen.num_actors == 1, "more of them on one core bring nothing"
    assert found.chosen.prediction.bottleneck == "processors"
    assert found.chosen.prediction.produced == pytest.approx(8 / 0.016)
    assert found.advice[0] == "One more core would make the run 100 % faster: 1,000 steps/s."


def test_environments_that_wait_get_more_actors_than_there_are_cores():
    waiting = tuple(actor(n, cost(n * 0.01, cpu_s=n * 0.0001)) for n in (1, 2, 4, 8))
    found = solve(profile(actors=waiting, version=0.001), machine(2), demand())
    assert found.chosen.num_actors == 8
    assert found.chosen.prediction.bottleneck == "sampling"
    assert found.chosen.prediction.produced == pytest.approx(8 / 0.01, rel=0.05)


def test_serial_training_has_no_side_that_works_ahead():
    serial = demand(max_lag=0, lag_target=0)
    found = solve(profile(step_s=0.001, version=0.01), machine(9), serial)
    assert found.chosen.num_actors == 8
    assert found.chosen.prediction.produced == pytest.approx(8 / 0.011)
    assert found.chosen.prediction.lag_versions == 0
    assert found.reasons[0].startswith("Sampling and training take turns")


def test_what_is_fixed_stays_and_the_rest_is_solved_around_it():
    threads = (learner(1, 0.04), learner(2, 0.022), learner(4, 0.015))
    measured = profile(step_s=0.001, learners=threads)
    for fixed in ({"num_actors": 4}, {"learner_threads": 1}, {"num_actors": 2, "actor_threads": 1}):
        found = solve(measured, machine(9), demand(**fixed))
        assert {name: getattr(found.chosen, name) for name in fixed} == fixed
        assert "you set " in " ".join(found.reasons)
    assert solve(measured, machine(9), demand(num_actors=4)).chosen.learner_threads == 4


def test_of_candidates_that_are_as_good_the_smallest_is_taken_and_it_is_said():
    found = solve(profile(step_s=0.001, version=0.020), machine(9), demand())
    assert found.chosen.num_actors == 1, "it needs 8 ms of the 20 that the learner takes"
    assert "would be as fast within 3 %, and fewer are preferred" in found.reasons[1]


def test_of_candidates_that_are_as_good_one_with_a_reserve_is_taken_and_it_is_said():
    """One actor needs 8 ms, the learner 10: it would hold it up whenever it is slow."""
    found = solve(profile(step_s=0.001, version=0.010), machine(9), demand())
    assert found.chosen.num_actors == 2
    assert "with 1.2 x instead of 2.5 x in reserve" in found.reasons[1]
    crowded = solve(profile(step_s=0.001, version=0.010), machine(2), demand())
    assert crowded.chosen.num_actors == 1, "a reserve is not worth a core that is not there"


def rehearsal(num_actors, produced, learner_threads=1):
    return Rehearsal(
        num_actors=num_actors,
        learner_threads=learner_threads,
        actor_threads=1,
        produced=produced,
        received=produced - 1,
        trained=3 * produced,
        lag_versions=1.1,
    )


def test_what_was_tried_is_promised_as_it_was_and_the_rest_in_proportion():
    """Computed: 400 steps/s with 4 actors, 800 with 8. With 4, half of it was reached."""
    tried = profile(step_s=0.01, version=0.001, rehearsals=(rehearsal(4, 200.0),))
    found = {c.num_actors: c for c in candidates(tried, machine(9), demand())}
    assert found[4].is_rehearsed and not found[8].is_rehearsed
    assert found[4].prediction.produced == 200.0
    assert (found[4].prediction.received, found[4].prediction.trained) == (199.0, 600.0)
    assert found[4].prediction.lag_versions == 1.1
    assert found[8].prediction.produced == pytest.approx(400.0)
    assert found[8].prediction.trained == pytest.approx(1200.0)


def test_what_was_tried_twice_is_promised_as_its_mean():
    tried = profile(step_s=0.01, rehearsals=(rehearsal(4, 200.0), rehearsal(4, 300.0)))
    found = {c.num_actors: c for c in candidates(tried, machine(9), demand())}
    assert found[4].prediction.produced == 250.0
    assert found[4].prediction.trained == 750.0


def test_a_trial_decides_against_the_computation():
    tried = (rehearsal(8, 300.0), rehearsal(4, 390.0))
    asked = profile(step_s=0.01, version=0.001, rehearsals=tried)
    found = solve(asked, machine(9), demand())
    assert (found.chosen.num_actors, found.chosen.is_rehearsed) == (4, True)
    assert "measured in a test run" in " ".join(found.reasons)


def test_what_was_only_computed_must_promise_clearly_more_than_what_was_tried():
    asked = profile(step_s=0.01, version=0.0192, rehearsals=(rehearsal(4, 400.0),))
    assert solve(asked, machine(9), demand()).chosen.num_actors == 4, "8 promise 4 % more"
    faster = profile(step_s=0.01, version=0.015, rehearsals=(rehearsal(4, 400.0),))
    assert solve(faster, machine(9), demand()).chosen.num_actors == 8


def test_far_more_actors_than_cores_must_be_tried_or_promise_a_quarter_more():
    """16 actors that wait: more than four for each of 3 cores."""
    tried = (rehearsal(8, 800.0),)
    for version_s, num_actors in ((0.017, 8), (0.0145, 16)):
        waiting = tuple(actor(n, cost(n * 0.01, cpu_s=n * 1e-5)) for n in (1, 2, 4, 8, 16))
        asked = profile(
            num_envs=16, actors=waiting, version=cost(version_s, cpu_s=1e-4), rehearsals=tried
        )
        found = solve(asked, machine(3), demand(16))
        assert found.chosen.num_actors == num_actors
        assert solve(asked, machine(4), demand(16)).chosen.num_actors == 16, "that is not so many"
    untried = asked.model_copy(update={"rehearsals": ()})
    assert solve(untried, machine(3), demand(16)).chosen.num_actors == 16


def test_a_plan_that_failed_when_tried_is_not_taken_and_says_nothing_about_the_others():
    asked = profile(step_s=0.01, version=0.001, rehearsals=(rehearsal(8, 0.0),))
    found = {c.num_actors: c for c in candidates(asked, machine(9), demand())}
    assert found[4].prediction.produced == pytest.approx(400.0)
    assert solve(asked, machine(9), demand()).chosen.num_actors == 4
    both = asked.model_copy(update={"rehearsals": (rehearsal(8, 0.0), rehearsal(4, 300.0))})
    two = replace(demand(), shared={n: demand().shared[n] for n in (4, 8)})
    assert "the test run with 8 actors failed" in solve(both, machine(9), two).reasons[1]


def test_where_all_failed_the_computation_decides():
    asked = profile(step_s=0.01, version=0.001, rehearsals=(rehearsal(8, 0.0),))
    found = solve(asked, machine(9), demand(num_actors=8)).chosen
    assert (found.is_rehearsed, found.prediction.produced) == (False, pytest.approx(800.0))


def test_what_one_more_core_brings_does_not_depend_on_which_plan_was_chosen():
    """2 actors were tried and are taken, although 8 are computed to be faster."""
    tried = (rehearsal(2, 390.0), rehearsal(4, 100.0), rehearsal(8, 100.0))
    asked = profile(step_s=0.01, version=0.001, rehearsals=tried)
    found = solve(asked, machine(9), demand())
    assert found.chosen.num_actors == 2
    assert found.advice[0].startswith("One more core would not help")


def test_memory_is_counted_part_by_part():
    asked = demand(num_actors=2, has_evaluator=True)
    memory = solve(profile(), machine(9), asked).chosen.memory
    assert memory.parts == {
        "actors": 400 * MIB, "learner": 300 * MIB, "evaluator": 200 * MIB,
        "supervisor": SUPERVISOR_BYTES, "unrolls_in_flight": 2 * MIB, "replay": 10 * MIB,
        "control": MIB, "messages": 0, "policy": 4 * MIB,
    }  # fmt: skip
    assert memory.total == 917 * MIB + SUPERVISOR_BYTES


def test_a_plan_that_needs_more_memory_than_there_is_makes_way_for_a_smaller_one():
    wide = profile(step_s=0.01, version=0.001)
    assert solve(wide, machine(9), demand()).chosen.num_actors == 8
    assert solve(wide, machine(9, memory_bytes=1300 * MIB), demand()).chosen.num_actors == 2


def test_a_run_that_fits_in_no_way_is_refused_with_the_sum():
    with pytest.raises(UsageError) as told:
        solve(profile(), machine(9, memory_bytes=500 * MIB), demand())
    text = str(told.value)
    assert "actors 200 MiB + learner 300 MiB + supervisor" in text
    assert "replay 10 MiB" in text and "policy 4 MiB" in text
    assert "500 MiB are free, and a run may take 80 % of that, 400 MiB." in text


def test_the_warnings_of_the_profile_are_passed_on():
    found = solve(profile(warnings=("Steps are slow.",)), machine(2), demand())
    assert found.advice[-1] == "Steps are slow."


def test_roles_say_who_gets_what():
    asked = demand(num_actors=4, has_evaluator=True)
    found = solve(profile(learners=(learner(2, 0.01),)), machine(7), asked)
    assert found.roles() == {
        "actor": {"processes": 4, "cores": 4, "threads": 1},
        "buffer": {"processes": 0, "cores": 0, "threads": 0},
        "learner": {"processes": 1, "cores": 2, "threads": 2},
        "evaluator": {"processes": 1, "cores": 1, "threads": 1},
    }


def test_an_evaluator_takes_a_core_from_training_where_there_are_three():
    busy = profile(step_s=0.01, version=0.08)
    alone = solve(busy, machine(3), demand(num_actors=2))
    beside = solve(busy, machine(3), demand(num_actors=2, has_evaluator=True))
    assert beside.chosen.prediction.produced < alone.chosen.prediction.produced


@st.composite
def situations(draw):
    num_envs = draw(st.sampled_from([6, 8, 16]))
    step_s, version_s = draw(st.floats(1e-5, 1e-2)), draw(st.floats(1e-4, 1e-1))
    gain = draw(st.floats(0.5, 1.2))
    threads = (learner(1, version_s), learner(2, cost(version_s * gain, cpu_s=version_s)))
    base = profile(step_s=step_s, num_envs=num_envs, learners=threads)
    fixed = draw(st.sampled_from([{}, {"num_actors": 2}, {"learner_threads": 2}]))
    return base, machine(draw(st.integers(1, 20))), demand(num_envs, **fixed)


@given(situations())
def test_nothing_is_clearly_better_than_what_is_chosen_and_cores_add_up(situation):
    measured, cores, asked = situation
    found = solve(measured, cores, asked)
    every = candidates(measured, cores, asked)
    best = max(candidate.prediction.produced for candidate in every)
    assert found.chosen.prediction.produced >= best * (1 - TIE_SHARE) * (1 - 1e-9)
    assert found.chosen.num_actors * found.chosen.envs_per_actor == asked.num_envs
    for name in ("num_actors", "learner_threads"):
        assert getattr(asked, name) in (None, getattr(found.chosen, name))
    threads = found.chosen.num_actors * found.chosen.actor_threads + found.chosen.learner_threads
    given_out = sum(role["cores"] for role in found.roles().values())
    assert given_out == pytest.approx(min(threads, len(cores.cores)), abs=0.02)


@given(situations())
def test_a_core_more_never_harms(situation):
    measured, cores, asked = situation
    more = replace(cores, cores=(*cores.cores, len(cores.cores)))
    best = [
        max(c.prediction.produced for c in candidates(measured, m, asked)) for m in (cores, more)
    ]
    assert best[1] >= best[0] * (1 - 1e-6)


def test_of_plans_that_are_as_good_the_one_with_a_core_for_every_thread_is_taken():
    """One process less would mean four threads on three cores."""
    rehearsals = (rehearsal(1, 101.0, learner_threads=3), rehearsal(2, 100.0))
    threads = (learner(1, 0.01), learner(3, 0.01))
    tried = profile(step_s=0.0002, learners=threads, rehearsals=rehearsals)
    assert solve(tried, machine(5), demand()).chosen.num_actors == 1
    found = solve(tried, machine(3), demand())
    assert (found.chosen.num_actors, found.chosen.learner_threads) == (2, 1)


def test_a_trial_says_most_about_plans_with_as_many_learner_threads():
    """With two threads a hundredth of the computation was reached, with one nothing was tried."""
    threads = (learner(1, 0.02), learner(2, cost(0.01, cpu_s=0.02)))
    asked = profile(step_s=0.0001, learners=threads)
    computed = {
        (c.num_actors, c.learner_threads): c for c in candidates(asked, machine(9), demand())
    }
    rate = computed[1, 2].prediction.produced / 100
    tried = asked.model_copy(update={"rehearsals": (rehearsal(1, rate, learner_threads=2),)})
    found = {(c.num_actors, c.learner_threads): c for c in candidates(tried, machine(9), demand())}
    for shares, reached in (((2, 2), 0.01), ((1, 1), 0.5)):
        expected = computed[shares].prediction.produced * reached
        assert found[shares].prediction.produced == pytest.approx(expected)
    assert solve(tried, machine(9), demand()).chosen.learner_threads == 1
