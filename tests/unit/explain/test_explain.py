"""The sentences that say why a run is as fast as it is."""

import pytest

from tests.unit.observe.accounts import make_plan, make_record
from tianji.explain.explain import explain, prediction_error
from tianji.explain.words import NOTHING_YET
from tianji.records import NO_METRICS, NO_RATES


def told(record, plan=None, engine="local"):
    return explain(record, plan or make_plan(), engine)


@pytest.mark.parametrize(
    ("actors", "learner", "path"),
    [
        (0.25, 0.97, "learner"),
        (0.99, 0.30, "actors"),
        (0.95, 0.93, "both"),
        (0.60, 0.62, "neither"),
    ],
)
def test_whoever_works_all_the_time_is_the_critical_path(actors, learner, path):
    assert told(make_record(actors, learner)).critical_path == path


def test_a_learner_that_mostly_receives_makes_the_buffer_the_critical_path():
    record = make_record()
    record["worked_s"]["learner"] = {"updates": 3.0, "publishing": 0.5, "buffer": 6.0}
    found = told(record)
    record["worked_s"]["learner"] = {"updates": 5.5, "publishing": 0.5, "buffer": 3.5}
    assert told(record).critical_path == "learner"
    assert found.critical_path == "buffer"
    assert found.sentences[0].startswith("The buffer is the bottleneck: it is busy 95 %")


def test_a_run_that_trains_on_as_fast_as_the_learner_can():
    assert told(make_record()).sentences == (
        "The learner is the bottleneck: it is busy 97 % of the time, the actor 25 %.",
        "In 10.0 s, the actor waited 7.5 s for the learner to catch up; the learner waited 0.3 s "
        "for unrolls.",
        "The learner spends its busy time on updates (90 %), the buffer (6 %) and publishing "
        "(4 %).",
        "Halving the update time would help most (up to 1.8 x as fast).",
    )


def test_a_run_that_waits_for_its_environments():
    found = told(make_record(0.99, 0.30, num_actors=4, environment=0.8, cores=5))
    assert found.sentences[0] == (
        "The actors are the bottleneck: they are busy 99 % of the time, the learner 30 %."
    )
    assert "each actor waited 0.1 s for a grant;" not in found.sentences[1]
    assert "the learner waited 7.0 s for unrolls" in found.sentences[1]
    assert found.sentences[2] == (
        "The actors spend their busy time on environment steps (80 %) and inference (20 %)."
    )
    assert found.gain == (
        "Halving the time of environment steps would help most (up to 1.7 x as fast)."
    )
    assert found.gain in found.sentences


def test_time_without_a_learner_is_neither_idle_time_nor_a_reason():
    """A learner that was killed and started again: 3.0 of 10 s are missing."""
    record = make_record(learner=0.97, restarts=1, learner_restarts=1)
    for spent in (record["worked_s"]["learner"], record["waited_s"]["learner"]):
        spent.update({name: 0.7 * seconds for name, seconds in spent.items()})
    found = told(record)
    assert found.critical_path == "learner"
    assert found.sentences[0].startswith("The learner is the bottleneck: it is busy 97 %")
    assert "the learner waited 0.2 s for unrolls" in found.sentences[1]
    assert found.sentences[2].startswith("The learner was away for 3.0 s while it was started")
    assert "away" not in " ".join(told({**record, "learner_restarts": 0}).sentences)


@pytest.mark.parametrize(
    ("num_actors", "env_failures", "away", "faults"),
    [
        (1, 192, "The actor was away for 6.0 s while", "7 restarts and 192 environment failures"),
        (2, 0, "Each actor was away for 6.0 s on average while", "7 restarts"),
    ],
)
def test_actors_that_keep_failing_are_the_reason_and_not_the_lag(
    num_actors, env_failures, away, faults
):
    faults_of = {"restarts": 7, "actor_restarts": 7, "env_failures": env_failures}
    record = make_record(0.3, 0.1, num_actors, **faults_of)
    for i in range(num_actors):
        record["waited_s"][f"actor-{i}"]["grant"] = 1.0
    found = told(record)
    assert away in " ".join(found.sentences)
    assert found.gain == (
        f"Actors that do not fail would help most: the learner waited for new ones ({faults})."
    )
    of_another_role = " ".join(told({**record, "actor_restarts": 0}).sentences)
    assert "away" not in of_another_role and "a higher max_lag would help" in of_another_role


