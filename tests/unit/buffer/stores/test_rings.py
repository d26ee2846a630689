"""The rings of a replay store: a death at any instruction, lives, and observations on a device."""

import numpy as np
import pytest
import torch

from tests.fakes.replay import make_rings, with_place, write_place
from tests.fakes.scripted import scripted_layout
from tianji.buffer.stores.device_observations import DeviceObservations, Turns, on_device
from tianji.buffer.stores.ring_layout import RingLayout
from tianji.buffer.stores.rings import Items, Rings
from tianji.channels.layout import STANDARD_FIELDS, Layout
from tianji.envs.spaces import Frames, observation_fields
from tianji.types import LIFE_LOST, Field

ROWS, ENVS, CAPACITY, LOOKAHEAD = 4, 2, 9, 3


def unroll_arrays(layout, number, continues=True):
    """Rewards, actions and observations say which row of the lane they are, ends are rare."""
    arrays = {f.name: np.zeros((1, *layout.shape(f)), f.dtype) for f in layout.fields}
    first = number * ROWS - (LOOKAHEAD - 1)
    row = first + np.arange(layout.num_rows + 1)[:, None] + np.zeros(ENVS, int)
    arrays["valid"][0] = row[:-1] >= 0
    arrays["reward"][0] = arrays["action"][0] = row[:-1]
    arrays["obs"][0] = row[..., None]
    if "final_obs" in arrays:
        arrays["truncated"][0] = (row[:-1] % 3 == 0) & (row[:-1] >= 0)
        arrays["final_obs"][0] = 1000 + row[:-1, :, None]
    write_place(arrays, 0, 0 if continues else number, number * ROWS if continues else 0, ROWS)
    return arrays


def items_of(rings):
    (begin,), (count,) = rings.begins(), rings.counts()
    row, env = np.mgrid[begin : begin + count, :ENVS].reshape(2, -1)
    items = Items(np.zeros_like(row), row, env)
    valid = rings.arrays["valid"].reshape(-1).take(rings.place(items))
    return Items(*(each[valid] for each in items))


def check(rings):
    """Every item is whole; before a cut it looks less far ahead."""
    items = items_of(rings)
    if not len(items.row_B):
        return set()
    arrays = rings.gather(items, gamma=1.0)
    for action, reward, obs, following in zip(
        *(arrays[name] for name in ("action", "reward", "obs", "next_obs")), strict=True
    ):
        rows = [action]
        while len(rows) < LOOKAHEAD and (rows[-1] % 3 or not rings.layout.finals):
            rows.append(rows[-1] + 1)
        while reward < sum(rows):
            rows.pop()
        assert reward == sum(rows)
        assert obs.tolist() == [action] * 3
        is_end = rings.layout.finals and rows[-1] % 3 == 0
        assert following.tolist() == [1000 + rows[-1] if is_end else rows[-1] + 1] * 3
    return set(arrays["action"].tolist())


class Dies(BaseException):
    """The process is killed here."""


class Dying(np.ndarray):
    """An array after some of whose writes the process dies."""

    left = None

    def __setitem__(self, index, value):
        if Dying.left is not None:
            if Dying.left == 0:
                raise Dies
            Dying.left -= 1
        super().__setitem__(index, value)


class DyingWords:
    def __init__(self, words):
        self._words = words

    def __getitem__(self, index):
        return self._words[index]

    def __setitem__(self, index, value):
        if Dying.left is not None:
            if Dying.left == 0:
                raise Dies
            Dying.left -= 1
        self._words[index] = value


@pytest.mark.parametrize("keeps_final", [False, True])
@pytest.mark.parametrize("number", [0, 1, 6])
def test_a_death_at_any_write_leaves_whole_items(number, keeps_final):
    layout = with_place(scripted_layout(ROWS + LOOKAHEAD - 1, ENVS, keeps_final))
    nbytes = RingLayout(layout, 1, CAPACITY, LOOKAHEAD).nbytes
    for writes in range(100):
        memory = np.zeros(nbytes, np.uint8)
        rings = make_rings(layout, 1, CAPACITY, LOOKAHEAD, memory)
        for before in range(number):
            rings.put(unroll_arrays(layout, before), 0, 0, version=0)
        held = check(rings)
        rings.arrays.update({name: a.view(Dying) for name, a in rings.arrays.items()})
        rings._steps = [[(name, a.view(Dying)) for name, a in lane] for lane in rings._steps]
        rings._heads = [DyingWords(head) for head in rings._heads]
        Dying.left = writes
        try:
            rings.put(unroll_arrays(layout, number), 0, 0, version=0)
            died = False
        except Dies:
            died = True
        finally:
            Dying.left = None
        rings = make_rings(layout, 1, CAPACITY, LOOKAHEAD, memory)
        assert check(rings) <= held | set(range(ROWS * (number + 1)))
        for later in (number + 1, number + 2):
            rings.put(unroll_arrays(layout, later), 0, 0, version=0)
            assert max(check(rings)) == ROWS * (later + 1) - LOOKAHEAD
        if not died:
            return
    raise AssertionError("an unroll has not so many writes")


