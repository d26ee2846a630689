"""An algorithm that learns nothing and checks everything: each item must be exactly what the
Counting world and a counting policy make, with nothing lost, doubled, reordered or misaligned.

The model holds one number, the version's own count. The policy's action says which version acted
and how many rows the actor has made; the update compares what arrives with what must be there.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from tianji.algorithms.interface import Algorithm, Minibatch, QueueCadence
from tianji.config.schema import AlgorithmConfig
from tianji.types import Field


class Tally(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = nn.Parameter(torch.zeros(1))


class AuditorActing:
    def __init__(self, model):
        self.model = model

    def begin(self, rng, unroll, first_row, steps_before):
        self.steps_before = steps_before

    def act(self, unroll, t):
        unroll["action"][t] = np.arange(unroll["action"].shape[1]) % 2
        unroll["acted"][t] = float(self.model.count.detach())
        return unroll["action"][t]

    def finish(self, unroll, first_row):
        unroll["steps_before"][:] = self.steps_before

    def greedy(self, obs):
        return np.zeros(len(obs["obs"]), np.int64)


class AuditorUpdate:
    """Keeps the next expected count per (actor, environment); raises at the first mismatch."""

    def __init__(self, model, may_skip=False):
        self.model = model
        self.may_skip = may_skip
        self.expected = {}
        self.rounds = {}
        self.skipped = 0

    def minibatches(self, batch, progress):
        width = batch.arrays["reward"].shape[1] // len(batch.stamps)
        turns = [(s.oldest_version, s.round, s.actor) for s in batch.stamps]
        assert turns == sorted(turns), turns
        for index, stamp in enumerate(batch.stamps):
            self._count(stamp)
            columns = slice(index * width, (index + 1) * width)
            self._check(stamp, {k: v[:, columns] for k, v in batch.arrays.items() if v.ndim > 1})
        yield Minibatch(lambda: torch.ones(1), self._step)

    def _count(self, stamp):
        due = self.rounds.get(stamp.actor, 0)
        assert stamp.round == due or (self.may_skip and stamp.round > due), (stamp, self.rounds)
        if stamp.round > due:
            self.skipped += stamp.round - due
            for key in [key for key in self.expected if key[0] == stamp.actor]:
                del self.expected[key]
        self.rounds[stamp.actor] = stamp.round + 1

    def _step(self):
        with torch.no_grad():
            self.model.count += 1

    def metrics(self):
        return {"count": float(self.model.count.detach()), "skipped": float(self.skipped)}

    def _check(self, stamp, arrays):
        acted = arrays["acted"][arrays["valid"]]
        assert acted.size == stamp.env_steps
        assert all(stamp.oldest_version <= version <= stamp.newest_version for version in acted)
        for env in range(arrays["reward"].shape[1]):
            key = (stamp.actor, env)
            for row in range(len(arrays["reward"])):
                if not arrays["valid"][row, env]:
                    continue
                before, after = arrays["obs"][row, env], arrays["obs"][row + 1, env]
                expected = self.expected.get(key, before[0])
                assert before[0] == expected, (key, row, before, expected)
                assert after[0] == before[0] + 1, (key, row, before, after)
                assert arrays["reward"][row, env] == after[0]
                self.expected[key] = after[0]

    def minibatch_steps(self, batch):
        return batch.num_steps

    def state(self):
        return {"count": self.model.count.detach().clone()}

    def load_state(self, state):
        with torch.no_grad():
            self.model.count.copy_(state["count"])


class AuditorConfig(AlgorithmConfig):
    name: str = "tests.fakes.auditor:ALGORITHM"
    may_skip: bool = False
    """Items that were too old when they arrived are missing."""


ALGORITHM = Algorithm(
    name="auditor",
    config=AuditorConfig,
    cadence=lambda config: QueueCadence(
        unroll_length=config.algorithm.unroll_length,
        steps_per_version=config.num_envs * config.algorithm.unroll_length,
        trained_steps_per_version=config.num_envs * config.algorithm.unroll_length,
    ),
    check=lambda spaces, config: None,
    fields=lambda spaces, config: (
        Field("action", "int64"),
        Field("acted", "float32"),
        Field("steps_before", "int64"),
    ),
    build_model=lambda spaces, config: Tally(),
    build_acting=lambda model, spaces, config: AuditorActing(model),
    build_update=lambda model, spaces, config: AuditorUpdate(model, config.algorithm.may_skip),
    export=lambda model, spaces, config: model,
)
