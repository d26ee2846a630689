"""Learners in processes of their own, connected by gloo, from the first version to the last."""

import multiprocessing
import os
import time
from functools import partial

import numpy as np
import pytest
import torch

from tests.fakes.experience import Rig
from tests.fakes.ranks import LONG_S, on_threads
from tests.fakes.scripted import gauge_row
from tianji.algorithms.registry import load_algorithm
from tianji.channels.gauges import Gauge
from tianji.channels.inproc import InprocBoard
from tianji.channels.peers.cards import shared_cards
from tianji.channels.peers.gloo import GlooPeers
from tianji.channels.peers.inproc import InprocTeam
from tianji.channels.peers.interface import Joins
from tianji.channels.peers.timed import TimedPeers
from tianji.errors import ReduceBroken
from tianji.learner.joined import JoinedLearner
from tianji.learner.meeting import Meeting
from tianji.models.tensors import Snapshot, flatten
from tianji.types import Batch, Stamp

VERSIONS = 3
SPAWN = multiprocessing.get_context("spawn")
"""A fork would inherit locks that threads of this process hold."""
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
        gauges,
    )
    while learner.version < VERSIONS:
        learner.tick()
        if die_at == gauges[Gauge.UPDATES]:
            os._exit(1)
    vector = flatten(rig.model).vector_P.tolist()
    figures = gauges[Gauge.UPDATES], gauges[Gauge.REDUCED_BYTES], gauges[Gauge.COMBINE_NS] > 0
    return vector, dict(learner.metrics), figures


def run_rank(pipe, path, rank, num_ranks, names, die_at=None):
    """Learn with other processes, all algorithms in turn; send what was found, and how long it
    took where another one died."""
    torch.set_num_threads(1)
    fds = [os.open(f"{path}-{each}", os.O_RDWR) for each in range(num_ranks)]
    peers = GlooPeers(shared_cards(rank, fds), LONG_S)
    started_s = time.monotonic()
    try:
        pipe.send([learn(name, make_rig(name), peers, die_at) for name in names])
    except ReduceBroken as error:
        pipe.send((time.monotonic() - started_s, str(error)))


def in_processes(path, num_ranks, names, dies=None):
    """Return what each rank sends; None for one that died."""
    for rank in range(num_ranks):
        path.with_name(f"{path.name}-{rank}").touch()
    pipes = [SPAWN.Pipe(duplex=False) for _ in range(num_ranks)]
    ranks = [
        SPAWN.Process(
            target=run_rank,
            args=(pipe, str(path), rank, num_ranks, names, 3 if rank == dies else None),
        )
        for rank, (_, pipe) in enumerate(pipes)
    ]
    for process in ranks:
        process.start()
    for _, pipe in pipes:
        pipe.close()
    found = [received(mine) for mine, _ in pipes]
    for process in ranks:
        process.join(LONG_S)
    return found


def received(pipe):
    assert pipe.poll(4 * LONG_S), "a rank hangs"
    try:
        return pipe.recv()
    except EOFError:
        return None


def test_processes_learn_what_threads_learn(tmp_path):
    first, second = in_processes(tmp_path / "store", 2, list(SETTINGS))
    assert first == second
    for name, found in zip(SETTINGS, first, strict=True):
        team = InprocTeam(2, LONG_S)
        ends = [team.end(rank) for rank in range(2)]
        rigs = [make_rig(name) for _ in ends]  # threads would share torch's random numbers
        programs = [partial(learn, name, rig, end) for rig, end in zip(rigs, ends, strict=True)]
        threads = on_threads(programs, ends)
        np.testing.assert_allclose(found[0], threads[0][0], rtol=1e-5, atol=1e-7)
        assert found[1] == pytest.approx(threads[0][1], rel=1e-5, abs=1e-7)
        assert found[2] == threads[0][2]


def test_a_learner_that_dies_ends_the_others_within_the_limit(tmp_path):
    first, dead, last = in_processes(tmp_path / "store", 3, ["ppo"], dies=1)
    assert dead is None
    for passed_s, text in (first, last):
        assert passed_s < LONG_S / 2
        assert "one has ended, or has not come" in text
