"""Which balance fits which run, and the slots that a queue of fixed size takes."""

import pytest

from tests.unit.planning.plans import REPLAY, config, plan_for
from tianji.buffer.free_running import SPARE_SLOTS_PER_ACTOR
from tianji.errors import UsageError
from tianji.planning.resolve.slots import MOST_FREE_SLOTS

TWO = {"num_envs": 4, "num_actors": 2}


def queue_plan(**values):
    return plan_for(config(**TWO, **values))


@pytest.mark.parametrize("balance", ["blocking", "dropping"])
def test_a_queue_holds_two_batches_unless_the_person_says_how_many_unrolls(balance):
    per_version = queue_plan().unrolls_per_version
    assert queue_plan(balance=balance).queue_size == 2 * per_version
    assert queue_plan(balance=balance, queue_size=7).queue_size == 7
    assert queue_plan().queue_size == 0


def test_the_lag_of_a_queue_is_that_of_an_unroll_that_goes_through_all_of_it():
    per_version = queue_plan().unrolls_per_version
    assert queue_plan(balance="blocking").lag_target == 2
    assert queue_plan(balance="blocking", queue_size=5 * per_version).lag_target == 5
    assert queue_plan(balance="blocking", max_lag=0, engine="inline").lag_target == 0


def test_slots_are_those_of_the_queue_of_a_batch_in_use_and_of_actors_that_do_not_wait():
    spare = 2 * SPARE_SLOTS_PER_ACTOR
    blocking, dropping = (
        queue_plan(balance=balance, queue_size=7) for balance in ("blocking", "dropping")
    )
    in_use = 7 + blocking.unrolls_per_version
    assert blocking.num_slots == in_use + spare
    assert dropping.num_slots == in_use + spare + 2 * MOST_FREE_SLOTS
    longer = queue_plan(balance="blocking", queue_size=700)
    added = longer.shared_memory_bytes - blocking.shared_memory_bytes
    assert added >= 693 * longer.slot_bytes, "the memory budget counts them"


REFUSED = [
    ({"balance": "free"}, "has no replay store"),
    ({"balance": "blocking", "algorithm": REPLAY}, "does not learn from a queue"),
    ({"balance": "dropping", "algorithm": REPLAY}, "does not learn from a queue"),
    ({"balance": "blocking", "queue_size": 1}, "the learner would wait forever"),
    ({"balance": "blocking", "max_lag": 0}, "actors fill the queue while the learner trains"),
    ({"balance": "dropping", "lag_target": 1}, "the lag follows from the speeds"),
    (
        {"balance": "free", "algorithm": REPLAY, "lag_target": 1},
        "the lag follows from the speeds where neither side waits",
    ),
    ({"queue_size": 4}, "balance is 'paced', which has no queue of fixed size"),
    ({"plan": {"actors_per_worker": 2}}, "a GPU or a server infers for one"),
]


@pytest.mark.parametrize(("values", "reason"), REFUSED)
def test_what_does_not_fit_is_refused_with_the_reason(values, reason):
    with pytest.raises(UsageError, match=reason) as error:
        queue_plan(**values)
    assert "Use " in str(error.value)


def test_in_one_process_nobody_is_asynchronous_so_that_a_queue_needs_no_lag():
    assert queue_plan(balance="blocking", max_lag=0, engine="inline").balance == "blocking"
