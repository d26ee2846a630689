"""Rounds in given times: the vectors of the papers, and others worked out by hand."""

import math

import numpy as np
import pytest

from tianji.algorithms.interface import Gather
from tianji.balance.given_times import Times
from tianji.buffer.gather.rules import build_rule
from tianji.config.run import TimesConfig
from tianji.virtual.rounds import simulate_rounds, total


def rounds(rule, m=1, n=None, m_init=None, num_rounds=1, num_steps=1, parameters=0, **config):
    law = TimesConfig(**({"law": "given"} if "compute" in config else {}), **config)
    n = n or len(law.compute)
    gather = Gather(rule, num_gradients=m, first_num_gradients=m_init or m)
    found = simulate_rounds(gather, Times(law, n, parameters, 1), n, num_steps, num_rounds)
    return list(found)


def one(rule, **options):
    (found,) = rounds(rule, **options)
    counts = [found.counts.get(actor, 0) for actor in range(max(found.counts) + 1)]
    return found.finish_s, counts


SQRT = {"law": "sqrt", "n": 10}
TWO = {"compute": (1, 10)}


@pytest.mark.parametrize(
    ("rule", "options", "finish_s", "counts"),
    [
        ("first", {"m": 20, **SQRT}, 5.0, [5, 3, 2, 2, 2, 2, 1, 1, 1, 1]),
        ("first", {"m": 30, **SQRT}, 4 * math.sqrt(3), [6, 4, 4, 3, 3, 2, 2, 2, 2, 2]),
        ("first", {"m": 50, **SQRT}, 11.0, [11, 7, 6, 5, 4, 4, 4, 3, 3, 3]),
        ("harmonic", {"m": 20, **SQRT}, 6.0, [6, 4, 3, 3, 2, 2, 2, 2, 2, 1]),
        ("harmonic", {"m": 50, **SQRT}, 4 * math.sqrt(10), [12, 8, 7, 6, 5, 5, 4, 4, 4, 4]),
        ("harmonic", {"m": 20, **TWO}, 60.0, [60, 6]),
        ("harmonic", {"m": 30, **TWO}, 90.0, [90, 9]),
        ("harmonic", {"m": 50, **TWO}, 140.0, [140, 14]),
        ("first", {"m": 20, **TWO}, 19.0, [19, 1]),
        ("first", {"m": 30, **TWO}, 28.0, [28, 2]),
        ("first", {"m": 50, **TWO}, 46.0, [46, 4]),
        ("first", {"m": 12, "compute": (1, 3, 7)}, 9.0, [9, 2, 1]),
        ("barrier", SQRT, math.sqrt(10), [1] * 10),
    ],
)
def test_finish_times_and_counts(rule, options, finish_s, counts):
    found_s, found = one(rule, **options)
    assert found_s == pytest.approx(finish_s, abs=1e-9)
    assert found == counts


