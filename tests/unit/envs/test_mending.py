"""One environment of several fails: it is replaced, its episode is cut, the others go on."""

import numpy as np
import pytest

from tianji.envs.build import build_world, make_rows
from tianji.envs.mending import MAX_IN_A_ROW, SOON_STEPS
from tianji.envs.worlds import Counting
from tianji.errors import EnvironmentFailed, UsageError
from tianji.ops.returns import gae, n_step_return, vtrace

GAMMA = 0.9
LOOSE = RuntimeError("the cable is loose")


class Failing(Counting):
    """Fails in these steps, counted over all environments that the test has made."""

    made = 0

    def __init__(self, at=(), in_reset=(), error=LOOSE):
        super().__init__(length=1000)
        self.number = Failing.made
        Failing.made += 1
        self.at, self.in_reset, self.error = at, in_reset, error
        self.is_closed = False

    def begin(self, seeded):
        super().begin(seeded)
        if self.number in self.in_reset:
            raise self.error

    def act(self, action):
        if (self.number, self.total + 1) in self.at:
            raise self.error
        return super().act(action)

    def close(self):
        self.is_closed = True


@pytest.fixture(autouse=True)
def _count_from_zero():
    Failing.made = 0


class Rig:
    def __init__(self, num_rows, num_envs=2, mends=True, **kwargs):
        self.failures = []
        on_failure = (lambda *failure: self.failures.append(failure)) if mends else None
        self.world = build_world(Failing, kwargs, num_envs, on_failure)
        self.rows = make_rows(self.world, num_rows)
        self.num_rows = num_rows

    def play(self):
        self.world.reset(1, self.rows)
        for t in range(self.num_rows):
            self.world.step(np.zeros(self.world.num_envs, np.int64), self.rows, t)
        return self.rows


def test_a_failed_step_is_not_valid_and_the_others_do_not_notice():
    rig = Rig(5, at=[(1, 3)])
    first = rig.world.envs[1]
    rows = rig.play()
    assert rows["valid"].T.tolist() == [[True] * 5, [True, True, False, True, True]]
    assert not rows["terminated"].any() and not rows["truncated"].any()
    assert rows["obs"][:, 0, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert rows["obs"][:, 1, 0].tolist() == [0, 1, 2, 0, 1, 2], "a new episode begins"
    assert rows["reward"][:, 1].tolist() == [1, 2, 0, 1, 2]
    assert rig.world.envs[1] is not first and first.is_closed
    (failure,) = rig.failures
    index, error = failure
    assert (index, str(error)) == (1, "the cable is loose")


def test_the_steps_before_bootstrap_from_the_last_good_observation():
    """As for a truncated episode, whatever the algorithm."""
    rig = Rig(5, num_envs=1, at=[(0, 3)])
    rows = rig.play()
    value = rows["obs"][:, :, 0] * np.float32(10)  # of what each row shows
    value[3:] = 1e6  # of the new episode: it must not be looked at from before
    flags = rows["terminated"], rows["truncated"], rows["valid"]
    last = rows["reward"][1, 0] + GAMMA * 10 * 2.0 - 10 * 1.0
    found = gae(rows["reward"], value[:-1], value[1:], *flags, GAMMA, 0.5)
    assert found[1, 0] == pytest.approx(last)
    assert found[2, 0] == 0.0
    traced = vtrace(
        np.zeros((5, 1), np.float32), rows["reward"], value[:-1], value[1:], *flags, 0.9
    )
    assert traced.advantage_TN[1, 0] == pytest.approx(last)
    slots = {name: rows[name][None] for name in ("reward", "terminated", "truncated", "valid")}
    ahead = n_step_return(
        *(slots[name] for name in ("reward", "terminated", "truncated", "valid")),
        np.array([0]), np.array([0]), np.array([0]), 4, GAMMA,
    )  # fmt: skip
    assert ahead.reward_B[0] == pytest.approx(1 + GAMMA * 2)
    assert ahead.discount_B[0] == pytest.approx(GAMMA**2), "it is not terminated"
    assert ahead.next_row_B[0] == 2


def test_a_reset_that_fails_once_is_mended_too():
    rig = Rig(3, num_envs=1, in_reset=[0])
    rows = rig.play()
    assert rows["valid"].all() and len(rig.failures) == 1


def test_the_new_environment_has_a_seed_of_its_own():
    rig = Rig(3, num_envs=2, at=[(0, 1), (1, 1)])
    rows = rig.play()
    tags = {*rows["obs"][:, :, 2].ravel().tolist()}
    assert len(tags) == 4, "two at first, two in their place"
    Failing.made = 0
    again = Rig(3, num_envs=2, at=[(0, 1), (1, 1)]).play()
    assert np.array_equal(rows["obs"], again["obs"]), "the same run gives the same episodes"


def test_an_environment_that_fails_at_each_reset_fails_its_actor_in_clear_words():
    with pytest.raises(
        EnvironmentFailed, match=r"Environment 0 .*RuntimeError: the cable is loose"
    ):
        Rig(3, num_envs=1, in_reset=range(100)).play()


def test_an_environment_that_fails_again_and_again_fails_its_actor_soon():
    rig = Rig(50, num_envs=1, at=[(number, 5) for number in range(100)])
    with pytest.raises(EnvironmentFailed, match=f"failed {MAX_IN_A_ROW + 1} times"):
        rig.play()
    assert len(rig.failures) == MAX_IN_A_ROW


def test_an_environment_that_fails_now_and_then_is_mended_for_ever():
    period = SOON_STEPS + 1
    rig = Rig(20 * period, num_envs=1, at=[(number, period) for number in range(100)])
    assert rig.play()["valid"].sum() == 20 * period - len(rig.failures)
    assert len(rig.failures) >= 19


def test_what_tianji_itself_finds_wrong_is_not_mended():
    with pytest.raises(UsageError, match="shape"):
        Rig(3, at=[(0, 1)], error=UsageError("another shape")).play()


def test_without_anybody_to_tell_an_error_goes_on():
    with pytest.raises(RuntimeError, match="the cable is loose"):
        Rig(3, mends=False, at=[(1, 2)]).play()
