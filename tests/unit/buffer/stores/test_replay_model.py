"""The rings of a replay store against a model that keeps whole episodes."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.fakes.replay import make_rings, with_place, write_place
from tianji.buffer.stores.rings import Items
from tianji.buffer.stores.saved_rings import load_rings, save_rings
from tianji.channels.layout import STANDARD_FIELDS, Layout
from tianji.types import Field

FRAME = (2, 2)
GAMMA = 0.5


class Model:
    """A lane's actor: makes rows of random episodes, and keeps them all in lists."""

    def __init__(self, rng, layout, length, lookahead, num_frames):
        self.rng, self.layout = rng, layout
        self.length, self.first = length, lookahead - 1
        self.num_frames, self.lookahead = num_frames, lookahead
        self.num_envs = layout.num_envs
        self.origin = -1
        self.segments = []
        """Of consecutive rows: each row is a dict of the step, with its observation."""
        self.fresh()

    def fresh(self):
        """The environments are reset: nothing is known of what was before."""
        self.origin += 1
        self.made = 0
        self.rows = []  # since the reset of all environments
        self.ended = np.zeros(self.num_envs, bool)
        self.age = np.zeros(self.num_envs, int)
        self.frames = [[] for _ in range(self.num_envs)]
        self._observe()

    def _observe(self):
        self.frame = self.rng.integers(1, 255, (self.num_envs, *FRAME), np.uint8)
        for env, frames in enumerate(self.frames):
            if self.age[env] == 0:
                frames.clear()
            frames.append(self.frame[env])

    def _stacks(self):
        none = np.zeros(FRAME, np.uint8)
        padded = [[none] * self.num_frames + frames for frames in self.frames]
        return np.stack([np.stack(frames[-self.num_frames :]) for frames in padded])

    def _step(self):
        row = {
            "frame": self.frame, "stack": self._stacks(), "age": self.age.copy(),
            "valid": ~self.ended,
            "reward": self.rng.integers(0, 100, self.num_envs).astype(np.float32),
            "action": self.rng.integers(0, 1 << 40, self.num_envs),
        }  # fmt: skip
        ends = self.rng.random((2, self.num_envs)) < 0.15
        row["terminated"], row["truncated"] = ends & row["valid"]
        was_reset = self.ended
        self.ended = row["terminated"] | row["truncated"]
        self.age = np.where(was_reset, 0, self.age + 1)
        self._observe()
        row["next_stack"] = self._stacks()
        self.rows.append(row)

    def make(self, arrays, slot, num_new):
        """Make an unroll of so many new rows, and write it as an actor does."""
        begin = len(self.rows)
        for _ in range(num_new):
            self._step()
        rng, history = self.rng, self.num_frames - 1
        for array in arrays.values():  # what is not written holds anything
            array[slot] = rng.integers(0, 2, array[slot].shape)
        for name in ("valid", "terminated", "truncated"):
            arrays[name][slot] = False
        for row in range(self.first + num_new):
            at = begin - self.first + row
            if at >= 0:
                for name in ("valid", "terminated", "truncated", "reward", "action"):
                    arrays[name][slot, row] = self.rows[at][name]
        for row in range(-history, self.first + num_new + 1):
            at = begin - self.first + row
            if 0 <= at < len(self.rows):
                arrays["obs"][slot, history + row] = self.rows[at]["frame"]
            elif at == len(self.rows):
                arrays["obs"][slot, history + row] = self.frame
            if row >= 0 and 0 <= at < len(self.rows):
                arrays["age"][slot, row] = self.rows[at]["age"]
            elif at == len(self.rows):
                arrays["age"][slot, row] = self.age
        write_place(arrays, slot, self.origin, self.made, num_new)
        self.made += num_new

    def item(self, segment, row, env):
        """The item that begins there, by a walk through the rows."""
        rows, total, discount = self.segments[segment], 0.0, 1.0
        for k in range(self.lookahead):
            if row + k >= len(rows) or not rows[row + k]["valid"][env]:
                break
            step = rows[row + k]
            total += discount * float(step["reward"][env])
            discount *= GAMMA
            stack = step["next_stack"][env]
            if step["terminated"][env]:
                discount = 0.0
            if step["terminated"][env] or step["truncated"][env]:
                break
        return total, discount, rows[row]["stack"][env].tobytes(), stack.tobytes()