@pytest.mark.parametrize(("m", "finish_s"), [(20, 2.0), (30, 3.0), (50, 5.0)])
def test_equal_actors_share_the_work(m, finish_s):
    assert one("first", m=m, law="equal", n=10) == (finish_s, [m // 10] * 10)
    assert one("harmonic", m=m, law="equal", n=10) == (finish_s, [m // 10] * 10)


@pytest.mark.parametrize(("m", "finish_s"), [(20, 4.0), (30, math.sqrt(22)), (50, 6.0)])
def test_a_hundred_actors(m, finish_s):
    assert one("first", m=m, law="sqrt", n=100)[0] == pytest.approx(finish_s, abs=1e-9)
    assert one("barrier", law="sqrt", n=100)[0] == 10.0


def test_what_is_in_work_when_a_round_closes_is_discarded():
    (found,) = rounds("first", m=12, compute=(1, 3, 7))
    assert found.discarded == 2, "actor 1 is done in the same moment, but after actor 0"
    (found,) = rounds("harmonic", m=20, compute=(1, 10))
    assert found.discarded == 0, "actor 0 has begun another in that very moment"
    assert rounds("first", m=20, law="sqrt", n=10)[0].discarded == 9
    assert sum(done.discarded for done in rounds("barrier", law="sqrt", n=10, num_rounds=3)) == 0


def test_equal_moments_go_by_the_index_of_the_actor():
    (found,) = rounds("first", m=2, law="equal", n=3)
    assert found.counts == {0: 1, 1: 1}
    # 3 sqrt(2) and sqrt(18) are the same moment, though not the same number.
    h = (100.0, 100.0, math.sqrt(18), math.sqrt(2))
    assert one("first", m=3, compute=h) == (pytest.approx(math.sqrt(18)), [0, 0, 1, 2])


def test_everybody_begins_anew_with_every_version():
    found = rounds("first", m=4, m_init=1, compute=(2, 3), num_rounds=3)
    # The first at 2; then after 2, 3 (actor 1), 4 and 6, when actor 1 is done too, but later.
    assert [done.finish_s for done in found] == [2.0, 8.0, 14.0]
    assert [done.counts for done in found] == [{0: 1}, {0: 3, 1: 1}, {0: 3, 1: 1}]
    assert [done.version for done in found] == [0, 1, 2]


def test_sums_are_collected_once_by_the_slowest_message():
    network = {"network": "given", "communicate": (1, 5, 2)}
    found = rounds("first", m=12, compute=(1, 3, 7), num_rounds=2, **network)
    assert [(done.closed_s, done.finish_s) for done in found] == [(9.0, 14.0), (23.0, 28.0)]
    found = rounds("harmonic", m=3, compute=(1, 3, 7), num_rounds=2, **network)
    assert [(done.closed_s, done.finish_s) for done in found] == [(7.0, 12.0), (19.0, 24.0)]


def test_gradients_that_travel_alone_pay_for_their_message():
    network = {"network": "given", "communicate": (4, 1, 2)}
    found = rounds("barrier", compute=(1, 3, 2), num_rounds=2, **network)
    assert [done.finish_s for done in found] == [5.0, 10.0], "the largest of 1 + 4, 3 + 1, 2 + 2"
    found = rounds("every", compute=(1, 3, 2), num_rounds=6, **network)
    # Actor 0 every 5, actors 1 and 2 every 4; nobody waits and nothing is discarded.
    assert [done.finish_s for done in found] == [4.0, 4.0, 5.0, 8.0, 8.0, 10.0]
    assert [list(done.counts) for done in found] == [[1], [2], [0], [1], [2], [0]]


def test_slow_networks_grow_with_the_model():
    (found,) = rounds("first", m=20, parameters=30_498, network="sqrt-size", **SQRT)
    assert found.finish_s - found.closed_s == pytest.approx(math.sqrt(10) * 30_498**0.25)


def test_times_may_be_per_step_and_in_other_units():
    (found,) = rounds("first", m=12, compute=(1, 3, 7), per="step", unit_s=0.001, num_steps=200)
    assert found.finish_s == pytest.approx(9 * 0.2)


def test_one_straggler_costs_rennala_nothing():
    """h = (1, 1, 1, 1, 30): five gradients per round take 2, where the barrier takes 30."""
    n, num_rounds = 5, 60
    rennala = total(rounds("first", m=n, law="straggler", n=n, num_rounds=num_rounds), n)
    barrier = total(rounds("barrier", law="straggler", n=n, num_rounds=num_rounds), n)
    assert rennala.gradients == barrier.gradients
    assert rennala.rounds_per_s / barrier.rounds_per_s == pytest.approx(15.0)
    assert rennala.counts[4] == 0
    assert barrier.counts == (60,) * 5


def test_totals_add_up():
    found = total(rounds("first", m=12, m_init=3, compute=(1, 3, 7), num_rounds=3), 3)
    # The first three: actor 0 at 1, 2 and 3, when actor 1 would be next.
    assert found.finish_s == 3.0 + 9.0 + 9.0
    assert found.counts == (3 + 9 + 9, 0 + 2 + 2, 0 + 1 + 1)
    assert (found.rounds, found.gradients, found.discarded) == (3, 27, 6)
    assert found.rounds_per_s == pytest.approx(3 / 21)
    assert found.gradients_per_s == pytest.approx(27 / 21)


@pytest.mark.parametrize("law", ["random", "changing"])
def test_the_same_times_come_again(law):
    def run():
        return rounds("first", m=20, law=law, n=10, num_rounds=30)

    assert run() == run()
    assert len({tuple(done.counts.items()) for done in run()}) > 1, "and are not always the same"


@pytest.mark.parametrize("rule", ["first", "harmonic"])
def test_the_aggregate_varies_no_more_than_m_gradients(rule):
    """Gaussian gradients of mean 1 and variance 4 in unequal times: the variance of the aggregate
    is at most 4 / M, by its sample variance and the 99.9 % confidence interval of that."""
    m, n, num_rounds, variance = 20, 10, 1000, 4.0
    rng = np.random.default_rng(4)
    weigh = build_rule(Gather(rule, m, m), n).weigh
    aggregates = []
    for done in rounds(rule, m=m, n=n, law="random", num_rounds=num_rounds):
        sums = {
            actor: rng.normal(1.0, math.sqrt(variance), count).sum()
            for actor, count in done.counts.items()
        }
        weighed = {actor: weigh(count) for actor, count in done.counts.items()}
        whole = sum(weight for _, weight in weighed.values())
        aggregates.append(sum(weighed[actor][0] * sums[actor] for actor in sums) / whole)
    error = 3.3 * math.sqrt(2 / num_rounds)
    assert np.var(aggregates, ddof=1) <= variance / m * (1 + error)
    assert np.mean(aggregates) == pytest.approx(1.0, abs=3.3 * math.sqrt(variance / m / num_rounds))
    if rule == "first":
        assert np.var(aggregates, ddof=1) >= variance / m * (1 - error), "of exactly M gradients"