def test_the_rest_of_an_actors_time_is_no_absence():
    """Its loop takes a few percent itself; the restart may be hours ago."""
    record = make_record(0.3, 0.1, restarts=1, actor_restarts=1)
    record["waited_s"]["actor-0"]["grant"] = 6.7
    assert "away" not in " ".join(told(record).sentences)


def test_a_gain_ends_where_the_other_side_becomes_the_limit():
    gain = told(make_record(actors=0.75, learner=0.97)).gain
    assert "(up to 1.3 x as fast; then the actor would be the bottleneck)" in gain
    gain = told(make_record(actors=0.98, learner=0.80, environment=0.9)).gain
    assert "(up to 1.2 x as fast; then the learner would be the bottleneck)" in gain


def test_two_sides_that_are_never_the_limit_alone_are_said_to_share_the_cores():
    record = make_record(0.60, 0.62, no_core=0.3, core_s={"actor-0": 9.0, "learner": 9.0})
    found = told(record)
    assert found.sentences[0] == (
        "Neither side is the bottleneck all the time: the learner is busy 62 % of the time, the "
        "actor 60 % (they share 2 cores)."
    )
    assert (
        "the learner waited 3.8 s for unrolls and had no free core for 3.0 s." in found.sentences[1]
    )
    assert "The actor spends" in found.sentences[2] and "The learner spends" in found.sentences[2]
    assert "Another core" in found.gain
    assert "Another core" not in told(make_record(0.60, 0.62)).gain


def test_a_learner_without_a_core_gains_most_from_one():
    record = make_record(no_core=0.6, core_s={"actor-0": 12.0, "learner": 3.7})
    assert told(record).gain == "Another core would help most (up to 2.5 x as fast)."


def test_one_more_core_among_many_actors_gains_no_more_than_a_core():
    core_s = {**{f"actor-{i}": 1.95 for i in range(10)}, "learner": 0.1}
    record = make_record(0.99, 0.01, num_actors=10, core_s=core_s)
    for name in core_s:
        record["waited_s"][name]["core"] = 8.0
    assert told(record).gain == "Another core would help most (up to 1.5 x as fast)."


def test_cores_that_nobody_here_uses_while_one_is_missing_are_held_by_others():
    found = told(make_record(no_core=0.6))
    assert "the 1.4 cores that other programs use" in found.gain
    assert "idle" not in found.gain


def test_what_others_hold_brings_no_more_than_they_hold():
    core_s = {"actor-0": 5.0, "actor-1": 5.0, "learner": 4.0}
    record = make_record(0.99, 0.01, num_actors=2, core_s=core_s)
    for name in core_s:
        record["waited_s"][name]["core"] = 8.0
    gain = "Freeing the 0.6 cores that other programs use would help most (up to 1.6 x as fast)."
    assert told(record).gain == gain


def test_late_unrolls_checkpoints_and_parking_are_named():
    record = make_record(num_actors=2)
    record["waited_s"]["actor-0"] = record["waited_s"]["actor-1"] = {"grant": 1.0, "parked": 2.0}
    record["waited_s"]["learner"] = {"unrolls": 0.2, "late_unrolls": 0.5, "saving": 0.3}
    sentence = told(record).sentences[1]
    assert "each actor waited 2.0 s while parked and 1.0 s for the learner" in sentence
    assert (
        "the learner waited 0.5 s for late unrolls, 0.3 s for checkpoints and 0.2 s for unrolls"
        in sentence
    )


