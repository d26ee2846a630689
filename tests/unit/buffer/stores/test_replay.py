"""The replay store: what is sampled, what it is made of, and what is given up."""

from dataclasses import replace

import numpy as np
import pytest

from tests.fakes.replay import make_replay, with_place, write_place
from tests.fakes.scripted import scripted_layout
from tianji.channels.inproc import InprocStream
from tianji.types import Field, Stamp

LENGTH, ENVS = 4, 2
GAMMA = 0.5


class Rig:
    """A store whose every step has a reward of its own: 100 unroll + 10 row + env. Unrolls do not
    continue each other, and all their rows are valid, unless a test changes them."""

    def __init__(
        self, capacity=3, lookahead=1, batch=(2, 8), keeps_final=False, seed=0, more=(),
        ratio=2.0, warmup=0,
    ):  # fmt: skip
        self.rows = LENGTH + lookahead - 1
        layout = with_place(scripted_layout(self.rows, ENVS, keeps_final, more))
        self.stream = InprocStream(layout, 4, num_lanes=1)
        self.arrays = self.stream.arrays
        gap = 1
        self.store = make_replay(
            self.stream, layout, capacity * (self.rows + gap), lookahead, ratio, warmup, batch[1],
            GAMMA, seed,
        )  # fmt: skip
        self.batch = batch
        self.warmup = warmup
        self.unrolls = 0

    def take(self, version):
        """A batch of the planned size, whatever was put."""
        self.store._owed = self.batch[0] * self.batch[1]
        return self.store.take(version)

    def write(self, slot, number):
        row, env = np.ogrid[: self.rows + 1, :ENVS]
        for name in ("terminated", "truncated"):
            self.arrays[name][slot] = False
        self.arrays["valid"][slot] = True
        self.arrays["reward"][slot] = (100 * number + 10 * row + env)[:-1]
        self.arrays["action"][slot] = self.arrays["reward"][slot]
        self.arrays["obs"][slot] = (100 * number + 10 * row + env)[..., None]
        write_place(self.arrays, slot, number, 0, LENGTH)

    def put(self, oldest=0, steps=LENGTH * ENVS, change=lambda slot: None):
        """Put an unroll; return its number. change: is called with its slot before."""
        number, slot = self.unrolls, self.stream._free.pop()
        self.write(slot, number)
        change(slot)
        counted = 0 if self.warmup > 0 else steps
        assert self.store.put(slot, Stamp(0, number, oldest, oldest, steps, 0, 0)) == counted
        self.warmup -= 1
        self.unrolls += 1
        return number

    def end(self, name, row, env):
        """The episode of an environment ends in this row; the next one is a reset."""

        def change(slot):
            self.arrays[name][slot, row, env] = True
            if row + 1 < self.rows:
                self.arrays["valid"][slot, row + 1, env] = False

        return change

    def sampled(self, number, row, env, tries=40):
        """The item that begins at this place, as it is found in batches."""
        for _ in range(tries):
            found = self.take(0).arrays
            hits = np.argwhere(found["action"] == 100 * number + 10 * row + env)
            if len(hits):
                return {name: array[tuple(hits[0])] for name, array in found.items()}
        raise AssertionError("was never sampled")


def test_a_batch_has_the_shape_that_was_asked_for():
    rig = Rig(batch=(3, 5))
    rig.put()
    batch = rig.take(0)
    assert batch.num_items == batch.num_steps == 15
    assert {name: array.shape for name, array in batch.arrays.items()} == {
        "obs": (3, 5, 3), "next_obs": (3, 5, 3),
        "action": (3, 5), "reward": (3, 5), "discount": (3, 5),
    }  # fmt: skip


def test_sampling_is_uniform_over_the_valid_transitions_and_finds_no_other():
    rig = Rig(capacity=3, lookahead=2, batch=(1, 30_000), seed=7)

    def first(slot):
        rig.arrays["valid"][slot, 1:3, 0] = False

    def second(slot):
        rig.arrays["valid"][slot] = False
        rig.arrays["valid"][slot, 2, 1] = True

    for change in (first, second, lambda slot: None):
        rig.put(change=change)
    expected = [
        *(10 * row + env for row, env in np.ndindex(5, 2) if env or row not in (1, 2)),
        121,
        *(200 + 10 * row + env for row, env in np.ndindex(4, 2)),
    ]
    actions, counts = np.unique(rig.take(0).arrays["action"], return_counts=True)
    assert actions.tolist() == expected, "rows behind which there is more are complete"
    mean = 30_000 / len(expected)
    chi_square = ((counts - mean) ** 2 / mean).sum()
    assert chi_square < 39.3, "less likely than 1 in 1000 with 16 degrees of freedom"