def layout_of(rows, num_envs, num_frames):
    fields = (
        Field("obs", "uint8", FRAME, "obs", history=num_frames - 1),
        Field("age", "uint8", (), "obs"),
        Field("action", "int64"),
        *STANDARD_FIELDS,
    )
    return with_place(Layout(fields, rows, num_envs))


def all_items(rings, lane):
    (begin, count) = rings.begins()[lane], rings.counts()[lane]
    row, env = np.mgrid[begin : begin + count, : rings.num_envs].reshape(2, -1)
    items = Items(np.full_like(row, lane), row, env)
    valid = rings.arrays["valid"].reshape(-1).take(rings.place(items))
    items = Items(*(each[valid] for each in items))
    if not valid.any():
        return {}
    arrays = rings.gather(items, GAMMA)
    return {
        int(arrays["action"][i]): (
            float(arrays["reward"][i]), float(arrays["discount"][i]),
            arrays["obs"][i].tobytes(), arrays["next_obs"][i].tobytes(),
        )
        for i in range(len(items.row_B))
    }  # fmt: skip


def expected_items(model):
    """The items of all rows that were put; those that look beyond the last row come later."""
    last = model.lookahead - 1
    found = {}
    for number, rows in enumerate(model.segments):
        complete = len(rows) - (last if number == len(model.segments) - 1 else 0)
        for row in range(complete):
            for env in range(model.num_envs):
                if rows[row]["valid"][env]:
                    action = int(rows[row]["action"][env])
                    found.pop(action, None)  # after a cut, a row may come again with a later unroll
                    found[action] = model.item(number, row, env)
    return found


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    length=st.integers(1, 6),
    lookahead=st.integers(1, 4),
    num_frames=st.integers(1, 4),
    extra=st.integers(0, 25),
    events=st.lists(st.sampled_from("ppppppdfsr"), min_size=1, max_size=30),
)
@example(seed=0, length=1, lookahead=4, num_frames=1, extra=0, events=["p", "p", "d", "p"])
def test_every_item_is_what_whole_episodes_give(seed, length, lookahead, num_frames, extra, events):
    """p: put, d: an unroll is lost on its way, f: the actor is replaced, s: a short unroll, r: a
    store is saved and loaded."""
    rng = np.random.default_rng(seed)
    layout = layout_of(length + lookahead - 1, 2, num_frames)
    rings = make_rings(layout, 1, length + extra, lookahead)
    arrays = {f.name: np.zeros((1, *layout.shape(f)), f.dtype) for f in layout.fields}
    model, was_cut = Model(rng, layout, length, lookahead, num_frames), True
    for event in events:
        if event == "f":
            model.fresh()
            was_cut = True
            continue
        if event == "r":
            other = make_rings(layout, 1, length + extra, lookahead)
            load_rings(other, save_rings(rings))
            rings = other
            continue
        num_new = int(rng.integers(1, length + 1)) if event == "s" else length
        begin = len(model.rows)
        model.make(arrays, 0, num_new)
        if event == "d":
            was_cut = True
            continue
        rings.put(arrays, 0, 0, version=0)
        first = max(0, begin - model.first) if was_cut else begin
        if was_cut:
            model.segments.append([])
        model.segments[-1].extend(model.rows[first:])
        was_cut = False
        found, expected = all_items(rings, 0), expected_items(model)
        assert found.items() <= expected.items()
        missing = [action for action in expected if action not in found]
        order = list(expected)
        assert missing == order[: len(missing)], "the oldest are given up first"
        held = sum(len(rows) for rows in model.segments)
        if held + len(model.segments) * (num_frames + lookahead) <= length + extra:
            assert not missing, "everything fits"
        if len(model.segments) == 1 and held > length + extra + lookahead + num_frames:
            assert rings.counts() == [length + extra], "as much is held as was asked for"
