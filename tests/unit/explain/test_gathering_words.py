"""Why a run that gathers gradients is as fast as it is."""

import pytest

from tests.unit.observe.accounts import make_plan, make_record
from tianji.explain.explain import explain

GATHER = {
    "rule": "first", "num_gradients": 20, "times": "none", "counts": [10, 30], "waiting_for": [],
    "open_s": 0.1, "rounds_per_s": 1.25, "gradients_per_s": 25.4, "discarded_share": 0.1,
    "discarded_step_share": 0.04,
}  # fmt: skip


def told(actors=0.97, learner=0.02, engine="local", busy_share=None, **gather):
    record = make_record(actors, learner, num_actors=2, gather={**GATHER, **gather}, version=12)
    record["busy_share"] = busy_share or {"actor-0": actors, "actor-1": actors, "learner": learner}
    return explain(record, make_plan(num_actors=2), engine)


def test_actors_that_work_all_the_time_are_as_they_should_be():
    assert told().critical_path == "actors"
    assert told().sentences == (
        "The actors are the critical path, as it should be: 97 % busy; the learner 2 %.",
        "A round is the first 20 gradients, whoever makes them: 1.25 rounds/s, 25.4 gradients/s; "
        "actor-1 made 75 % of all, actor-0 25 %.",
        "Dropped when rounds were closed: 10 % of the gradients and 4 % of the "
        "environment steps. With m = 40 it would be some 2 % of the steps.",
        "In 10.0 s, each actor waited 0.3 s for the next version; the learner waited 9.8 s for "
        "gradients.",
        "Work of the actors: environment 60 % and policy with gradients 40 %.",
        "What gains most: environment in half the time (up to 1.4 x as fast).",
    )


def test_a_learner_that_cannot_keep_up_is_named():
    found = told(actors=0.3, learner=0.95)
    assert found.critical_path == "learner"
    assert "larger rounds" in found.gain


def test_the_slowest_actor_holds_up_a_barrier():
    busy = {"actor-0": 0.99, "actor-1": 0.21, "learner": 0.01}
    found = told(0.6, 0.01, busy_share=busy, rule="barrier", discarded_share=0.0)
    assert found.sentences[0] == (
        "The slowest actor sets the pace: actor-0 is 99 % busy, the mean actor 60 %, the learner "
        "1 %."
    )
    assert "rennala-nigt" in found.gain
    assert "up to 2.9 x as many gradients" in found.gain, "one as many, the other almost five times"
    assert "Hardly any work was dropped when rounds were closed." in found.sentences


def test_much_dropped_work_asks_for_a_larger_m():
    found = told(discarded_share=0.5, discarded_step_share=0.5)
    assert (
        found.gain
        == "What gains most: a larger m, which drops less (up to 2.0 x as many gradients)."
    )
    assert "With m = 40 it would be some 33 % of the steps." in found.sentences[2]


def test_a_moment_in_which_all_work_was_dropped_can_be_told():
    assert "up to 20 x as many" in told(discarded_share=1.0, discarded_step_share=1.0).gain
    assert "up to 20 x as many" in told(actors=0.0, rule="barrier").gain


def test_a_round_that_waits_says_for_whom_first():
    found = told(rule="harmonic", waiting_for=[1], late=[1], open_s=8.4)
    assert found.sentences[0] == (
        "The round waits for actor-1: gradients at version 12 are missing for 8 s."
    )
    assert found.gain == (
        "What gains most: actor-1 at work again, or to go on without (algorithm.absent_after_s)."
    )
    slow = told(rule="harmonic", waiting_for=[1], open_s=19.0)
    assert "waits" not in slow.sentences[0] and "absent_after_s" not in slow.gain


def test_of_a_whole_run_no_version_is_named():
    gather = {**GATHER, "rule": "harmonic", "late": [1], "open_s": 8.4}
    record = make_record(num_actors=2, gather=gather, busy_share={})
    found = explain(record, make_plan(num_actors=2), "local")
    assert found.sentences[0] == "The round waits for actor-1: gradients are missing for 8 s."


def test_what_another_rule_would_save_in_messages_is_not_guessed():
    busy = {"actor-0": 0.99, "actor-1": 0.21, "learner": 0.01}
    found = told(0.6, 0.01, busy_share=busy, rule="barrier", network="sqrt")
    assert found.gain.endswith("malenia-nigt where they have not.")


