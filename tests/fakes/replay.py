"""A replay store over unrolls that tests write by hand."""

import numpy as np

from tianji.buffer.stores.replay import Replay, ReplayPlan
from tianji.buffer.stores.ring_layout import RingLayout
from tianji.buffer.stores.rings import Rings
from tianji.buffer.stores.sampling import UniformSampler
from tianji.channels.layout import PLACE_FIELD, Layout
from tianji.types import PLACE


def with_place(layout):
    """The layout of unrolls that a replay store takes."""
    return Layout((*layout.fields, PLACE_FIELD), layout.num_rows, layout.num_envs)


def make_rings(layout, num_lanes, capacity, lookahead=1, memory=None):
    """capacity: rows of a lane."""
    ring_layout = RingLayout(layout, num_lanes, capacity, lookahead)
    return Rings(ring_layout, np.zeros(ring_layout.nbytes, np.uint8) if memory is None else memory)


def make_replay(
    stream, layout, capacity, lookahead=1, ratio=2.0, warmup=0, minibatch=16, gamma=0.9, seed=0,
    saves_items=True, make_sampler=UniformSampler, num_lanes=None, memory=None,
    updates_per_batch=1000, keeps_ratio=True, n_step=None,
):  # fmt: skip
    """A store with memory of its own."""
    rings = make_rings(layout, num_lanes or stream.num_lanes, capacity, lookahead, memory)
    length = layout.num_rows - lookahead + 1
    plan = ReplayPlan(
        length, ratio, warmup, minibatch, gamma, seed, saves_items, updates_per_batch, keeps_ratio,
        n_step=n_step,
    )  # fmt: skip
    return Replay(plan, stream, rings, make_sampler(rings))


def write_place(arrays, slot, origin, before, made):
    arrays[PLACE][slot] = origin, before, made
