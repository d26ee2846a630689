import numpy as np
import pytest
import torch
from gymnasium import spaces

from tianji.envs.spaces import observation_leaves
from tianji.models.networks.encoder import Encoder, Normalizer
from tianji.models.networks.stacked import StackedNet
from tianji.models.statistics import ObservationStatistics, RewardScale
from tianji.models.tensors import Snapshot
from tianji.types import Stamp


def stamp(actor, round_number=0):
    return Stamp(actor, round_number, 0, 0, 0, 0, 0)


def net(space, clip=10.0):
    """A network that normalises, and its normalizer."""
    made = StackedNet(Encoder(observation_leaves(space), True, clip), (), "tanh", (1,), (1.0,))
    return made, made.encoder.normalizer


def box(size):
    return spaces.Box(-np.inf, np.inf, (size,), np.float32)


def test_normalised_observations_have_mean_zero_and_deviation_one():
    made, normalizer = net(box(2))
    statistics = ObservationStatistics(made)
    x = torch.randn(1000, 2) * torch.tensor([5.0, 0.1]) + torch.tensor([100.0, -3.0])
    for part in x.split(100):
        statistics.update({"": part})
    y = normalizer(x)
    torch.testing.assert_close(y.mean(0), torch.zeros(2), atol=1e-3, rtol=0)
    torch.testing.assert_close(y.std(0), torch.ones(2), atol=1e-2, rtol=0)


def test_it_changes_nothing_before_the_first_update_nor_what_it_must_not():
    made, normalizer = net(spaces.Dict({"choice": spaces.Discrete(2), "number": box(1)}))
    x = torch.tensor([[0.0, 1.0, 3.0]])
    assert normalizer(x).tolist() == x.tolist()
    seen = {"choice": torch.ones(50, dtype=torch.int64), "number": torch.randn(50, 1) + 7}
    ObservationStatistics(made).update(seen)
    assert normalizer(x)[0, :2].tolist() == [0.0, 1.0]
    assert normalizer(x)[0, 2] != 3.0


def test_a_network_without_a_normalizer_has_no_statistics():
    made = StackedNet(Encoder(observation_leaves(box(1)), False, 10.0), (), "tanh", (1,), (1.0,))
    statistics = ObservationStatistics(made)
    statistics.update({"": torch.randn(50, 1)})
    assert not statistics.is_used and statistics.state() == {}


def test_values_far_out_are_cut():
    assert Normalizer(torch.tensor([True]), clip=2.0)(torch.tensor([[9.0]])).item() == 2.0


def test_the_published_policy_carries_the_statistics():
    (made, source), (_, target) = (net(box(1)) for _ in range(2))
    snapshot = Snapshot(source)
    ObservationStatistics(made).update({"": torch.randn(50, 1) + 7})
    buffer = np.zeros(snapshot.nbytes, np.uint8)
    snapshot.write_to(buffer)
    Snapshot(target).read_from(buffer)
    assert target(torch.ones(1, 1)) == source(torch.ones(1, 1)) != 1.0


def test_statistics_continue_exactly_from_their_state():
    (made, first), (other, second) = (net(box(1)) for _ in range(2))
    statistics = ObservationStatistics(made)
    statistics.update({"": torch.arange(5.0)[:, None]})
    saved = statistics.state()
    statistics.update({"": torch.arange(9.0)[:, None]})
    resumed = ObservationStatistics(other)
    resumed.load_state(saved)
    resumed.update({"": torch.arange(9.0)[:, None]})
    torch.testing.assert_close(second.state_dict(), first.state_dict(), rtol=0, atol=0)
    assert saved["count"] == 5


def unrolls(seed, num_rows=30, num_envs=4):
    rng = np.random.default_rng(seed)
    reward = rng.standard_normal((num_rows, num_envs), np.float32) + 3
    done = rng.random((num_rows, num_envs)) < 0.1
    valid = rng.random((num_rows, num_envs)) < 0.9
    return reward, done & valid, valid


def literal_returns(reward, done, valid, gamma):
    returns, now = [], np.zeros(reward.shape[1])
    for t in range(len(reward)):
        for n in range(reward.shape[1]):
            if valid[t, n]:
                now[n] = gamma * now[n] + reward[t, n]
                returns.append(now[n])
                if done[t, n]:
                    now[n] = 0.0
    return returns


