"""A profile is corrected only by what it did not already know."""

import pytest

from tests.unit.costs.profiles import actor, cost, demand, learner, machine, profile
from tianji.costs.profile import Rehearsal
from tianji.planning.replan import Observed, rescaled
from tianji.planning.solve.candidates import candidates

TRIED = Rehearsal(
    num_actors=2, learner_threads=1, actor_threads=1, produced=5, received=5, trained=15,
    lag_versions=1,
)  # fmt: skip
BEFORE = profile(
    actors=(actor(2, cost(0.2, strain=1.5)), actor(4, cost(0.4, strain=1.5))),
    learners=(learner(1, cost(0.1), receive_s=0.01), learner(2, cost(0.06))),
    rehearsals=(TRIED,),
)


def seen(unroll_s=0.25, version_s=0.1, **values):
    """With one thread each, all of the time is processor time unless it is said."""
    known = {
        "envs_per_actor": 2, "actor_threads": 1, "learner_threads": 1,
        "unroll_s": unroll_s, "version_s": version_s,
        "unroll_cpu_s": unroll_s, "version_cpu_s": version_s,
    }  # fmt: skip
    return rescaled(BEFORE, Observed(**{**known, **values}))


def test_between_alone_and_loaded_nothing_has_changed():
    after = seen(unroll_s=0.25)
    assert after.actors == BEFORE.actors
    assert after.learners == BEFORE.learners


def test_a_rehearsal_without_its_computation_was_of_other_speeds():
    assert seen().rehearsals == ()


def test_a_plan_reaches_as_much_of_its_computation_as_before():
    """2 actors were tried, and reached half; both promise half when everything is twice as slow."""
    before = profile(step_s=0.01, version=0.001)
    computed = {c.num_actors: c for c in candidates(before, machine(9), demand())}
    rate = computed[2].prediction.produced
    halves = {"produced": rate / 2, "received": rate / 2, "trained": rate, "computed": rate}
    tried = before.model_copy(update={"rehearsals": (TRIED.model_copy(update=halves),)})
    now = Observed(
        envs_per_actor=4, actor_threads=1, learner_threads=1, unroll_s=0.08, version_s=0.002,
        unroll_cpu_s=0.08, version_cpu_s=0.002,
    )  # fmt: skip
    after = {c.num_actors: c for c in candidates(rescaled(tried, now), machine(9), demand())}
    assert after[2].is_rehearsed
    assert after[2].prediction.produced == pytest.approx(rate / 4)
    assert after[2].prediction.trained == pytest.approx(rate / 2)
    assert after[8].prediction.produced == pytest.approx(computed[8].prediction.produced / 4)


def test_slower_than_loaded_slows_every_actor():
    after = seen(unroll_s=0.9)
    assert [a.unroll.alone_s for a in after.actors] == pytest.approx([0.6, 1.2])
    assert [a.unroll.cpu_s for a in after.actors] == pytest.approx([0.6, 1.2])
    assert after.actors[0].unroll.loaded_s == pytest.approx(0.9)
    assert after.learners == BEFORE.learners


def test_faster_than_alone_speeds_up_every_learner():
    after = seen(version_s=0.05)
    assert [c.version.alone_s for c in after.learners] == pytest.approx([0.05, 0.03])
    assert after.learners[0].receive_s == pytest.approx(0.005)
    assert after.actors == BEFORE.actors


def test_actors_between_two_measured_ones_are_compared_with_the_line_between():
    after = seen(unroll_s=0.9, envs_per_actor=3)
    assert after.actors[0].unroll.alone_s == pytest.approx(0.2 * 0.9 / (0.3 * 1.5))


def test_work_that_became_waiting_takes_no_more_of_a_processor():
    after = seen(unroll_s=0.9, unroll_cpu_s=0.25)
    assert [a.unroll.alone_s for a in after.actors] == pytest.approx([0.6, 1.2])
    assert [a.unroll.cpu_s for a in after.actors] == pytest.approx([0.2, 0.4])
