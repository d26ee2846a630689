"""Scenarios with round numbers."""

from tianji.balance.set_point import SetPoint
from tianji.costs.work import Work
from tianji.virtual.cluster import Machines
from tianji.virtual.costs import LearnerParts
from tianji.virtual.roles import Pace
from tianji.virtual.simulate import Scenario, simulate

STEPS = 100  # of an unroll


def pace(unroll_s, num_slices=1):
    return Pace(Work(unroll_s, unroll_s, 1.0), num_slices, STEPS, can_be_short=True)


def scenario(unroll_s=(1.0, 1.0), version_s=1.0, lag=1, per_version=None, num_updates=1, **more):
    """Actors with these times for an unroll, each with a core of its own unless said otherwise."""
    num_actors = len(unroll_s)
    learner = LearnerParts(
        receive_s=more.pop("receive_s", 0.0),
        update_s=version_s / num_updates,
        publish_s=0.0,
        num_updates=num_updates,
    )
    machines = {"cores_per_node": num_actors + 2, **_taken(more, Machines)}
    settings = {
        "paces": tuple(map(pace, unroll_s)),
        "learner": learner,
        "point": SetPoint(per_version or num_actors, 0, lag),
        "max_lag": lag,
        "trained_steps_per_version": 3 * STEPS * (per_version or num_actors),
        "num_versions": 20,
        "machines": Machines(**machines),
        **more,
    }
    return Scenario(**settings)


def _taken(values, record):
    """The values that are fields of the record, taken out."""
    return {name: values.pop(name) for name in record.__slots__ if name in values}


def run(**values):
    return simulate(scenario(**values))
