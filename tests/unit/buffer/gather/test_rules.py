"""Gather rules, against their definitions counted out by brute force in exact fractions."""

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tianji.algorithms.interface import Gather
from tianji.buffer.gather.rules import Barrier, EveryArrival, FirstCount, HarmonicCount, build_rule

ARRIVALS = st.integers(1, 6).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n - 1), max_size=80))
)
EVENTS = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(
            st.tuples(st.sampled_from(["arrive"] * 4 + ["leave", "join"]), st.integers(0, n - 1)),
            max_size=60,
        ),
    )
)


def is_harmonic_enough(counts, num_gradients):
    """Whether n / sum(1 / M_i) >= M / n, which needs every M_i."""
    n = len(counts)
    return (
        n > 0
        and min(counts) > 0
        and n / sum(Fraction(1, count) for count in counts) >= Fraction(num_gradients, n)
    )


def closes_after(rule, arrivals):
    """How many arrivals close the round; None: not all of them do."""
    for number, actor in enumerate(arrivals, start=1):
        if rule.arrived(actor):
            return number
    return None


def first_time(is_enough, num_actors, arrivals):
    counts = [0] * num_actors
    for number, actor in enumerate(arrivals, start=1):
        counts[actor] += 1
        if is_enough(counts):
            return number
    return None


@given(ARRIVALS, st.integers(1, 40))
def test_the_first_m_close_a_round_whoever_sent_them(case, m):
    n, arrivals = case
    assert closes_after(FirstCount(n, m, m), arrivals) == first_time(
        lambda counts: sum(counts) >= m, n, arrivals
    )


@given(ARRIVALS, st.integers(1, 60))
def test_the_harmonic_rule_is_its_definition(case, m):
    n, arrivals = case
    assert closes_after(HarmonicCount(n, m, m), arrivals) == first_time(
        lambda counts: is_harmonic_enough(counts, m), n, arrivals
    )


@given(ARRIVALS)
def test_a_barrier_needs_everybody(case):
    n, arrivals = case
    assert closes_after(Barrier(n), arrivals) == first_time(
        lambda counts: min(counts) > 0, n, arrivals
    )


@given(EVENTS, st.integers(1, 30))
def test_going_on_without_actors_counts_the_others_alone(case, m):
    n, events = case
    rule = HarmonicCount(n, m, m)
    counts, present = [0] * n, [True] * n
    for what, actor in events:
        closed = getattr(rule, {"arrive": "arrived", "leave": "leave", "join": "join"}[what])(actor)
        changed = what != "leave" or present[actor]
        counts[actor] += what == "arrive"
        present[actor] = what != "leave"
        there = [count for count, is_there in zip(counts, present, strict=True) if is_there]
        if what != "join":
            assert closed == (changed and is_harmonic_enough(there, m))
        if closed:
            assert [rule.takes(actor) for actor in range(n)] == present
            return


@given(EVENTS, st.integers(1, 30), st.sampled_from(["first", "harmonic", "barrier"]))
def test_a_round_without_the_gradients_that_were_lost_is_as_if_they_had_not_come(case, m, name):
    n, events = case
    rule = build_rule(Gather(name, m, m), n)
    counts = [0] * n
    for what, actor in events:
        if what != "arrive":
            rule.forget(actor)
            counts[actor] = 0
        elif not rule.is_closed:
            rule.arrived(actor)
            counts[actor] += 1
        enough = {
            "first": sum(counts) >= m,
            "harmonic": is_harmonic_enough(counts, m),
            "barrier": min(counts) > 0,
        }
        assert rule.is_closed == enough[name]
        assert rule.counts == counts


def test_an_actor_that_was_left_out_may_lose_its_gradients_and_be_back():
    rule = HarmonicCount(2, 1, 1)
    rule.arrived(0)
    rule.leave(0)
    rule.forget(0)
    rule.join(0)
    assert rule.arrived(1) is False
    assert rule.waiting_for() == [0]
    assert rule.arrived(0) is True


def test_equal_counts_close_exactly_at_the_bound():
    n, each = 1000, 21
    rule = HarmonicCount(n, n * each, 1)
    rule.begin(is_first=False)
    arrivals = [actor for _ in range(each) for actor in range(n)]
    assert closes_after(rule, arrivals) == n * each


@pytest.mark.parametrize("name", ["first", "harmonic"])
def test_the_first_version_has_a_number_of_its_own(name):
    rule = build_rule(Gather(name, num_gradients=3, first_num_gradients=7), 1)
    found = []
    for version in range(3):
        rule.begin(is_first=version == 0)
        found.append(closes_after(rule, [0] * 10))
    assert found == [7, 3, 3]


