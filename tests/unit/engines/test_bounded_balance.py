"""Queues of fixed size in simulated time: who waits, what is lost, and how old items are."""

from tests.unit.engines.test_virtual_engine import STEPS, run
from tianji.channels.gauges import Activity, Gauge

SLOW_LEARNER = {"name": "tests.fakes.scripted:ALGORITHM", "script": [{}] * 40}
QUEUE = {"algorithm": SLOW_LEARNER, "max_lag": 1, "queue_size": 3, "max_env_steps": 30 * STEPS}


def result(run_dir, **values):
    """Return the record of a run, and the gauges of its actor."""
    outcome, watcher, _ = run(run_dir, **QUEUE, **values)
    return outcome["record"], watcher.gauges.rows["actor-0"]


def test_actors_wait_for_a_full_queue_and_nothing_is_lost(tmp_path):
    record, actor = result(tmp_path, balance="blocking")
    assert record["discarded_items"] == 0
    assert record["busy_share"]["actor-0"] < 0.3
    assert actor[Gauge.WAIT_NS] > 0.7e9 * record["wall_s"]
    assert actor[Gauge.ACTIVITY] == Activity.PACED
    assert record["lag_versions"]["max"] == QUEUE["queue_size"], "the queue bounds the lag"
    assert record["ratio"]["actual"] == 1.0


def test_actors_do_not_wait_for_a_queue_that_drops_its_oldest(tmp_path):
    record, _ = result(tmp_path, balance="dropping")
    assert record["busy_share"]["actor-0"] > 0.97
    assert record["discarded_items"] > 0
