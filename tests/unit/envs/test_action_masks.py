"""Environments that say which actions are legal, alone and as vectors, in every autoreset mode."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tianji.envs.build import build_world, make_rows, probe, probe_all
from tianji.envs.check import check_environment
from tianji.envs.doors import Doors
from tianji.envs.masks import nth_legal, to_legal
from tianji.envs.spaces import observation_leaves
from tianji.errors import TianjiError, UsageError

DOORS = "tianji.envs.doors:Doors"
MODES = tuple(AutoresetMode)


class Vowels(gym.Env):
    """Two choices; odd steps allow other options than even ones. Episodes have 3 steps."""

    observation_space = spaces.Box(0, 3, (1,), np.float32)
    action_space = spaces.MultiDiscrete([2, 3])
    even, odd, nothing = [1, 0, 1, 1, 0], [0, 1, 0, 0, 1], [0, 0, 1, 1, 1]

    def __init__(self, last="nothing"):
        self.last = last

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {"action_mask": np.array(self.even, bool)}

    def step(self, action):
        mask = (self.even, self.odd)[self.steps % 2]
        assert mask[action[0]] and mask[2 + action[1]]
        self.steps += 1
        is_over = self.steps == 3
        mask = getattr(self, self.last) if is_over else (self.even, self.odd)[self.steps % 2]
        info = {} if mask is None else {"action_mask": np.array(mask, bool)}
        return np.full(1, self.steps, np.float32), 1.0, False, is_over, info


Vowels.absent = None


def strict_doors(**kwargs):
    return Doors(illegal="refuse", **kwargs)


def vector(mode, make=strict_doors, **kwargs):
    def factory(num_envs):
        makers = [lambda: make(**kwargs)] * num_envs
        return SyncVectorEnv(makers, autoreset_mode=mode)

    return factory


def play(world, num_rows, seed=0):
    """Legal actions for so many rows; the environments refuse others."""
    rows, rng = make_rows(world, num_rows), np.random.default_rng(seed)
    world.reset(seed, rows)
    for t in range(num_rows):
        drawn = rng.integers(2**20, size=(num_rows, world.num_envs))[t]
        mask = rows["obs.action_mask"][t]
        action = nth_legal(drawn, mask) if world.spaces.action.shape == () else None
        if action is None:
            zeros = np.zeros((world.num_envs, 2), np.int64)
            action = to_legal(zeros, rows, t, world.spaces)
        world.step(action, rows, t)
    return rows


@pytest.mark.parametrize("mask", ["info", "observation"])
def test_a_mask_is_found_and_becomes_a_leaf_that_networks_do_not_see(mask):
    found = probe(DOORS, {"mask": mask})
    keys = [leaf.key for leaf in observation_leaves(found.spaces.observation)]
    assert keys == [*([""] if mask == "info" else ["door"]), "action_mask"]
    assert [leaf.key for leaf in observation_leaves(found.spaces.seen)] == keys[:-1]
    assert found.spaces.masked_by == ("info" if mask == "info" else "action_mask")
    assert found.times is None and found.offers_state


def test_an_environment_without_masks_has_none():
    for env in ("CartPole-v1", "Pendulum-v1", "tianji.envs.worlds:MultiDiscreteWorld"):
        assert probe(env, {}).spaces.mask is None
    assert probe(DOORS, {"mask": "none"}).spaces.mask is None


def test_a_mask_can_be_left_out():
    assert probe(DOORS, {}, action_mask="none").spaces == probe(DOORS, {"mask": "none"}).spaces


def test_steps_of_a_masked_environment_are_timed_with_legal_actions():
    found = probe(strict_doors, {}, timed=True)
    assert found.times is not None and found.times.mean_s > 0


@pytest.mark.parametrize("mask", ["info", "observation"])
def test_every_observation_comes_with_its_own_mask(mask):
    source = "info" if mask == "info" else "action_mask"
    world = build_world(strict_doors, {"mask": mask}, 3, action_mask=source)
    rows = play(world, 30)
    assert (rows["obs.action_mask"].sum(-1) == 3).all()
    keys = Doors().keys
    door = rows["obs" if mask == "info" else "obs.door"].argmax(-1)
    opens = np.take_along_axis(rows["obs.action_mask"], keys[door][..., None], -1)
    assert opens.all()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mask", ["info", "observation"])
def test_vector_environments_give_the_masks_of_single_ones(mode, mask):
    source = "info" if mask == "info" else "action_mask"
    world = build_world(vector(mode, mask=mask), {}, 3, action_mask=source)
    rows = play(world, 30)
    assert (rows["obs.action_mask"].sum(-1) == 3).all()
    ended = rows["terminated"] & rows["valid"]
    assert ended.any()
    if world.keeps_final:
        assert (rows["final_obs.action_mask"][ended].sum(-1) == 3).all()
        assert rows["valid"].all()


@pytest.mark.parametrize("mode", MODES)
def test_a_vector_environment_is_probed_and_resumed_like_others(mode):
    assert probe_all(vector(mode), {}, timed=True).spaces.masked_by == "info"
    one, other = (build_world(vector(mode), {}, 2, action_mask="info") for _ in range(2))
    play(one, 11)
    state = one.get_state()
    assert state is not None
    other.set_state(state)
    rows, again = make_rows(one, 1), make_rows(other, 1)
    mask = np.array([env.table for env in one.env.env.envs])
    for world, arrays in ((one, rows), (other, again)):
        world.step(nth_legal(np.zeros(2, np.int64), mask), arrays, 0)
    np.testing.assert_array_equal(rows["obs.action_mask"], again["obs.action_mask"])
    np.testing.assert_array_equal(rows["obs"], again["obs"])


@pytest.mark.parametrize("last", ["even", "nothing", "absent"])
@pytest.mark.parametrize("mode", [None, *MODES])
def test_at_the_end_of_an_episode_a_mask_may_be_missing_or_allow_nothing(last, mode):
    def single():
        return Vowels(last)

    env = single if mode is None else vector(mode, Vowels, last=last)
    world = build_world(env, {}, 2, action_mask="info")
    rows = play(world, 12)
    ended = rows["truncated"] & rows["valid"]
    final = rows["final_obs.action_mask"] if world.keeps_final else rows["obs.action_mask"][1:]
    expected = Vowels.even if last == "even" else [1] * 5
    assert ended.any() and (final[ended] == expected).all()


class MaskedOnce(Vowels):
    """Gives a mask with the first observation of its first episode, and with no other reset."""

    num_episodes = 0

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed, options=options)
        self.num_episodes += 1
        return observation, info if self.num_episodes == 1 else {}


def test_an_episode_that_begins_in_the_step_of_an_end_needs_its_first_mask():
    mode = AutoresetMode.SAME_STEP
    world = build_world(vector(mode, MaskedOnce, last="even"), {}, 2, action_mask="info")
    with pytest.raises(TianjiError, match="gave no info"):
        play(world, 12)


class Stuck(Vowels):
    """Allows nothing in the middle of an episode, or says nothing."""

    def __init__(self, mask):
        super().__init__("even")
        self.mask = mask

    def step(self, action):
        observation, reward, _, _, _ = super().step(action)
        info = {} if self.mask is None else {"action_mask": np.array(self.mask)}
        return observation, reward, False, False, info


@pytest.mark.parametrize(
    ("mask", "told"),
    [
        (
            [1, 1, 0, 0, 0],
            "Environment '.*(lambda|factory).*' gave a mask without a legal action",
        ),
        (None, "Environment '.*(lambda|factory).*' gave no info.'action_mask'.*every reset"),
        ([1, 1], r"Environment '.*(lambda|factory).*' gave a mask of shape \(2,\).*5 options"),
    ],
)
@pytest.mark.parametrize("mode", [None, AutoresetMode.NEXT_STEP])
def test_an_unusable_mask_in_the_middle_of_an_episode_names_the_environment(mask, told, mode):
    env = (lambda: Stuck(mask)) if mode is None else vector(mode, Stuck, mask=mask)
    with pytest.raises(TianjiError, match=told):
        probe(env, {})


@pytest.mark.parametrize(
    ("env", "asked", "told"),
    [
        ("Pendulum-v1", "info", "action_mask is 'info'.*Set action_mask to none"),
        ("CartPole-v1", "info", "gave no info.'action_mask'"),
        ("CartPole-v1", "legal", "must be auto, none, info, or one of several entries"),
        ("tianji.envs.worlds:DictWorld", "image", "as a mask of Discrete.3. it must have .3,."),
        ("tianji.envs.worlds:DictWorld", "legal", "observes image, vector"),
    ],
)
def test_a_mask_that_is_not_there_is_refused_before_anything_starts(env, asked, told):
    with pytest.raises(TianjiError, match=told):
        probe(env, {}, action_mask=asked)


def test_different_tasks_share_a_policy_only_if_both_have_masks():
    def unmasked():
        return Doors(mask="none")

    with pytest.raises(UsageError, match="must have the same spaces"):
        probe_all((strict_doors, unmasked), {})


@pytest.mark.parametrize("env", [strict_doors, vector(AutoresetMode.NEXT_STEP)])
def test_the_doctor_takes_legal_actions_and_says_so(env):
    findings = check_environment(env, {})
    told = "The policy chooses only among the actions that info['action_mask'] allows."
    assert [finding for finding in findings if finding.what == told]
    assert not [finding for finding in findings if finding.level == "error"]


def test_illegal_actions_are_replaced_by_legal_ones_choice_by_choice():
    world = build_world(Vowels, {}, 2, action_mask="info")
    rows = make_rows(world, 1)
    rows["obs.action_mask"][0] = [Vowels.even, Vowels.odd]
    actions = np.array([[1, 1], [1, 1]])
    assert to_legal(actions, rows, 0, world.spaces).tolist() == [[0, 1], [1, 2]]


class Turns(gym.Env):
    """Even and odd options take turns. give: turns a mask into what the environment gives."""

    observation_space = spaces.Box(0, 9, (1,), np.float32)
    action_space = spaces.Discrete(4)

    def __init__(self, give=np.array, when="always"):
        self.give, self.when = give, when

    def info(self):
        if self.steps == 0 and self.when == "after the reset":
            return {}
        return {"action_mask": self.give([option % 2 == self.steps % 2 for option in range(4)])}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), self.info()

    def step(self, action):
        assert self.when != "always" or action % 2 == self.steps % 2, "an illegal action"
        self.steps += 1
        return np.full(1, self.steps, np.float32), 1.0, False, self.steps == 5, self.info()


def as_floats(mask):
    return np.array(mask, np.float32)


@pytest.mark.parametrize("give", [list, tuple, as_floats, np.array])
@pytest.mark.parametrize("mode", [None, *MODES])
def test_masks_may_be_lists_tuples_and_floats(give, mode):
    env = (lambda: Turns(give)) if mode is None else vector(mode, Turns, give=give)
    assert probe(env, {}).spaces.masked_by == "info"
    rows = play(build_world(env, {}, 2, action_mask="info"), 13)
    assert (rows["obs.action_mask"].sum(-1) == 2).all()


@pytest.mark.parametrize(
    ("give", "told"),
    [
        (lambda mask: [0.5, 0.2, 1.0, 0.0], r"is \[0.5, 0.2, 1.0, 0.0\], which is not made of 0"),
        (lambda mask: np.full(4, np.nan), "which is not made of 0 and 1"),
        (lambda mask: mask[:3], r"is of shape \(3,\), but .*Discrete.4. .* shape \(4,\)"),
        (lambda mask: [[1], [1, 0]], "a list that is no array of numbers"),
        (lambda mask: "1010", "a str that is no array of numbers"),
    ],
)
def test_a_mask_in_the_info_that_cannot_be_used_is_not_ignored(give, told):
    with pytest.raises(UsageError, match=f"'.*lambda.*' .*{told}.*--action-mask none ignores it"):
        probe(lambda: Turns(give), {})
    assert probe(lambda: Turns(give, "seldom"), {}, action_mask="none").spaces.mask is None


def test_a_mask_that_is_first_given_by_a_step_is_not_ignored():
    for env in (
        lambda: Turns(when="after the reset"),
        vector(AutoresetMode.NEXT_STEP, Turns, when="after the reset"),
    ):
        with pytest.raises(UsageError, match=r"no mask of legal actions in reset.., and one in st"):
            probe(env, {})


class Observed(Turns):
    """An observation `action_mask` of any space, beside masks in infos or without."""

    def __init__(self, space, has_info):
        super().__init__()
        self.has_info = has_info
        self.observation_space = spaces.Dict(x=Turns.observation_space, action_mask=space)

    def reset(self, *, seed=None, options=None):
        x, info = super().reset()
        return self.observe(x), info if self.has_info else {}

    def step(self, action):
        x, *rest, info = super().step(action)
        return self.observe(x), *rest, info if self.has_info else {}

    def observe(self, x):
        space = self.observation_space["action_mask"]
        return {"x": x, "action_mask": np.ones(space.shape, space.dtype)}


@pytest.mark.parametrize("shape", [(1, 4), (3,)])
def test_an_observed_mask_of_another_shape_leaves_it_to_the_info_or_is_refused(shape):
    space = spaces.Box(0, 1, shape, np.int8)
    found = probe(lambda: Observed(space, has_info=True), {}).spaces
    assert found.masked_by == "info" and list(found.seen.spaces) == ["x"]
    told = r"the observation 'action_mask' is Box.*, but .* masks are zeros and ones of shape .4,."
    with pytest.raises(UsageError, match=told):
        probe(lambda: Observed(space, has_info=False), {})


class OnlyMasks(Turns):
    """It observes masks and nothing else; infos have them too, or not."""

    observation_space = spaces.Dict(action_mask=spaces.MultiBinary(4))

    def __init__(self, has_info):
        super().__init__()
        self.has_info = has_info

    def reset(self, *, seed=None, options=None):
        _, info = super().reset()
        return {"action_mask": np.ones(4, np.int8)}, info if self.has_info else {}

    def step(self, action):
        _, *rest, info = super().step(action)
        observed = {"action_mask": np.ones(4, np.int8)}
        return observed, *rest, info if self.has_info else {}


@pytest.mark.parametrize("has_info", [False, True])
def test_an_environment_that_observes_only_masks_is_refused_in_plain_words(has_info):
    with pytest.raises(UsageError, match=r"observes nothing but 'action_mask'.*--action-mask none"):
        probe(lambda: OnlyMasks(has_info), {})
    found = probe(lambda: OnlyMasks(has_info), {}, action_mask="none").spaces
    assert found.mask is None


def test_a_mask_of_actions_that_are_no_choices_is_refused():
    class Continuous(Turns):
        action_space = spaces.Box(-1, 1, (4,), np.float32)

    with pytest.raises(
        UsageError, match=r"action space Box.* there are no masks. --action-mask no"
    ):
        probe(Continuous, {})
