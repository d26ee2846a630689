"""Why a run that gathers gradients is as fast as it is."""

import pytest

from tests.unit.observe.accounts import make_gather, make_plan, make_record
from tianji.explain.explain import explain
from tianji.records import NO_METRICS


def told(actors=0.97, learner=0.02, engine="local", busy_share=None, **gather):
    record = make_record(actors, learner, num_actors=2, gather=make_gather(**gather), version=12)
    record["busy_share"] = busy_share or {"actor-0": actors, "actor-1": actors, "learner": learner}
    return explain(record, make_plan(num_actors=2), engine)


def test_actors_that_work_all_the_time_are_as_they_should_be():
    assert told().critical_path == "actors"
    assert told().sentences == (
        "The actors are the bottleneck, as intended: they are busy 97 % of the time, the learner "
        "2 %.",
        "A round takes the first 20 gradients, from any actor: 1.25 rounds/s, 25.4 gradients/s; "
        "actor-1 made 75 % of them, actor-0 25 %.",
        "10 % of the gradients and 4 % of the environment steps were dropped when rounds closed. "
        "With m = 40, about 2 % of the steps would be.",
        "In 10.0 s, each actor waited 0.3 s for the next version; the learner waited 9.8 s for "
        "gradients.",
        "The actors spend their busy time on environment steps (60 %) and policy and gradients "
        "(40 %).",
        "Halving the time of environment steps would help most (up to 1.4 x as fast).",
    )


@pytest.mark.parametrize("engine", ["ray", "mpi"])
def test_actors_on_a_cluster_are_explained_as_those_of_one_machine(engine):
    assert told(engine=engine) == told()


def test_a_learner_that_cannot_keep_up_is_named():
    found = told(actors=0.3, learner=0.95)
    assert found.critical_path == "learner"
    assert "Larger rounds" in found.gain


def test_the_slowest_actor_holds_up_a_barrier():
    busy = {"actor-0": 0.99, "actor-1": 0.21, "learner": 0.01}
    found = told(0.6, 0.01, busy_share=busy, rule="barrier", discarded_share=0.0)
    assert found.sentences[0] == (
        "The slowest actor is the bottleneck: actor-0 is busy 99 % of the time, the average actor "
        "60 %, the learner 1 %."
    )
    assert "rennala-nigt" in found.gain
    assert "up to 2.9 x as many gradients" in found.gain, "one as many, the other almost five times"
    assert "Hardly any work was dropped when rounds closed." in found.sentences


def test_much_dropped_work_asks_for_a_larger_m():
    found = told(discarded_share=0.5, discarded_step_share=0.5)
    assert (
        found.gain == "A larger m would help most: less is dropped (up to 2.0 x as many gradients)."
    )
    assert "With m = 40, about 33 % of the steps would be." in found.sentences[2]


def test_a_moment_in_which_all_work_was_dropped_can_be_told():
    assert "up to 20 x as many" in told(discarded_share=1.0, discarded_step_share=1.0).gain
    assert "up to 20 x as many" in told(actors=0.0, rule="barrier").gain


def test_a_round_that_waits_says_for_whom_first():
    found = told(rule="harmonic", waiting_for=[1], late=[1], open_s=8.4)
    assert found.sentences[0] == (
        "The round is waiting for actor-1: gradients for version 12 have been missing for 8 s."
    )
    assert found.gain == (
        "Going on without actor-1 would help most (algorithm.absent_after_s), unless it comes back."
    )
    slow = told(rule="harmonic", waiting_for=[1], open_s=19.0)
    assert "waiting" not in slow.sentences[0] and "absent_after_s" not in slow.gain


def test_what_another_rule_would_save_in_messages_is_not_guessed():
    busy = {"actor-0": 0.99, "actor-1": 0.21, "learner": 0.01}
    found = told(0.6, 0.01, busy_share=busy, rule="barrier", network="sqrt")
    assert found.gain.endswith("else malenia-nigt.")


def test_a_barrier_whose_actors_hold_all_cores_gains_nothing_by_another_rule():
    gather = make_gather(rule="barrier")
    record = make_record(0.6, 0.01, num_actors=2, gather=gather)
    record["busy_share"] = {"actor-0": 0.99, "actor-1": 0.21, "learner": 0.01}
    record["core_s"] = {"actor-0": 9.9, "actor-1": 9.9, "learner": 0.1}
    for waits in record["waited_s"].values():
        waits["core"] = 3.0
    assert "rennala-nigt" not in explain(record, make_plan(num_actors=2), "local").gain


def test_gradients_that_had_only_just_begun_are_hardly_any_work():
    sentences = told(discarded_share=0.1, discarded_step_share=0.0002).sentences
    assert "Hardly any work was dropped when rounds closed." in sentences


