"""What all runs of a style come to, and what is said about it."""

import pytest

from tests.fakes.comparison import contestant, run_figures
from tianji.comparison import words
from tianji.comparison.report import certainty, style_figures
from tianji.comparison.words import EXPLORING, estimate_text, notes, say_all

SEEDS = (1, 2, 3, 4, 5)
TIMES = {"tianji": (1.0, 1.1, 1.2, 1.3, 9.0), "impala": (2.0, 2.2, 2.4, 2.6, None)}


def runs(style, times=None, **changes):
    times = times or TIMES[style]
    return [
        run_figures(
            style, seed,
            time_to_target_s=time, steps_to_target=None if time is None else round(5e4 * time),
            stopped_because="max_wall" if time is None else "target_reached", **changes,
        )
        for seed, time in zip(SEEDS, times, strict=False)
    ]  # fmt: skip


def summed(*every, names=("tianji", "impala"), target=475.0):
    contestants = [contestant(name, target_return=target) for name in names]
    return style_figures(contestants, [run for some in every for run in some])


def test_times_are_interquartile_means_with_intervals():
    tianji, impala = summed(runs("tianji"), runs("impala"))
    assert tianji["time_to_target_s"]["value"] == pytest.approx((1.1 + 1.2 + 1.3) / 3)
    assert tianji["time_to_target_s"]["low"] >= 1.0
    assert tianji["time_to_target_s"]["seeds"] == 5
    assert impala["time_to_target_s"]["value"] == pytest.approx((2.2 + 2.4 + 2.6) / 3)
    assert impala["time_to_target_s"]["high"] is None, "one seed never reached the target"
    assert (tianji["reached"], impala["reached"]) == (5, 4)


def test_the_reference_is_better_where_its_times_are_shorter():
    tianji, impala = summed(runs("tianji"), runs("impala"))
    assert tianji["reference_is_better"] is None
    # 4 of tianji's seeds are faster than all of impala's; the fifth than the one that never came.
    better = impala["reference_is_better"]["time_to_target_s"]
    assert better["value"] == pytest.approx((4 * 5 + 1) / 25)
    assert certainty(impala).by == "time_to_target_s"


def test_returns_decide_where_no_seed_reaches_the_target():
    never = {"times": (None,) * 5}
    tianji, impala = summed(runs("tianji", **never), runs("impala", mean_return_100=9.0, **never))
    assert tianji["time_to_target_s"]["value"] is None
    assert impala["reference_is_better"]["time_to_target_s"] is None
    assert certainty(impala).by == "final_return" and certainty(impala).probability["value"] == 1.0


def test_without_a_target_returns_decide():
    returns = {"tianji": 100.0, "impala": 50.0}
    some = [runs(style, mean_return_100=mean) for style, mean in returns.items()]
    tianji, impala = summed(*some, target=None)
    assert tianji["time_to_target_s"] is None
    assert impala["reference_is_better"]["time_to_target_s"] is None
    sure = certainty(impala)
    assert sure.by == "final_return"
    assert sure.probability == {"value": 1.0, "low": 1.0, "high": 1.0, "seeds": 5}


def test_runs_that_failed_do_not_count():
    broken = run_figures("impala", 1, stopped_because="failed", time_to_target_s=None)
    tianji, impala = summed(runs("tianji"), [broken])
    assert impala["seeds"] == [] and impala["final_return"] is None
    assert impala["reference_is_better"]["final_return"] is None
    assert certainty(impala) is None
    assert say_all([tianji, impala], 475.0)["impala"] == ["No run of it has come to its end."]


def test_the_share_of_the_bound_is_that_of_the_slower_side():
    bound = {"actors_alone": 9e4, "learner_alone": 4e4, "both_never_idle": 8e4}
    tianji, impala = summed(runs("tianji", bound=bound), runs("impala"))
    assert tianji["share_of_bound"] == pytest.approx(0.75)
    assert impala["share_of_bound"] is None


def test_sides_are_means_over_the_runs():
    unknown = {"busy_share": None, "waited_share": {}}
    first = {"busy_share": 0.5, "waited_share": {"grant": 0.4}}
    second = {"busy_share": 0.7, "waited_share": {"parked": 0.2}}
    every = (first, second, unknown)
    some = [run_figures("tianji", seed, actors=side) for seed, side in enumerate(every, 1)]
    tianji, _ = summed(some, runs("impala"))
    assert tianji["actors"]["busy_share"] == pytest.approx(0.6)
    assert tianji["actors"]["waited_share"] == pytest.approx({"grant": 0.2, "parked": 0.1})


def told(*every, target=475.0):
    found = summed(*every, target=target)
    return {style: " ".join(said) for style, said in say_all(found, target).items()}


def test_words_say_what_a_style_costs_in_time_and_steps():
    said = told(runs("tianji"), runs("impala"))
    assert "It reaches 475 after 1.2 s and 60.0k steps." in said["tianji"]
    assert (
        "It reaches 475 after 2.4 s, 2 times as long as tianji, with 2 times the steps"
        in (said["impala"])
    )