def test_the_rewards_of_rows_that_are_not_valid_reach_nobody():
    rig = Rig(lookahead=3, batch=(1, 500))

    def change(slot):
        rig.end("terminated", 1, 0)(slot)
        rig.arrays["reward"][slot][~rig.arrays["valid"][slot]] = np.nan

    rig.put(change=change)
    assert np.isfinite(rig.take(0).arrays["reward"]).all()


def test_a_transition_leads_to_the_row_after_it():
    rig = Rig()
    slot = rig.put()
    item = rig.sampled(slot, 3, 1)
    assert item["obs"].tolist() == [100 * slot + 31] * 3
    assert item["next_obs"].tolist() == [100 * slot + 41] * 3
    assert (item["reward"], item["discount"]) == (100 * slot + 31, GAMMA)


@pytest.mark.parametrize(("end", "discount"), [("terminated", 0.0), ("truncated", GAMMA)])
def test_the_end_of_an_episode_leads_to_its_final_observation(end, discount):
    rig = Rig()
    slot = rig.put(change=rig.end(end, 1, 0))
    item = rig.sampled(slot, 1, 0)
    assert item["next_obs"][0] == 100 * slot + 20
    assert item["discount"] == discount
    assert rig.sampled(slot, 1, 1)["discount"] == GAMMA, "the other environment goes on"


@pytest.mark.parametrize(("end", "discount"), [("terminated", 0.0), ("truncated", GAMMA)])
def test_final_observations_that_are_kept_apart_are_found(end, discount):
    rig = Rig(keeps_final=True)

    def change(slot):
        rig.arrays["final_obs"][slot] = -1.0
        rig.arrays["final_obs"][slot, 1, 0] = 77.0
        rig.arrays[end][slot, 1, 0] = True

    slot = rig.put(change=change)
    item = rig.sampled(slot, 1, 0)
    assert item["next_obs"].tolist() == [77.0] * 3
    assert item["discount"] == discount
    assert rig.sampled(slot, 0, 0)["next_obs"][0] == 100 * slot + 10
    assert rig.sampled(slot, 2, 0)["next_obs"][0] == 100 * slot + 30


def test_every_leaf_of_a_dictionary_has_its_next_and_its_final_observation():
    more = (Field("obs.arm", "int64", (), "obs"), Field("final_obs.arm", "int64"))
    rig = Rig(keeps_final=True, more=more)

    def change(slot):
        rig.arrays["obs.arm"][slot] = np.arange(LENGTH + 1)[:, None]
        rig.arrays["final_obs.arm"][slot] = -5
        rig.arrays["truncated"][slot, 2, 1] = True

    slot = rig.put(change=change)
    assert rig.sampled(slot, 2, 0)["next_obs.arm"] == 3
    assert rig.sampled(slot, 2, 1)["next_obs.arm"] == -5
    assert rig.sampled(slot, 2, 1)["obs.arm"] == 2


def test_n_steps_are_summed_and_bootstrapped_from_where_they_lead():
    rig = Rig(lookahead=3)
    slot = rig.put()
    item = rig.sampled(slot, 3, 0)
    rewards = [100 * slot + 10 * row for row in (3, 4, 5)]
    assert item["reward"] == rewards[0] + GAMMA * rewards[1] + GAMMA**2 * rewards[2]
    assert item["discount"] == GAMMA**3
    assert item["next_obs"][0] == 100 * slot + 60


def test_n_steps_stop_at_the_end_of_the_episode():
    rig = Rig(lookahead=3, keeps_final=True)

    def change(slot):
        rig.arrays["final_obs"][slot, 2, 1] = 55.0
        rig.arrays["truncated"][slot, 2, 1] = True

    slot = rig.put(change=change)
    item = rig.sampled(slot, 1, 1)
    assert item["reward"] == 100 * slot + 11 + GAMMA * (100 * slot + 21)
    assert item["discount"] == GAMMA**2
    assert item["next_obs"][0] == 55.0