def test_time_lost_to_checkpoints_is_time_at_work():
    record = make_record(learner=0.6)
    record["waited_s"]["learner"]["saving"] = 3.9
    found = told(record)
    assert found.critical_path == "learner"
    assert "checkpoints (39 %)" in found.sentences[2]


def test_no_wait_is_longer_than_its_span():
    """A wait that began before the span is counted in it when it is over."""
    record = make_record(actors=0.95, learner=0.05)
    record["waited_s"]["learner"] |= {"unrolls": 9.0, "late_unrolls": 2.0, "core": 11.0}
    words = " ".join(told(record).sentences)
    assert "In 10.0 s, " in words
    assert "waited 8.2 s for unrolls and 1.8 s for late unrolls" in words
    assert "had no free core for 10.0 s" in words


def test_waits_of_less_than_a_hundredth_are_not_told():
    sentence = told(make_record(actors=0.995, learner=0.995)).sentences[1]
    assert sentence == "In 10.0 s, no role waited for more than 1 % of the time."


def test_more_actors_are_proposed_while_cores_are_idle():
    plan = make_plan(num_actors=2, envs_per_actor=4)
    gain = told(make_record(0.99, 0.30, num_actors=2, cores=8), plan).gain
    assert gain.endswith("5.7 cores are idle: 4 actors could be up to 100 % faster.")
    assert "idle" not in told(make_record(0.99, 0.30, num_actors=2, cores=3), plan).gain
    few = make_plan(num_actors=8, envs_per_actor=1)
    assert "idle" not in told(make_record(0.99, 0.30, num_actors=8, cores=64), few).gain


def test_actors_that_wait_for_a_simulator_may_be_more_than_cores():
    record = make_record(0.99, 0.10, num_actors=2, core_s={"actor-0": 0.5, "learner": 1.0})
    gain = told(record, make_plan(num_actors=2, envs_per_actor=4)).gain
    assert "4 actors could be up to 100 % faster" in gain


def test_actors_that_take_turns_on_one_thread_need_no_more_of_them():
    record = make_record(0.99, 0.30, num_actors=2, cores=16)
    plan = make_plan(num_actors=2, envs_per_actor=32)
    assert "cores are idle: 4 actors" in told(record, plan).gain
    in_turns = plan.model_copy(update={"actors_per_worker": 2})
    assert "idle" not in told(record, in_turns).gain


def test_more_threads_are_left_to_a_measurement_and_a_measured_plan_has_made_it():
    record = make_record(cores=4)
    assert "2.8 cores are idle: `tianji plan` measures" in told(record).gain
    assert "idle" not in told(record, make_plan(promised=40_000)).gain
    assert "idle" not in told(make_record(cores=2)).gain


@pytest.mark.parametrize(
    ("engine", "lag_target", "how"),
    [("inline", 1, "The local engine with max_lag 1"), ("local", 0, "max_lag 1")],
)
def test_serial_training_takes_turns(engine, lag_target, how):
    record = make_record(0.40, 0.55)
    found = told(record, make_plan(lag_target=lag_target), engine)
    assert found.critical_path == "learner"
    assert found.sentences[0] == "Sampling (40 % of the time) and training (55 %) take turns."
    assert found.gain.startswith(f"{how} would help most: ")
    assert "up to 1.7 x as fast" in found.gain
    assert "behind" not in found.sentences[1]
    assert told(make_record(0.6, 0.3), make_plan(lag_target=0)).critical_path == "actors"


def test_a_promise_that_was_kept_and_one_that_was_not():
    kept = told(make_record(), make_plan(promised=42_000)).sentences[-1]
    assert kept == "The plan predicted 42,000 steps/s; the run makes 40,000 (-5 %)."
    broken = told(make_record(), make_plan(promised=60_000, bottleneck="sampling")).sentences[-1]
    assert broken == (
        "The run is 33 % slower than planned: 40,000 steps/s instead of 60,000. The plan expected "
        "the actors to be the limit."
    )
    better = told(make_record(), make_plan(promised=30_000)).sentences[-1]
    assert better.startswith(
        "The run is 33 % faster than planned: 40,000 steps/s instead of 30,000"
    )


