"""Test runs of the places of inference, in words."""

from tianji.costs.places import PlaceTrial, PlaceTrials
from tianji.costs.profile import Rehearsal


def trial(inference, rate, trained=None):
    rates = dict.fromkeys(("produced", "received", "trained"), rate)
    rates["trained"] = rate if trained is None else trained
    shares = dict.fromkeys(("num_actors", "learner_threads", "actor_threads"), 1)
    measured = Rehearsal(**shares, **rates, lag_versions=1.0)
    return PlaceTrial(inference=inference, rehearsal=measured)


FAILED = PlaceTrial(inference="learner", failure="no memory.")


def test_the_best_has_the_highest_rate_whatever_the_order():
    trials = PlaceTrials(
        balance="paced", trials=(trial("actor-cpu", 4.0), FAILED, trial("served", 5.0))
    )
    assert (trials.best.inference, trials.best.rate) == ("served", 5.0)
    assert trials.reasons == (
        "Inference: served 5 steps/s, actor-cpu 4. The run uses served, which received 25 % more "
        "steps/s than actor-cpu in a test run.",
        "Inference: learner was left out, because its test run failed: no memory.",
    )


NEAR = trial("served", 100.0, trained=10.0), trial("actor-gpu", 91.0, trained=300.0)
SLOW = trial("actor-cpu", 80.0, trained=900.0)


def test_with_a_free_balance_the_learner_counts_among_places_that_are_near():
    trials = PlaceTrials(balance="free", trials=(*NEAR, FAILED, SLOW))
    assert trials.best.inference == "actor-gpu"
    assert trials.reasons[0] == (
        "Inference: actor-gpu 91 steps/s, served 100, actor-cpu 80. The run uses actor-gpu: its "
        "actors do not wait for the learner, and of the places that received at most 10 % less "
        "than the best, this one trained the most, 300 steps/s (served 10)."
    )
    alone = PlaceTrials(balance="free", trials=(NEAR[0], SLOW))
    assert alone.best.inference == "served"
    assert "received 25 % more steps/s than actor-cpu" in alone.reasons[0]
    for balance in ("paced", "blocking"):
        assert PlaceTrials(balance=balance, trials=(*NEAR, SLOW)).best.inference == "served"


def test_a_place_where_nothing_arrived_has_no_percentage():
    trials = PlaceTrials(balance="paced", trials=(trial("served", 5.0), trial("actor-gpu", 0.0)))
    assert "received far more steps/s than actor-gpu" in trials.reasons[0]


def test_a_single_place_is_compared_with_none():
    trials = PlaceTrials(balance="paced", trials=(FAILED, trial("actor-gpu", 4.0)))
    assert trials.reasons[0] == (
        "Inference: actor-gpu 4 steps/s, the only place that was measured."
    )


def test_what_is_kept_comes_back():
    trials = PlaceTrials(balance="paced", trials=(FAILED, trial("actor-gpu", 4.0)), measuring_s=3.0)
    assert PlaceTrials.model_validate_json(trials.model_dump_json()) == trials