def test_actors_that_differ_by_less_than_is_told_have_made_the_same():
    assert "; each actor made 50 %." in " ".join(told(counts=[501, 499]).sentences)


def test_waits_that_would_be_told_as_no_seconds_are_left_out():
    record = make_record(0.97, 0.02, num_actors=2, gather=make_gather(), busy_share={})
    for name in ("worked_s", "waited_s"):
        record[name] = {
            role: {of_what: seconds / 10 for of_what, seconds in spent.items()}
            for role, spent in record[name].items()
        }
    found = explain({**record, "span_s": 1.0}, make_plan(num_actors=2), "local")
    assert "In 1.0 s, the learner waited 1.0 s for gradients." in found.sentences


def test_every_gradient_that_makes_a_version_drops_nothing():
    sentences = " ".join(told(rule="every", discarded_share=0.0).sentences)
    assert "Every gradient makes a version: 25.4 gradients/s;" in sentences
    assert "ropped" not in sentences and "rounds/s" not in sentences


def test_gradients_that_were_too_old_are_told():
    sentences = " ".join(told(rule="every", discarded_share=0.25).sentences)
    assert "25 % of the gradients were discarded because they were more than max_lag" in sentences


def test_actors_that_wait_for_their_own_gradients_gain_by_longer_unrolls():
    found = told(actors=0.5, learner=0.5, rule="every", discarded_share=0.0)
    assert found.gain.startswith("Longer unrolls would help most")


def test_simulated_times_are_not_work():
    found = told(engine="virtual", discarded_step_share=None, times="sqrt")
    sentences = " ".join(found.sentences)
    assert "With m = 40, about 5 % of the gradients would be." in sentences
    assert "In 10.0 s of simulated time, each actor waited 0.3 s for the next version;" in sentences
    assert "busy time" not in sentences and found.gain == ""
    assert "until gradients were due" in " ".join(told(times="sqrt").sentences)


def test_of_rounds_that_were_not_closed_nothing_was_dropped():
    assert "dropped" not in " ".join(told(rounds_per_s=0.0, discarded_share=0.0).sentences)


def test_messages_that_take_most_of_the_time_are_the_limit():
    found = told(actors=0.2, times="sqrt", network="sqrt", closing_s=0.6)
    assert found.sentences[0] == (
        "Messages are the bottleneck: the sums of closed rounds are in transit 75 % of the time; "
        "the actors are busy 20 % of the time."
    )
    assert found.gain == (
        "A larger m would help most: fewer messages (up to 4.0 x as many gradients)."
    )
    assert told(actors=0.2, closing_s=0.3).sentences[0].startswith("Neither side")


def test_messages_of_single_gradients_are_part_of_their_actors_time():
    busy = {"actor-0": 0.99, "actor-1": 0.21, "learner": 0.01}
    found = told(0.6, 0.01, busy_share=busy, rule="barrier", times="sqrt", network="sqrt")
    assert (
        "actor-0 is busy 99 % of the time (messages included), the average actor"
        in found.sentences[0]
    )


def test_in_one_process_the_actors_take_turns():
    found = told(actors=0.48, engine="inline")
    assert found.critical_path == "actors"
    assert found.sentences[0].startswith(
        "The actors take turns in one process and use 96 % of the time"
    )


@pytest.mark.parametrize("counts", [[], [5]])
def test_one_actor_has_no_share_of_the_gradients(counts):
    assert "made" not in told(counts=counts).sentences[1]


def test_equal_actors_are_told_once():
    assert "each actor made 50 %." in told(counts=[7, 7]).sentences[1]


def test_before_any_work_there_is_nothing_to_say():
    gather = make_gather(rounds_per_s=0.0, gradients_per_s=0.0)
    found = explain({**NO_METRICS, "gather": gather}, make_plan(), "local")
    assert found.critical_path is None
    assert found.sentences[0].startswith("There is nothing to explain yet")


def test_given_times_that_could_not_be_kept_are_told():
    words = "40 % of the gradients took longer than their given times"
    assert any(words in sentence for sentence in told(overdue_share=0.4).sentences)
    assert not any("given" in sentence for sentence in told(overdue_share=0.0).sentences)


def test_time_without_a_learner_is_told_in_runs_with_rounds_too():
    """Started again once: 3.0 of 10 s are missing; an actor that was started again is no reason."""
    record = make_record(0.9, 0.2, num_actors=2, gather=make_gather(), restarts=1)
    for spent in (record["worked_s"]["learner"], record["waited_s"]["learner"]):
        spent.update({name: 0.7 * seconds for name, seconds in spent.items()})
    of_learner = {**record, "learner_restarts": 1}
    plan, away = make_plan(num_actors=2), "The learner was away for 3.0 s while it was started"
    assert any(one.startswith(away) for one in explain(of_learner, plan, "local").sentences)
    assert "away" not in " ".join(explain(record, plan, "local").sentences)