def test_rewards_are_divided_by_the_deviation_of_the_discounted_return():
    reward, done, valid = unrolls(0)
    scaled = RewardScale(0.9, clip=100.0).scale(reward, done, valid, (stamp(0),))
    deviation = np.std(literal_returns(reward, done, valid, 0.9))
    np.testing.assert_allclose(scaled[valid], reward[valid] / deviation, rtol=1e-4)
    assert not scaled[~valid].any()


def test_returns_are_followed_over_unrolls_of_the_same_actor():
    reward, done, valid = unrolls(1)
    whole, halves = RewardScale(0.9, 100.0), RewardScale(0.9, 100.0)
    expected = whole.scale(reward, done, valid, (stamp(0),))
    halves.scale(reward[:15], done[:15], valid[:15], (stamp(0),))
    got = halves.scale(reward[15:], done[15:], valid[15:], (stamp(0, 1),))
    np.testing.assert_allclose(got, expected[15:], rtol=1e-5)


def test_an_actor_that_got_another_number_of_environments_begins_new_returns():
    reward, done, valid = unrolls(4)
    resumed = RewardScale(0.9, 100.0)
    resumed.load_state(_state_after(reward, done, valid))
    few = tuple(x[:, :2] for x in (reward, done, valid))
    followed = resumed._follow([0], *few)
    np.testing.assert_allclose(followed[few[2]][:1], few[0][few[2]][:1])


def _state_after(*given):
    scale = RewardScale(0.9, 100.0)
    scale.scale(*given, (stamp(0),))
    return scale.state()


def test_each_actor_has_its_own_returns_wherever_its_unroll_lies():
    reward, done, valid = unrolls(2)
    straight, crossed = RewardScale(0.9, 100.0), RewardScale(0.9, 100.0)
    swap = [2, 3, 0, 1]
    for scale, columns, actors in ((straight, [0, 1, 2, 3], (0, 1)), (crossed, swap, (1, 0))):
        parts = (x[:15, columns] for x in (reward, done, valid))
        scale.scale(*parts, tuple(map(stamp, actors)))
    rest = tuple(x[15:] for x in (reward, done, valid))
    np.testing.assert_allclose(
        crossed.scale(*rest, (stamp(0), stamp(1))), straight.scale(*rest, (stamp(0), stamp(1)))
    )


@pytest.mark.parametrize("actors", [(0, 1, 2, 3), (0, 0, 1, 0), (2, 1, 1, 2)])
def test_unrolls_side_by_side_are_those_of_one_after_the_other(actors):
    """An actor may have several unrolls in a batch: each continues the one before."""
    reward, done, valid = unrolls(5)
    together, alone = RewardScale(0.9, 100.0), RewardScale(0.9, 100.0)
    together.scale(reward, done, valid, tuple(map(stamp, actors)))
    for n, actor in enumerate(actors):
        alone.scale(*(x[:, n : n + 1] for x in (reward, done, valid)), (stamp(actor),))
    mine, theirs = together.state(), alone.state()
    assert mine.keys() == theirs.keys()
    for name, value in theirs.items():
        assert torch.equal(mine[name], value), name


def test_rewards_of_invalid_rows_may_hold_anything():
    reward, done, valid = unrolls(3)
    clean = RewardScale(0.9, 5.0).scale(reward.copy(), done, valid, (stamp(0),))
    reward[~valid] = np.nan
    dirty = RewardScale(0.9, 5.0).scale(reward, done | ~valid, valid, (stamp(0),))
    np.testing.assert_array_equal(dirty, clean)


def test_reward_scale_continues_exactly_from_its_state():
    reward, done, valid = unrolls(4)
    first, second = RewardScale(0.9, 5.0), RewardScale(0.9, 5.0)
    first.scale(reward, done, valid, (stamp(3),))
    second.load_state(first.state())
    np.testing.assert_array_equal(
        second.scale(reward, done, valid, (stamp(3),)),
        first.scale(reward, done, valid, (stamp(3),)),
    )