def test_the_oldest_unroll_is_pushed_out_first_and_slots_come_back_at_once():
    rig = Rig(capacity=2, batch=(1, 200))
    free = len(rig.stream._free)
    _, second, third = rig.put(), rig.put(), rig.put()
    assert len(rig.stream._free) == free
    found = set((rig.take(0).arrays["action"] // 100).ravel().tolist())
    assert found == {second, third}


def test_the_same_seed_samples_the_same_and_another_does_not():
    batches = []
    for seed in (1, 1, 2):
        rig = Rig(seed=seed)
        rig.put()
        batches.append(rig.take(0).arrays["action"].tolist())
    assert batches[0] == batches[1] != batches[2]


def test_what_is_used_for_the_first_time_is_counted_once():
    rig = Rig(capacity=1, batch=(1, 400))
    rig.put()
    assert rig.take(0).unique_steps == LENGTH * ENVS
    assert rig.take(0).unique_steps == 0
    for _ in range(9):
        rig.put()
        assert rig.take(0).unique_steps == LENGTH * ENVS, "a new unroll is fresh again"


def test_first_uses_are_the_distinct_items_of_the_batches():
    rig = Rig(batch=(1, 6), seed=3)
    rig.put()
    rig.put()
    seen = set()
    for _ in range(5):
        batch = rig.take(0)
        before = len(seen)
        seen |= set(batch.arrays["action"].ravel().tolist())
        assert batch.unique_steps == len(seen) - before
    assert len(seen) > 6


def test_age_is_measured_when_an_item_is_used_and_starts_anew_after_each_report():
    rig = Rig(capacity=4, batch=(1, 50))
    rig.put(oldest=3)
    rig.take(7)
    assert rig.store.metrics() == {"age_versions": 4.0, "fill": 4 / 20}
    assert rig.store.metrics()["age_versions"] == 4.0  # nothing was used since
    rig.put(oldest=5)
    rig.take(5)
    age = rig.store.metrics()["age_versions"]
    assert 0.0 < age < 2.0


def filled(seed=0):
    """A store that has been used: pushed out, sampled, and filled up again."""
    rig = Rig(capacity=3, lookahead=2, batch=(2, 9), seed=seed, keeps_final=True)
    for number in range(5):
        rig.put(oldest=number, change=rig.end("truncated", number % LENGTH, 0))
        rig.store.finish(rig.take(number))
    return rig


def test_a_restored_store_goes_on_bit_for_bit():
    rig, other = filled(), Rig(capacity=3, lookahead=2, batch=(2, 9), seed=99, keeps_final=True)
    other.store.load_state(rig.store.state())
    assert other.store.num_held() == rig.store.num_held() > 2
    rig.store.metrics()
    for version in (5, 6, 7):
        one, two = rig.take(version), other.take(version)
        for name in one.arrays:
            assert one.arrays[name].tobytes() == two.arrays[name].tobytes(), name
        assert one.unique_steps == two.unique_steps
        assert rig.store.metrics() == other.store.metrics()
    for one in (rig, other):
        one.unrolls = 9
        one.put(oldest=8)
    first, second = rig.take(8), other.take(8)
    assert first.arrays["reward"].tobytes() == second.arrays["reward"].tobytes()


def test_a_saved_state_is_a_copy():
    rig = filled()
    state = rig.store.state()
    before = state["items"]["arrays"]["reward"].copy()
    for _ in range(9):
        rig.put()
    assert (state["items"]["arrays"]["reward"] == before).all()


def test_without_its_items_a_store_comes_back_empty_with_its_random_numbers():
    rig = filled()
    rig.store._plan = replace(rig.store._plan, saves_items=False)
    state = rig.store.state()
    assert set(state) == {"rng", "owed", "num_held"}
    other = Rig(seed=99)
    other.store.load_state(state)
    assert other.store.num_held() == 0
    assert other.store._rng.bit_generator.state == rig.store._rng.bit_generator.state


def num_updates(store):
    return store.take(0).arrays["reward"].shape[0]


def test_a_batch_is_what_the_ratio_makes_of_what_was_put():
    rig = Rig(capacity=6, ratio=3.0)  # 3 x 8 items an unroll, 8 a minibatch
    rig.put()
    assert num_updates(rig.store) == 3
    rig.put(steps=7)
    assert num_updates(rig.store) == 2, "21 items are two minibatches, 5 are carried over"
    rig.put(steps=7)
    assert num_updates(rig.store) == 3


def test_the_ratio_is_kept_when_unrolls_are_short_of_items():
    rig = Rig(capacity=6, ratio=4.0)
    put = taken = 0
    for steps in (12, 7, 1, 9, 12, 3, 5, 11):
        rig.put(steps=steps)
        put += steps
        taken += rig.store.take(0).num_items
        assert 0 <= 4.0 * put - taken < 8


def test_items_of_the_warm_up_are_not_paid_for():
    rig = Rig(capacity=6, ratio=3.0, warmup=2)
    for _ in range(3):
        rig.put()
    assert num_updates(rig.store) == 3


def test_a_version_is_never_without_an_update():
    rig = Rig(capacity=6, ratio=0.1)
    rig.put()
    assert num_updates(rig.store) == 1


def test_what_is_owed_survives_a_checkpoint():
    rig, other = Rig(capacity=6, ratio=2.0), Rig(capacity=6, ratio=2.0)
    rig.put(steps=10)
    rig.store.take(0)
    other.store.load_state(rig.store.state())
    for each in (rig, other):
        each.put(steps=10)
    assert num_updates(rig.store) == num_updates(other.store) == 3


def test_a_store_may_be_saved_at_the_end_alone():
    rig = filled()
    rig.store._plan = replace(rig.store._plan, saves_items=False, saves_last=True)
    assert "items" not in rig.store.state()
    other = Rig(capacity=3, lookahead=2, batch=(2, 9), seed=99, keeps_final=True)
    other.store.load_state(rig.store.state(is_last=True))
    assert other.store.num_held() == rig.store.num_held()