def test_no_part_of_the_work_is_more_than_all_of_it():
    record = make_record()
    record["worked_s"]["learner"] = {"updates": 10.3, "publishing": 0.0, "buffer": 0.0}
    assert "updates (100 %)" in told(record).sentences[2]
    record["worked_s"]["learner"]["buffer"] = 0.7
    assert "updates (94 %) and the buffer (6 %)" in told(record).sentences[2]


def test_the_error_of_a_prediction_is_that_of_each_rate():
    prediction = make_plan(promised=50_000).prediction
    rates = {"produced": 40_000, "received": 50_000, "trained": 165_000}
    assert prediction_error(prediction, rates) == {
        "produced": pytest.approx(-0.2), "received": 0.0, "trained": pytest.approx(0.1)
    }  # fmt: skip
    assert prediction_error(make_plan(promised=0.0).prediction, NO_RATES) == {}


def test_a_long_time_is_told_without_digits():
    record = make_record(span_s=234.5)
    assert told(record).sentences[1].startswith("In 234 s, ")


@pytest.mark.parametrize(
    "record",
    [
        NO_METRICS,
        make_record(span_s=0.0),
        make_record(0.0, 0.0),
        {**NO_METRICS, "span_s": 3.0},
        make_record(0.0, 0.04, rates_per_s=NO_RATES),
    ],
)
def test_without_an_account_of_times_there_is_nothing_to_explain(record):
    found = told(record, make_plan(promised=1.0))
    assert (found.critical_path, found.sentences) == (None, (NOTHING_YET,))


def test_a_learner_that_works_is_the_bottleneck_although_nothing_is_produced():
    record = make_record(0.0, 1.0, rates_per_s={**NO_RATES, "trained": 100.0})
    assert told(record).critical_path == "learner"


def test_a_side_that_did_nothing_worth_telling_has_no_sentence():
    found = told(make_record(0.0, 0.5))
    assert not any("time on ." in sentence for sentence in found.sentences)
    assert any(sentence.startswith("The learner spends") for sentence in found.sentences)


def test_a_record_without_processes_is_explained_all_the_same():
    """As the virtual engine's: its roles have no processes of their own."""
    record = make_record(core_s={}, usable_cores=None)
    assert told(record).sentences == told(make_record()).sentences


def served(actors=0.3, learner=0.3, server=0.2, answers=4.0, **changes):
    """Ten seconds of a run with a server that is busy for this share of the time."""
    record = make_record(actors, learner, num_actors=2, cores=8, **changes)
    record["kind"]["inference"] = "inference"
    record["busy_share"] = {"inference": server}
    record["core_s"] = {**record["core_s"], "inference": 10 * server}
    for name in ("actor-0", "actor-1"):
        record["waited_s"][name] = {"grant": 2.0, "answers": answers, "parked": 0.0, "core": 0.0}
    return record


def test_waiting_for_answers_is_told_apart_from_waiting_for_a_grant():
    found = told(served())
    assert found.critical_path == "neither"
    assert found.sentences[0] == (
        "Neither side is the bottleneck all the time: the learner is busy 30 % of the time, the "
        "actors 30 %, the inference server 20 %."
    )
    waits = "each actor waited 4.0 s for the answers of the inference server and 2.0 s for a grant;"
    assert waits in found.sentences[1]
    assert found.gain.startswith(
        "Inference by the actors themselves may help most: the actors wait for"
    )
    on_gpu = told(served(), make_plan(device="cuda:0")).gain
    assert on_gpu.startswith("Another place of inference (`tianji plan` measures them) may help")


