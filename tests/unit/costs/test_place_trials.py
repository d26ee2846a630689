"""Test runs of the places of inference, in words."""

from tianji.costs.places import PlaceTrial, PlaceTrials
from tianji.costs.profile import Rehearsal


def trial(inference, rate):
    rates = dict.fromkeys(("produced", "received", "trained"), rate)
    shares = dict.fromkeys(("num_actors", "learner_threads", "actor_threads"), 1)
    measured = Rehearsal(**shares, **rates, lag_versions=1.0)
    return PlaceTrial(inference=inference, rehearsal=measured)


FAILED = PlaceTrial(inference="learner", failure="no memory.")


def test_the_best_has_the_highest_rate_whatever_the_order():
    trials = PlaceTrials(trials=(trial("actor-cpu", 4.0), FAILED, trial("served", 5.0)))
    assert (trials.best.inference, trials.best.rate) == ("served", 5.0)
    assert trials.reasons == (
        "Inference: served 5 steps/s, actor-cpu 4. The run uses served, which received 25 % more "
        "steps/s than actor-cpu in a test run.",
        "Inference: learner was left out, because its test run failed: no memory.",
    )


def test_a_single_place_is_compared_with_none():
    trials = PlaceTrials(trials=(FAILED, trial("actor-gpu", 4.0)))
    assert trials.reasons[0] == (
        "Inference: actor-gpu 4 steps/s, the only place that was measured."
    )


def test_what_is_kept_comes_back():
    trials = PlaceTrials(trials=(FAILED, trial("actor-gpu", 4.0)), measuring_s=3.0)
    assert PlaceTrials.model_validate_json(trials.model_dump_json()) == trials