def test_a_lost_life_ends_what_is_learned_and_not_the_episode():
    layout = scripted_layout(ROWS + LOOKAHEAD - 1, ENVS, more=(Field(LIFE_LOST, "bool"),))
    layout = with_place(layout)
    rings = make_rings(layout, 1, CAPACITY, LOOKAHEAD)
    arrays = unroll_arrays(layout, 0)
    arrays[LIFE_LOST][0, LOOKAHEAD, 1] = True
    rings.put(arrays, 0, 0, version=0)
    rings.put(unroll_arrays(layout, 1), 0, 0, version=0)
    items = items_of(rings)
    found = rings.gather(items, gamma=0.5)
    of_second = {
        int(action): (float(discount), float(obs[0]))
        for action, discount, obs, env in zip(
            found["action"], found["discount"], found["next_obs"], items.env_B, strict=True
        )
        if env == 1
    }
    assert of_second[0] == (0.0, 2.0), "its next observation is that of the next row"
    assert of_second[1] == (0.0, 2.0)
    assert of_second[2] == (0.125, 5.0)


@pytest.mark.parametrize("keeps_final", [False, True])
@pytest.mark.parametrize("is_stack", [False, True])
def test_observations_on_a_device_are_those_in_main_memory(is_stack, keeps_final):
    rng = np.random.default_rng(0)
    fields = (
        *(
            observation_fields(Frames(3, (2, 2)), keeps_final)
            if is_stack
            else scripted_layout(1, 1, keeps_final).fields[: 1 + keeps_final]
        ),
        Field("action", "int64"),
        *STANDARD_FIELDS,
    )
    layout = with_place(Layout(fields, ROWS + LOOKAHEAD - 1, ENVS))
    host = make_rings(layout, 1, CAPACITY, LOOKAHEAD)
    ring_layout = RingLayout(layout, 1, CAPACITY, LOOKAHEAD, has_observations=False)
    make = on_device(torch.device("cpu"))
    memory = np.zeros(ring_layout.nbytes, np.uint8)
    device = Rings(ring_layout, memory, make)
    assert ring_layout.nbytes + ring_layout.observation_bytes == pytest.approx(
        host.layout.nbytes, abs=64
    )
    for number in range(7):
        arrays = {f.name: np.zeros((1, *layout.shape(f)), f.dtype) for f in layout.fields}
        for array in arrays.values():
            array[...] = rng.integers(0, 4, array.shape)
        arrays["valid"][:] = True
        write_place(arrays, 0, 0, number * ROWS, ROWS)
        for rings in (host, device):
            rings.put(arrays, 0, 0, version=0)
    items = items_of(host)
    one, two = host.gather(items, 0.9), device.gather(items, 0.9)
    assert isinstance(two["obs"], torch.Tensor)
    for name in one:
        np.testing.assert_array_equal(one[name], np.asarray(two[name]))
    begin = host.begins()[0]
    for (_, _, here), (_, _, there) in zip(host.observed, device.observed, strict=True):
        np.testing.assert_array_equal(here.read(0, begin, 9), there.read(0, begin, 9))
    assert isinstance(device.observed[0].memory, DeviceObservations)
    again = Rings(ring_layout, memory, make)
    assert again.counts() == [0], "what lay on a device is gone with its process"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_rows_reach_a_gpu_whole_though_their_slot_is_written_at_once():
    device = torch.device("cuda:0")
    leaf = DeviceObservations(device, Field("obs", "uint8", (84, 84)), (1, 64, 8, 84, 84), 0)
    rows = np.empty((4, 8, 84, 84), np.uint8)
    for number in range(64):
        rows[:] = number
        leaf.write(0, 4 * number, rows)
    newest = leaf.read(0, 4 * 48, 64)
    assert newest[:, 0, 0, 0].tolist() == np.repeat(np.arange(48, 64), 4).tolist()
    assert (newest == newest[:, :1, :1, :1]).all()


class FakeBlock:
    def __init__(self):
        self.is_busy = False


def test_blocks_take_turns_and_more_are_made_while_the_oldest_is_busy():
    turns = Turns(FakeBlock, most=3)
    first = turns.next()
    assert turns.next() is first, "it is free again"
    first.is_busy = True
    second = turns.next()
    second.is_busy = True
    third = turns.next()
    third.is_busy = True
    assert len({first, second, third}) == 3
    oldest_first = [turns.next() for _ in range(4)]
    assert oldest_first == [first, second, third, first], "no more than three, busy or not"
    second.is_busy = False
    assert turns.next() is second