def test_waiting_for_replies_is_told_and_what_would_help():
    record = make_record(0.3, 0.3, num_actors=2, cores=8)
    for name in ("actor-0", "actor-1"):
        record["waited_s"][name] = {"grant": 2.0, "replies": 4.0, "parked": 0.0, "core": 0.0}
    found = told(record)
    waits = "each actor waited 4.0 s for the reply of the learner or the buffer and 2.0 s for a"
    assert waits in found.sentences[1]
    assert found.gain == "A style whose actors do not wait for replies would help most."


def test_a_server_that_works_all_the_time_is_the_bottleneck():
    found = told(served(server=0.96))
    assert found.critical_path == "inference"
    assert found.sentences[0] == (
        "The inference server is the bottleneck: it is busy 96 % of the time, the actors 30 %, the "
        "learner 30 %."
    )
    assert found.gain == (
        "Halving the time that the server takes to evaluate the network would help most (up to "
        "2.0 x as fast)."
    )
    assert "(up to 1.2 x as fast)" in told(served(actors=0.8, server=0.96)).gain


def test_a_side_at_its_limit_comes_before_the_server():
    assert told(served(actors=0.97, server=0.9)).critical_path == "actors"
    first = told(served(learner=0.97)).sentences[0]
    assert first.endswith("the actors 30 %, the inference server 20 %.")


def test_cores_that_a_server_uses_are_not_idle():
    from tianji.observe.account import to_account

    assert to_account(served(server=0.5)).unused_cores == pytest.approx(8 - 0.6 - 0.3 - 0.5)


def joined(others, learner=0.4, actors=0.2, no_core=0.0):
    """Ten seconds of groups whose learners spend these shares in reductions with each other."""
    record = make_record(actors, learner, no_core=no_core)
    names = [f"{group}/learner" for group in range(len(others))]
    record["kind"] = {"0/actor-0": "actor", "1/actor-0": "actor", **dict.fromkeys(names, "learner")}
    for part in ("worked_s", "waited_s", "core_s"):
        spent = record[part]
        record[part] = dict.fromkeys(record["kind"], spent["actor-0"])
        record[part] |= dict.fromkeys(names, spent["learner"])
    for name, share in zip(names, others, strict=True):
        waits = {"unrolls": 0.0, "core": 10 * no_core}
        record["waited_s"][name] = {**waits, "others": 10 * share}
    return record


def test_learners_that_wait_for_each_other_are_named_as_the_bottleneck():
    found = told(joined([0.55, 0.5]))
    assert found.critical_path == "groups"
    assert found.sentences[:3] == (
        "Waiting for other groups is the bottleneck: a learner spends 52 % of the time on adding "
        "up gradients with the others or waiting for them, and is busy 40 %, the actors 20 %.",
        "In 10.0 s, each actor waited 8.0 s for a grant; the learner waited 5.2 s for other "
        "groups.",
        "The learner spends its busy time on updates (90 %), the buffer (6 %) and publishing "
        "(4 %).",
    )
    assert found.gain == (
        "Larger minibatches (fewer reductions), or --combine average or gossip (no waits), would "
        "help most (up to 2.3 x as fast)."
    )


def test_the_group_that_the_others_wait_for_is_named():
    found = told(joined([0.7, 0.2, 0.68]))
    assert found.sentences[0].endswith("The others wait for 1/learner.")
    assert found.gain.startswith("A faster 1/learner, or --combine average")


def test_learners_that_work_or_lack_batches_are_not_the_groups_fault():
    assert told(joined([0.1, 0.1], learner=0.88)).critical_path == "learner"
    assert told(joined([0.3, 0.3])).critical_path == "neither"
    assert told(joined([0.62, 0.6], learner=0.12)).critical_path == "groups"
    assert told(joined([0.55, 0.5], actors=0.95)).critical_path == "actors"


def test_groups_that_lack_cores_are_told_so():
    assert told(joined([0.55, 0.5], no_core=0.3)).gain.endswith(
        "would help most: the groups sometimes lack one."
    )
