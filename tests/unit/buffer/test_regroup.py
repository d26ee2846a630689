"""A saved replay store for another number of actors: columns of environments, combined anew."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.replay import make_rings, with_place, write_place
from tests.fakes.scripted import scripted_layout
from tianji.buffer.regroup import regrouped
from tianji.buffer.stores.rings import Items
from tianji.buffer.stores.saved_rings import load_rings, save_rings
from tianji.channels.inproc import InprocStream

ROWS, ENVS = 3, 12


def filled(num_lanes, unrolls, capacity):
    """Rings whose steps say which environment and which row they are; each episode has one step
    that is truncated."""
    layout = with_place(scripted_layout(ROWS, ENVS // num_lanes, keeps_final=True))
    rings = make_rings(layout, num_lanes, capacity)
    arrays = InprocStream(layout, 1, 1).arrays
    for lane, count in enumerate(unrolls):
        env = lane * layout.num_envs + np.arange(layout.num_envs)
        for number in range(count):
            row = number * ROWS + np.arange(ROWS + 1)
            step = 1000 * env + row[:, None]
            arrays["valid"][0] = True
            arrays["reward"][0] = arrays["action"][0] = step[:-1]
            arrays["obs"][0] = step[..., None]
            arrays["final_obs"][0] = -step[:-1, :, None]
            arrays["truncated"][0] = step[:-1] % 5 == 0
            write_place(arrays, 0, 0, number * ROWS, ROWS)
            rings.put(arrays, 0, lane, version=number)
    return rings


def found(rings):
    """All items of the rings by their action: reward, observations."""
    items = []
    for lane, (begin, count) in enumerate(zip(rings.begins(), rings.counts(), strict=True)):
        for row in range(begin, begin + count):
            for env in range(rings.num_envs):
                if rings.arrays["valid"][lane, row % rings.num_rows, env]:
                    items.append((lane, row, env))
    if not items:
        return {}
    arrays = rings.gather(Items(*np.array(items).T), 0.5)
    columns = zip(
        arrays["action"].tolist(), arrays["reward"].tolist(), arrays["obs"].tolist(),
        arrays["next_obs"].tolist(), strict=True,
    )  # fmt: skip
    return {action: rest for action, *rest in columns}


def state_of(rings, rounds):
    return {
        "rounds": rounds,
        "items_put": 9,
        "store": {"rng": {"state": 7}, "items": save_rings(rings), "sampler": {"a": 1}},
    }


counts = st.sampled_from([1, 2, 3, 4, 6, 12])


@given(before=counts, after=counts, capacity=st.integers(3, 20), data=st.data())
def test_every_item_is_found_again_and_no_other(before, after, capacity, data):
    unrolls = data.draw(st.lists(st.integers(0, 8), min_size=before, max_size=before))
    rings = filled(before, unrolls, capacity)
    state = state_of(rings, [5] * before)
    new = regrouped(state, after, ENVS // after)
    layout = with_place(scripted_layout(ROWS, ENVS // after, keeps_final=True))
    other = make_rings(layout, after, capacity)
    load_rings(other, new["store"]["items"])
    assert found(other) == found(rings)
    if before != after:
        assert new["store"]["sampler"] == {}, "priorities are in the order of the rows"


def test_no_actor_makes_a_round_again():
    new = regrouped(state_of(filled(3, [1, 1, 1], 9), [4, 7, 6]), 2, 6)
    assert new["rounds"] == [7, 7]
    assert new["items_put"] == 9
    assert new["store"]["rng"] == {"state": 7}


def test_a_store_that_keeps_nothing_has_nothing_to_regroup():
    state = {"rounds": [3, 3], "store": {}}
    assert regrouped(state, 4, 2) == {"rounds": [3] * 4, "store": {}}
