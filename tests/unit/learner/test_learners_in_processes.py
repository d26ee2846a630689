"""Learners in processes of their own, connected by gloo, from the first version to the last."""

import os
import time

import numpy as np
import pytest
import torch

from tests.fakes.experience import Rig
from tests.fakes.ranks import LONG_S, on_threads
from tests.fakes.scripted import gauge_row
from tests.unit.channels.test_peers import in_processes
from tianji.algorithms.registry import load_algorithm
from tianji.channels.gauges import Gauge
from tianji.channels.inproc import InprocBoard
from tianji.channels.peers.inproc import InprocTeam
from tianji.channels.peers.interface import Joins
from tianji.channels.peers.timed import TimedPeers
from tianji.errors import ReduceBroken
from tianji.learner.joined import JoinedLearner
from tianji.learner.meeting import Meeting
from tianji.models.tensors import Snapshot, flatten
from tianji.types import Batch, Stamp

VERSIONS = 3
SETTINGS = {
    "ppo": {"epochs": 2, "minibatch_size": 16, "target_kl": 0.01},
    "dqn": {"sampling": "prioritized"},
    "apex": {},
    "impala": {"minibatches": 2},
}


class Batches:
    """Gives batches that differ from rank to rank, also in their numbers of valid rows."""

    def __init__(self, rig, rank):
        self._rig, self._rank, self._left = rig, rank, VERSIONS

    def take(self):
        if not self._left:
            return None
        self._left -= 1
        seed = 10 * self._left + self._rank
        batch = self._rig.batch(seed)
        arrays = dict(batch.arrays)
        if "valid" in arrays:
            share = 1.0 - 0.4 * self._rank
            rng = np.random.default_rng(seed)
            arrays["valid"] = arrays["valid"] & (rng.random(arrays["valid"].shape) < share)
            return Batch(arrays, (Stamp(0, 0, 0, 0, 1, 0, 0),), 1, 20)
        shape = arrays["reward"].shape
        arrays["weight"] = np.full(shape, 0.5, np.float32)
        arrays["largest_weight"] = np.full(shape[0], 1.0 + self._rank)
        return Batch(arrays, (), batch.num_items, batch.num_steps, keys=np.arange(batch.num_items))

    def finish(self, batch, version, priorities=None):
        pass


def make_rig(name):
    normalize = {"observations": True, "rewards": False}
    return Rig(name, normalize=normalize, settings=SETTINGS[name])


def learn(name, rig, peers, die_at=None):
    """Make all versions; return the parameters, the metrics and the gauges."""
    gauges = gauge_row()
    timed = TimedPeers(peers, gauges)
    assert load_algorithm(name).adds_gradients and isinstance(rig.update, Joins)
    rig.update.join(timed)
    snapshot = Snapshot(rig.model)
    learner = JoinedLearner(
        Meeting(timed),
        rig.update,
        Batches(rig, peers.rank),
        InprocBoard(snapshot.nbytes),
        snapshot.write_to,
        lambda: 0.5,
        gauges,
    )
    while learner.version < VERSIONS:
        learner.tick()
        if die_at == gauges[Gauge.UPDATES]:
            os._exit(1)
    vector = flatten(rig.model).vector_P.tolist()
    figures = gauges[Gauge.UPDATES], gauges[Gauge.REDUCED_BYTES], gauges[Gauge.COMBINE_NS] > 0
    return vector, dict(learner.metrics), figures


def learn_alone(name, peers, die_at=None):
    torch.set_num_threads(1)  # those of the process before the fork are gone
    return learn(name, make_rig(name), peers, die_at)


@pytest.mark.parametrize("name", SETTINGS)
def test_processes_learn_what_threads_learn(name):
    first, second = in_processes(lambda peers: learn_alone(name, peers), 2)
    assert first == second
    team = InprocTeam(2, LONG_S)
    ends = [team.end(rank) for rank in range(2)]
    rigs = [make_rig(name) for _ in ends]  # not on the threads, which share torch's random numbers
    programs = [
        lambda rig=rig, end=end: learn(name, rig, end) for rig, end in zip(rigs, ends, strict=True)
    ]
    threads = on_threads(programs, ends)
    np.testing.assert_allclose(first[0], threads[0][0], rtol=1e-5, atol=1e-7)
    assert first[1] == pytest.approx(threads[0][1], rel=1e-5, abs=1e-7)
    assert first[2] == threads[0][2]


def test_a_learner_that_dies_ends_the_others_within_the_limit():
    def program(peers):
        started_s = time.monotonic()
        with pytest.raises(ReduceBroken, match="one has ended, or has not come"):
            learn_alone("ppo", peers, die_at=3 if peers.rank == 1 else None)
        return time.monotonic() - started_s

    first, dead, last = in_processes(program, 3)
    assert dead is None
    assert max(first, last) < LONG_S / 2