def test_a_barrier_whose_actors_hold_all_cores_gains_nothing_by_another_rule():
    gather = {**GATHER, "rule": "barrier"}
    record = make_record(0.6, 0.01, num_actors=2, gather=gather)
    record["busy_share"] = {"actor-0": 0.99, "actor-1": 0.21, "learner": 0.01}
    record["core_s"] = {"actor-0": 9.9, "actor-1": 9.9, "learner": 0.1}
    for waits in record["waited_s"].values():
        waits["core"] = 3.0
    assert "rennala-nigt" not in explain(record, make_plan(num_actors=2), "local").gain


def test_gradients_that_had_only_just_begun_are_hardly_any_work():
    sentences = told(discarded_share=0.1, discarded_step_share=0.0002).sentences
    assert "Hardly any work was dropped when rounds were closed." in sentences


def test_actors_that_differ_by_less_than_is_told_have_made_the_same():
    assert "; each actor made 50 %." in " ".join(told(counts=[501, 499]).sentences)


def test_waits_that_would_be_told_as_no_seconds_are_left_out():
    record = make_record(0.97, 0.02, num_actors=2, gather=GATHER, busy_share={})
    for name in ("worked_s", "waited_s"):
        record[name] = {
            role: {of_what: seconds / 10 for of_what, seconds in spent.items()}
            for role, spent in record[name].items()
        }
    found = explain({**record, "span_s": 1.0}, make_plan(num_actors=2), "local")
    assert "In 1.0 s, the learner waited 1.0 s for gradients." in found.sentences


def test_every_gradient_that_makes_a_version_drops_nothing():
    sentences = " ".join(told(rule="every").sentences)
    assert "Every gradient makes a version: 25.4 gradients/s;" in sentences
    assert "ropped" not in sentences and "rounds/s" not in sentences


def test_simulated_times_are_not_work():
    found = told(engine="virtual", discarded_step_share=None, times="sqrt")
    sentences = " ".join(found.sentences)
    assert "10 % of the gradients. With m = 40 it would be some 5 % of the gradients." in sentences
    assert "In 10.0 s of simulated time, each actor waited 0.3 s for the next version;" in sentences
    assert "Work of" not in sentences and found.gain == ""
    assert "until gradients were due" in " ".join(told(times="sqrt").sentences)


def test_of_rounds_that_were_not_closed_nothing_was_dropped():
    assert "dropped" not in " ".join(told(rounds_per_s=0.0, discarded_share=0.0).sentences)


def test_messages_that_take_most_of_the_time_are_the_limit():
    found = told(actors=0.2, times="sqrt", network="sqrt", closing_s=0.6)
    assert found.sentences[0] == (
        "Messages set the pace: sums of closed rounds are on their way for 75 % of the time; the "
        "actors are 20 % busy."
    )
    assert found.gain == (
        "What gains most: a larger m, so that messages are fewer (up to 4.0 x as many gradients)."
    )
    assert told(actors=0.2, closing_s=0.3).sentences[0].startswith("Neither side")


def test_messages_of_single_gradients_are_part_of_their_actors_time():
    busy = {"actor-0": 0.99, "actor-1": 0.21, "learner": 0.01}
    found = told(0.6, 0.01, busy_share=busy, rule="barrier", times="sqrt", network="sqrt")
    assert "actor-0 is 99 % busy, messages included, the mean actor" in found.sentences[0]


def test_in_one_process_the_actors_take_turns():
    found = told(actors=0.48, engine="inline")
    assert found.critical_path == "actors"
    assert found.sentences[0].startswith("The actors take turns in one process: 96 % of the time")


@pytest.mark.parametrize("counts", [[], [5]])
def test_one_actor_has_no_share_of_the_gradients(counts):
    assert "made" not in told(counts=counts).sentences[1]


def test_equal_actors_are_told_once():
    assert "each actor made 50 %." in told(counts=[7, 7]).sentences[1]


def test_before_any_work_there_is_nothing_to_say():
    found = explain({"gather": {"rule": "first", "num_gradients": 20}}, make_plan(), "local")
    assert found.critical_path is None
    assert found.sentences[0].startswith("Nothing to explain yet")


def test_given_times_that_could_not_be_kept_are_told():
    words = "40 % of the gradients took longer than the times that were given"
    assert any(words in sentence for sentence in told(overdue_share=0.4).sentences)
    assert not any("given" in sentence for sentence in told(overdue_share=0.0).sentences)
