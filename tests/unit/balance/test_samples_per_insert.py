"""Reverb's limiter: what may be sampled and inserted, and which settings are refused."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tianji.balance.samples_per_insert import (
    Groups,
    Limits,
    SamplesPerInsert,
    check_limits,
    least_error_buffer,
    limits_around,
    usual_error_buffer,
)
from tianji.errors import UsageError

DQN = limits_around(0.5, 1000, 50.0)  # Acme's
QUEUE = Limits(1.0, 1, 0.0, 3.0)  # Reverb's Queue(3)
MIN_SIZE = Limits(1.0, 5, float("-inf"), float("inf"))  # Reverb's MinSize(5)

# name, limits, inserts, samples, deletes, can sample one, can insert one
TABLE = [
    ("an empty store takes items and gives none", DQN, 0, 0, 0, False, True),
    ("one item below the minimum", DQN, 999, 0, 0, False, True),
    ("the minimum", DQN, 1000, 0, 0, True, True),
    ("as far ahead as the window allows", DQN, 1100, 0, 0, True, False),
    ("a sample makes room for inserts", DQN, 1100, 1, 0, True, True),
    ("as far behind as the window allows", DQN, 1000, 50, 0, False, True),
    ("deleted items do not count for the minimum", DQN, 1000, 0, 1, False, True),
    ("a store below its minimum takes items however far ahead", DQN, 2000, 0, 1500, False, True),
    ("an empty queue", QUEUE, 0, 0, 0, False, True),
    ("a full queue", QUEUE, 3, 0, 0, True, False),
    ("a full queue, later", QUEUE, 13, 10, 10, True, False),
    ("a queue with one place", QUEUE, 12, 10, 10, True, True),
    ("only the size counts", MIN_SIZE, 5, 10_000, 0, True, True),
    ("only the size counts, the other way", MIN_SIZE, 10_000, 0, 9996, False, True),
]


def limiter(limits, inserts=0, samples=0, deletes=0):
    made = SamplesPerInsert(limits)
    made.insert(inserts)
    made.sample(samples)
    made.delete(deletes)
    return made


@pytest.mark.parametrize(("name", "limits", "i", "s", "d", "samples", "inserts"), TABLE)
def test_what_is_allowed(name, limits, i, s, d, samples, inserts):
    found = limiter(limits, i, s, d)
    assert (found.can_sample(), found.can_insert()) == (samples, inserts), name


counts = st.integers(0, 2000)


@given(
    k=st.floats(0.01, 50.0), m=st.integers(1, 500), bounds=st.tuples(*[st.floats(-1e4, 1e4)] * 2),
    i=counts, s=counts, d=counts, q=st.integers(1, 64),
)  # fmt: skip
def test_it_is_the_published_formula(k, m, bounds, i, s, d, q):
    assume(d <= i)
    low, high = sorted(bounds)
    found = limiter(Limits(k, m, low, high), i, s, d)
    on_a_bound = 2e-6  # rounding must not decide there
    assume(abs(i * k - s - q - low) > on_a_bound)
    assert found.can_sample(q) == (i - d >= m and i * k - s - q >= low)
    assume(abs((i + q) * k - s - high) > on_a_bound)
    assert found.can_insert(q) == (i + q - d <= m or (i + q) * k - s <= high)


@given(
    k=st.floats(0.05, 8.0), m=st.integers(1, 30), more=st.floats(0.0, 20.0),
    groups=st.builds(Groups, st.integers(1, 9), st.integers(1, 9)),
    prefers_inserts=st.booleans(),
)  # fmt: skip
def test_with_allowed_settings_one_side_may_always_go_on(k, m, more, groups, prefers_inserts):
    """Whoever is faster: a store that keeps everything never comes to a stand."""
    limits = limits_around(k, m, least_error_buffer(k, groups) + more)
    check_limits(limits, groups)
    found = limiter(limits)
    for _ in range(100):
        may_insert = found.size < m or found.can_insert(groups.inserted)
        may_sample = found.can_sample(groups.sampled)
        assert may_insert or may_sample
        if may_insert and (prefers_inserts or not may_sample):
            found.insert(groups.inserted)
        else:
            found.sample(groups.sampled)
        if found.size >= m + groups.inserted:
            assert limits.min_diff - 1e-5 <= found.ahead <= limits.max_diff + 1e-5


REFUSED = [
    (limits_around(1.0, 10, 0.9), Groups(), "1.8 wide, and it must be at least 2"),
    (limits_around(4.0, 10, 3.9), Groups(), "7.8 wide, and it must be at least 8"),
    (limits_around(4.0, 10, 31.0), Groups(8, 16), "62 wide, and it must be at least 64"),
    (limits_around(0.5, 10, 15.0), Groups(8, 16), "30 wide, and it must be at least 32"),
    (Limits(2.0, 10, 21.0, 30.0), Groups(), "begins above samples_per_insert x min_size = 2 x 10"),
    (Limits(0.0, 10, -5.0, 5.0), Groups(), "samples_per_insert is 0"),
    (Limits(1.0, 0, -5.0, 5.0), Groups(), "min_size is 0"),
]


@pytest.mark.parametrize(("limits", "groups", "words"), REFUSED)
def test_settings_that_deadlock_are_refused(limits, groups, words):
    with pytest.raises(UsageError) as error:
        check_limits(limits, groups)
    assert words in str(error.value)


def test_the_refusal_names_an_error_buffer_that_is_allowed():
    with pytest.raises(UsageError, match=r"--limiter\.error-buffer 32 or more"):
        check_limits(limits_around(4.0, 10, 31.0), Groups(8, 16))
    assert check_limits(limits_around(4.0, 10, 32.0), Groups(8, 16)) is None


def test_a_window_below_the_minimum_size_only_warns():
    warning = check_limits(Limits(2.0, 10, 5.0, 15.0))
    assert warning is not None
    assert "ends below samples_per_insert x min_size = 20" in warning


def test_the_usual_error_buffer_is_the_one_of_acme_if_it_is_allowed():
    assert usual_error_buffer(4.0, 50_000) == 20_000
    assert usual_error_buffer(4.0, 50, Groups(8, 16)) == 32


@pytest.mark.parametrize(("count", "samples"), [(0, 0), (600, 0), (1000, 0), (3000, 1000)])
def test_items_from_before_count_as_inserted_and_sampled(count, samples):
    found = limiter(DQN, 7, 8, 2)
    found.starts_with(count)
    assert (found.inserts, found.samples, found.deletes) == (count, samples, 0)
