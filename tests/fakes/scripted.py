"""Parts with known answers for tests of single roles: nothing is drawn, nothing is learned.

A ScriptedWorld's environments count their steps, a ScriptedActing writes which version acted, and a
ScriptedUpdate yields what it was given. The algorithm made of them takes its cadence from its
config, so that a test can ask for any store and any batch.
"""

from __future__ import annotations

from functools import partial

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from tianji.algorithms.interface import Algorithm, Minibatch, QueueCadence, ReplayCadence
from tianji.channels.gauges import GAUGE_WORDS
from tianji.channels.layout import STANDARD_FIELDS, Layout
from tianji.config.schema import AlgorithmConfig
from tianji.envs.interface import Spaces, World
from tianji.types import Field

SPACES = Spaces(gym.spaces.Box(0.0, np.inf, (3,), np.float32), gym.spaces.Discrete(2))
PAYLOAD_BYTES = 8


def gauge_row():
    """The gauges of one role."""
    return memoryview(bytearray(8 * GAUGE_WORDS)).cast("q")


def write_version(version):
    """What a learner does at version `version`: the policy is nothing but its own number."""
    return lambda payload: payload.view(np.int64).fill(version)


def scripted_layout(num_rows, num_envs, keeps_final=False, more=()):
    fields = (
        Field("obs", "float32", (3,), "obs"),
        *((Field("final_obs", "float32", (3,)),) if keeps_final else ()),
        Field("action", "int64"),
        Field("finished", "int64"),
        *STANDARD_FIELDS,
        *more,
    )
    return Layout(fields, num_rows, num_envs)


class ScriptedWorld(World):
    """Environment n observes (n, steps it ever made, steps in its episode); the reward is the
    second of these after the step. Its episodes have `lengths[n]` steps.

    After an episode ends the next row is a reset; with keeps_final the reset is in the same step.
    """

    spaces = SPACES

    def __init__(self, lengths=(3, 5), end="terminated", keeps_final=False, offers_state=True):
        self.num_envs = len(lengths)
        self.keeps_final = keeps_final
        self.offers_state = offers_state
        self.lengths = np.array(lengths)
        self.end = end
        self.made = np.zeros(self.num_envs, np.int64)
        self.steps = np.zeros(self.num_envs, np.int64)
        self.ended = np.zeros(self.num_envs, bool)
        self.seeds = []
        self.is_closed = False

    def observe(self):
        return np.stack([np.arange(self.num_envs), self.made, self.steps], axis=1)

    def reset(self, seed, unroll):
        self.seeds.append(seed)
        self.steps[:] = 0
        self.ended[:] = False
        unroll["obs"][0] = self.observe()

    def send(self, actions):
        assert len(actions) == self.num_envs

    def recv(self, unroll, t):
        valid = ~self.ended
        self.made += valid
        self.steps = np.where(valid, self.steps + 1, 0)
        ends = valid & (self.steps == self.lengths)
        unroll["valid"][t] = valid
        unroll["reward"][t] = np.where(valid, self.made, 0)
        unroll["terminated"][t] = ends & (self.end == "terminated")
        unroll["truncated"][t] = ends & (self.end == "truncated")
        self.ended = ends
        if self.keeps_final:
            unroll["final_obs"][t][ends] = self.observe()[ends]
            self.steps[ends] = 0
            self.ended = np.zeros_like(ends)
        unroll["obs"][t + 1] = self.observe()

    def get_state(self):
        if not self.offers_state:
            return None
        return {n: getattr(self, n).copy() for n in ("made", "steps", "ended")}

    def set_state(self, state):
        for name, value in state.items():
            setattr(self, name, value.copy())

    def close(self):
        self.is_closed = True


class ScriptedActing:
    """Every action is the version that chose it. `read_policy` is how it learns that version."""

    def __init__(self, model=None):
        self.version = -1
        self.begun = []
        """(first_row, steps_before, a random number) of every unroll begun."""
        self.finished = 0

    def read_policy(self, payload):
        self.version = int(payload.view(np.int64)[0])

    def begin(self, rng, unroll, first_row, steps_before):
        self.begun.append((first_row, steps_before, int(rng.integers(2**31))))

    def act(self, unroll, t):
        unroll["action"][t] = self.version
        return unroll["action"][t]

    def finish(self, unroll, first_row):
        self.finished += 1
        unroll["finished"][first_row:] = self.finished

    def greedy(self, obs):
        return np.zeros(len(obs["obs"]), np.int64)


class Tally(nn.Module):
    """A model that holds how many updates it has had."""

    def __init__(self):
        super().__init__()
        self.count = nn.Parameter(torch.zeros(1))


class ScriptedUpdate:
    """Has the given metrics for every batch, one mapping per optimiser step; an exception among
    them is raised instead."""

    def __init__(self, script=({}, {"loss": 1.0}), model=None):
        self.script = script
        self.model = model
        self.batches = []
        self.progress = []
        self.has_gradient = False
        self._metrics = {}

    def minibatches(self, batch, progress):
        self.batches.append(batch)
        self.progress.append(progress)
        self._metrics = {}
        for given in self.script:
            yield Minibatch(partial(self._differentiate, given), partial(self._step, given))

    def _differentiate(self, given):
        if isinstance(given, Exception):
            raise given
        self.has_gradient = True
        return torch.zeros(1)

    def _step(self, given):
        assert self.has_gradient, "stepped without a gradient"
        self.has_gradient = False
        self._metrics = given or self._metrics
        if self.model is not None:
            with torch.no_grad():
                self.model.count += 1

    def metrics(self):
        return self._metrics

    def minibatch_steps(self, batch):
        return batch.num_steps // 2

    def state(self):
        return {"seen": torch.tensor(len(self.batches))}

    def load_state(self, state):
        self.batches = [None] * int(state["seen"])


class ScriptedConfig(AlgorithmConfig):
    name: str = "tests.fakes.scripted:ALGORITHM"
    unroll_length: int = 4
    lookahead: int = 1
    steps_per_version: int = 0
    """0: one unroll of every environment."""
    warmup_steps: int = 0
    store: str = "queue"
    ratio: float = 1.0
    capacity_steps: int = 0
    num_updates: int = 0
    script: tuple[dict[str, float], ...] = ({}, {"loss": 1.0})


def _cadence(config):
    asked = config.algorithm
    steps_per_version = asked.steps_per_version or asked.unroll_length * config.num_envs
    shared = {
        "unroll_length": asked.unroll_length,
        "steps_per_version": steps_per_version,
        "trained_steps_per_version": round(asked.ratio * steps_per_version),
    }
    if asked.store == "queue":
        return QueueCadence(**shared)
    return ReplayCadence(
        **shared,
        capacity_steps=asked.capacity_steps,
        num_updates=asked.num_updates,
        warmup_steps=asked.warmup_steps,
        lookahead=asked.lookahead,
    )


ALGORITHM = Algorithm(
    name="scripted",
    config=ScriptedConfig,
    cadence=_cadence,
    check=lambda spaces, config: None,
    fields=lambda spaces, config: (Field("action", "int64"), Field("finished", "int64")),
    build_model=lambda spaces, config: Tally(),
    build_acting=lambda model, spaces, config: TallyActing(model),
    build_update=lambda model, spaces, config: ScriptedUpdate(config.algorithm.script, model),
    export=lambda model, spaces, config: model,
)


class TallyActing(ScriptedActing):
    """Acts 0 or 1 by the parity of the updates behind its model."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def act(self, unroll, t):
        unroll["action"][t] = int(self.model.count.detach()) % 2
        return unroll["action"][t]
