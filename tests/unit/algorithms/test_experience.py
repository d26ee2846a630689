import numpy as np
import pytest
import torch

from tests.fakes.experience import Rig, queue_batch
from tianji.algorithms.actor_critic.preprocessor import Preprocessor, following_columns
from tianji.types import PLACE, Batch, Stamp


def taken(valid, **config):
    rig = Rig("ppo", **config)
    unroll = rig.unroll(1, *np.shape(valid))
    unroll["valid"][:] = valid
    preprocessor = Preprocessor(rig.model, rig.spaces, rig.config)
    return preprocessor, preprocessor.process(queue_batch(unroll))


def test_rows_come_in_the_order_of_their_use():
    """One environment: a step, a reset row, a step, and two rows that were never acted."""
    _, experience = taken([[True], [False], [True], [False], [False]])
    order = experience.row_order()
    assert order.num_valid == 2
    assert order.index_R.tolist() == [0, 2, 1, 3]
    rows = experience.obs_rows(order)[""]
    torch.testing.assert_close(rows, torch.from_numpy(experience.obs[""][[0, 2, 1, 3], 0]))
    values = experience.to_grid(order, torch.tensor([10.0, 12.0, 11.0, 13.0]))
    assert values[:, 0].tolist() == [10.0, 11.0, 12.0, 13.0, 0.0, 0.0]


def test_rows_that_are_all_valid_are_not_copied():
    _, experience = taken(np.ones((3, 2), bool))
    order = experience.row_order()
    assert (order.num_valid, order.index_R) == (6, None)
    rows = experience.obs_rows(order)[""]
    assert rows.data_ptr() == experience.obs[""].ctypes.data
    assert experience.to_grid(order, torch.arange(8.0)).tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_statistics_count_what_valid_steps_saw_and_nothing_else():
    valid = np.array([[True, True], [False, True], [True, False]])
    preprocessor, experience = taken(valid, normalize={"observations": True})
    seen = experience.obs[""][:-1][valid]
    state = preprocessor.state()
    assert state["observations/count"] == 4
    np.testing.assert_allclose(state["observations/mean"], seen.mean(0), rtol=1e-6)


@pytest.mark.parametrize("part", [slice(0, 1), slice(1, 3)])
def test_some_of_the_environments(part):
    _, experience = taken(np.ones((3, 3), bool))
    some = experience.select_envs(part)
    np.testing.assert_array_equal(some.reward_TN, experience.reward_TN[:, part])
    np.testing.assert_array_equal(some.obs[""], experience.obs[""][:, part])
    assert some.action_rows().shape == (3 * (part.stop - part.start), 1)


def test_columns_go_on_in_the_next_unroll_of_the_same_actor():
    """Two environments each. Actor 0 made three unrolls and died before the last of them; actor 1
    handed over two, of which the first was cut short, in the other order."""
    places = {
        (0, 0): (0, 0, 8), (1, 1): (0, 3, 8), (0, 1): (0, 8, 8), (1, 0): (0, 0, 3),
        (0, 2): (2, 0, 8),
    }  # fmt: skip
    stamps = tuple(Stamp(actor, made, 0, 0, 0, 0, 0) for actor, made in places)
    batch = Batch({PLACE: np.repeat(list(places.values()), 2, 0)}, stamps, 5, 0)
    assert following_columns(batch, 10).tolist() == [4, 5, -1, -1, -1, -1, 2, 3, -1, -1]
    others = Batch(batch.arrays, stamps[:2], 2, 0)
    assert following_columns(others, 4).tolist() == [-1] * 4, "one unroll of each actor"
    assert following_columns(Batch({}, stamps, 5, 0), 10).tolist() == [-1] * 10