def test_words_say_what_a_side_waits_for():
    idle = {"busy_share": 0.6, "waited_share": {"grant": 0.31, "parked": 0.04, "core": 0.5}}
    said = told(runs("tianji"), runs("impala", actors=idle, critical_path="neither"))
    assert "Its actors are idle 40 % of the time: they wait 31 % for a grant." in said["impala"]
    said = told(runs("tianji"), runs("impala", actors=idle, critical_path="learner"))
    assert "they wait 31 % for the learner to catch up." in said["impala"]
    assert "Its learner is idle 10 % of the time." in said["impala"]
    unknown = {"busy_share": None, "waited_share": {}}
    assert "actors are idle" not in told(runs("tianji", actors=unknown), runs("impala"))["tianji"]


@pytest.mark.parametrize(
    ("rule", "reason"), [("every", "gradients to be applied"), ("barrier", "the next version")]
)
def test_actors_that_send_gradients_do_not_wait_for_a_grant(rule, reason):
    idle = {"busy_share": 0.56, "waited_share": {"grant": 0.43}}
    said = told(runs("tianji"), runs("impala", actors=idle, gather_rule=rule))
    assert f"Its actors are idle 44 % of the time: they wait 43 % for {reason}." in said["impala"]


def test_words_compare_speed_and_lag_with_the_reference():
    rates = {"produced": 15_000.0, "received": 15_000.0, "trained": 6e4, "unique_trained": 1.0}
    lag = {"mean": 2.5, "p95": 4.0, "max": 9}
    said = told(runs("tianji"), runs("impala", rates_per_s=rates, lag_versions=lag))
    assert "It makes 15.0k steps/s (0.5 times tianji's)" in said["impala"]
    assert "trains on 60.0k steps/s, each step 4 times (tianji: 3)." in said["impala"]
    assert "The lag is 2.50 versions (tianji: 1.00)." in said["impala"]
    assert "discards" not in said["impala"]
    said = told(runs("tianji"), runs("impala", discarded_items=12))
    assert "It discards 12 items in a run." in said["impala"]


def test_a_style_that_never_reaches_the_target_is_told_so():
    never = runs("impala", times=(None,) * 5, mean_return_100=150.0, greedy_return=None)
    said = told(runs("tianji"), never)["impala"]
    assert "It does not reach 475 (5 seeds), and ends with a return of 150." in said
    assert "tianji is faster with probability 1 [1, 1]." in said


def test_a_policy_that_is_better_than_its_exploration_is_told_so():
    explores = runs("impala", times=(None,) * 5, mean_return_100=150.0, greedy_return=480.0)
    said = told(runs("tianji"), explores)["impala"]
    assert "and ends with a return of 150, 480 if its policy is greedy." in said
    found = summed(runs("tianji"), explores)
    assert found[1]["greedy_return"]["value"] == 480.0
    assert EXPLORING in notes(found, [], 475.0, 10, 0.0)
    unknown = summed(*(runs(style, greedy_return=None) for style in ("tianji", "impala")))
    assert EXPLORING not in notes(unknown, [], 475.0, 10, 0.0), "nothing was played"


def test_a_claim_needs_five_seeds():
    few = told(runs("tianji")[:3], runs("impala")[:3])["impala"]
    assert "3 seeds cannot support a claim" in few
    enough = told(runs("tianji"), runs("impala"))["impala"]
    assert "cannot support" not in enough and "no difference" not in enough


def test_no_difference_is_claimed_where_the_interval_contains_one_half():
    alike = runs("impala", times=TIMES["tianji"])
    assert "no difference can be claimed" in told(runs("tianji"), alike)["impala"]


def test_a_style_that_beats_the_reference_is_told_so():
    said = told(runs("tianji"), runs("impala", times=(0.1, 0.2, 0.3, 0.4, 0.5)))["impala"]
    assert "tianji is faster with probability 0 [0, 0]: impala is faster." in said


def all_notes(styles, missing=(), target=475.0, points=50, others=0.0):
    return " ".join(notes(styles, missing, target, points, others))


def test_notes_label_what_cannot_be_relied_on():
    enough = summed(runs("tianji"), runs("impala"))
    text = all_notes(enough)
    assert text.startswith(words.METHOD) and words.STOPPED_AT_TARGET in text
    assert "seeds cannot support" not in text and "quiet" not in text
    few = summed(runs("tianji"), runs("impala")[:2])
    assert "2 seeds cannot support a claim about returns" in all_notes(few)
    assert "not come to their end: impala-s3" in all_notes(few, missing=["impala-s3"])
    assert "other programs used 0.7 cores" in all_notes(enough, others=0.7)
    assert words.FEW_POINTS in all_notes(enough, points=2)
    assert words.STOPPED_AT_TARGET not in all_notes(enough, target=None)


def test_notes_name_styles_without_a_profile():
    bound = {"actors_alone": 9e4, "learner_alone": 4e4, "both_never_idle": 8e4}
    found = summed(runs("tianji", bound=bound), runs("impala"))
    assert "No profile of impala is saved" in all_notes(found)
    assert "No profile" not in all_notes(found[:1])


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (1.234, 1.0, 2.0, "1.23 [1, 2]"),
        (1.234, None, None, "1.23"),
        (1.234, 1.0, None, "1.23 [1, never]"),
        (None, None, None, "never"),
        (None, 3.0, None, "never [3, never]"),
    ],
)
def test_an_estimate_is_a_value_and_its_interval(value, low, high, text):
    assert estimate_text({"value": value, "low": low, "high": high, "seeds": 5}, 3) == text