def test_every_arrival_is_a_version_of_its_own():
    rule = EveryArrival(3)
    for actor in (2, 2, 0):
        rule.begin(is_first=False)
        assert rule.arrived(actor)
        assert [rule.takes(other) for other in range(3)] == [other == actor for other in range(3)]
        assert sum(rule.counts) == 1


@pytest.mark.parametrize("name", ["first", "harmonic", "barrier", "every"])
def test_a_version_begins_with_nothing(name):
    rule = build_rule(Gather(name, 2, 2), 2)
    for _ in range(2):
        assert (rule.counts, rule.is_closed) == ([0, 0], False)
        rule.arrived(0)
        rule.arrived(1)
        assert (rule.counts, rule.is_closed) == ([1, 1], True)
        rule.begin(is_first=False)


@pytest.mark.parametrize("name", ["harmonic", "barrier"])
def test_it_waits_for_those_who_have_sent_nothing(name):
    rule = build_rule(Gather(name, 3, 3), 3)
    rule.arrived(1)
    assert rule.waiting_for() == [0, 2]
    rule.arrived(0)
    assert rule.waiting_for() == [2]
    assert rule.arrived(2)
    assert rule.waiting_for() == []


def test_it_waits_for_those_who_have_sent_too_little():
    rule = HarmonicCount(2, 20, 20)  # the sum of 1 / count may be 0.2
    for actor in [0] * 5 + [1] * 4:
        rule.arrived(actor)
    assert rule.waiting_for() == [0, 1]
    rule.arrived(0)
    assert rule.waiting_for() == [1]


@given(ARRIVALS, st.integers(2, 60))
@example((3, [0, 0, 0, 0, 0, 0, 1, 1, 1]), 18)  # 1/6 + 1/3 is the bound itself: not enough
def test_whoever_it_waits_for_is_needed_when_the_others_stop(case, m):
    n, arrivals = case
    rule, counts = HarmonicCount(n, m, m), [0] * n
    for actor in arrivals:
        counts[actor] += 1
        if rule.arrived(actor):
            assert rule.waiting_for() == []
            return
    waited = rule.waiting_for()
    assert waited
    never_enough = [c if actor not in waited[1:] else 10**9 for actor, c in enumerate(counts)]
    assert not is_harmonic_enough(never_enough, m)
    assert is_harmonic_enough([10**9 if a in waited else c for a, c in enumerate(counts)], m)


def test_a_round_may_close_because_somebody_leaves():
    rule = Barrier(2)
    assert not rule.arrived(0)
    assert rule.leave(1)
    assert [rule.takes(0), rule.takes(1)] == [True, False]
    rule.begin(is_first=False)
    assert rule.arrived(0), "it is still away"
    rule.begin(is_first=False)
    assert not rule.arrived(1), "a gradient brings it back"
    assert rule.arrived(0)


def test_nobody_left_closes_nothing():
    rule = HarmonicCount(1, 1, 1)
    assert not rule.leave(0)
    assert not rule.leave(0)


def test_rennala_and_afedpg_do_not_care_who_leaves():
    for rule in (FirstCount(2, 2, 2), EveryArrival(2)):
        assert not rule.leave(0)
        rule.join(0)
        assert rule.waiting_for() == []
        assert rule.arrived(1) or rule.arrived(1)


@pytest.mark.parametrize(
    ("name", "counts", "weights"),
    [
        ("first", (3, 1), (3 / 4, 1 / 4)),
        ("harmonic", (3, 1), (1 / 2, 1 / 2)),
        ("barrier", (1, 1), (1 / 2, 1 / 2)),
    ],
)
def test_weights_make_a_mean_of_gradients_or_of_means(name, counts, weights):
    rule = build_rule(Gather(name, 4, 4), 2)
    weighed = [rule.weigh(count) for count in counts]
    whole = sum(weight for _, weight in weighed)
    shares = [factor * count / whole for (factor, _), count in zip(weighed, counts, strict=True)]
    assert shares == pytest.approx(weights)


def test_who_sends_one_gradient_per_version_and_who_takes_old_ones():
    rules = [build_rule(Gather(name), 2) for name in ("first", "harmonic", "barrier", "every")]
    assert [rule.one_each for rule in rules] == [False, False, True, True]
    assert [rule.takes_old for rule in rules] == [False, False, False, True]
