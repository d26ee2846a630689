"""Laws of time: what a gradient and a message of each actor take."""

import math

import numpy as np
import pytest

from tianji.balance.given_times import CHANGE_UNITS, Times
from tianji.config.run import TimesConfig
from tianji.errors import UsageError

NUM_PARAMETERS = 30_498


def times(num_actors=4, seed=1, **config):
    return Times(TimesConfig(**config), num_actors, NUM_PARAMETERS, seed)


def compute(found, now_s=0.0, index=0, num_steps=1, num_actors=4):
    return [found.compute_s(actor, index, now_s, num_steps) for actor in range(num_actors)]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"law": "none"}, [1, 1, 1, 1]),
        ({"law": "equal"}, [1, 1, 1, 1]),
        ({"law": "sqrt"}, [1, math.sqrt(2), math.sqrt(3), 2]),
        ({"law": "straggler"}, [1, 1, 1, 30]),
        ({"law": "straggler", "slowest": 7}, [1, 1, 1, 7]),
        ({"law": "given", "compute": (3, 1, 4, 1.5)}, [3, 1, 4, 1.5]),
    ],
)
def test_computing_takes_what_the_law_says(config, expected):
    assert compute(times(**config)) == expected
    assert compute(times(**config, unit_s=0.02)) == [0.02 * units for units in expected]
    assert compute(times(**config), num_steps=50) == expected, "of a gradient, however long"
    per_step = compute(times(**config, per="step"), num_steps=50)
    assert per_step == [50 * units for units in expected]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"network": "none"}, [0, 0, 0, 0]),
        ({"network": "equal"}, [1, 1, 1, 1]),
        ({"network": "sqrt"}, [1, math.sqrt(2), math.sqrt(3), 2]),
        ({"network": "given", "communicate": (0, 1, 4, 2)}, [0, 1, 4, 2]),
    ],
)
def test_messages_take_what_the_network_says(config, expected):
    found = times(**config, unit_s=0.5)
    assert [found.communicate_s(actor) for actor in range(4)] == [0.5 * u for u in expected]
    assert found.closing_s() == 0.5 * max(expected), "the slowest one is waited for"


def test_larger_models_have_larger_messages():
    found = times(network="sqrt-size")
    assert found.communicate_s(3) == pytest.approx(2 * 13.2150, rel=1e-4)


def test_changing_times_turn_round():
    found = times(law="changing", unit_s=0.1)
    forwards = compute(found)
    assert forwards == pytest.approx([0.1, 0.1 * math.sqrt(2), 0.1 * math.sqrt(3), 0.2])
    turn_s = 0.1 * CHANGE_UNITS
    assert compute(found, now_s=1.01 * turn_s) == forwards[::-1]
    assert compute(found, now_s=2.01 * turn_s) == forwards


def test_random_times_have_the_means_of_the_law():
    found = times(law="random")
    drawn = np.array([compute(found, index=index) for index in range(4000)])
    means = np.sqrt([1, 2, 3, 4])
    # Exponential: the deviation of one is its mean. 4 standard errors.
    np.testing.assert_allclose(drawn.mean(0), means, rtol=4 / math.sqrt(4000))
    np.testing.assert_allclose(drawn.std(0), means, rtol=0.15)
    assert len(np.unique(drawn)) == drawn.size
    assert [found.usual_s(actor, 1) for actor in range(4)] == pytest.approx(means)


def test_random_times_are_the_same_for_every_method_and_differ_between_seeds():
    one, same, other = times(law="random"), times(law="random"), times(law="random", seed=2)
    assert compute(one, now_s=0.0, index=7) == compute(same, now_s=9.0, index=7)
    assert compute(one, index=7) != compute(other, index=7)


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"law": "given", "compute": (1, 2)}, "times.compute has 2 numbers, but there are 4"),
        ({"law": "given"}, "times.compute has 0 numbers"),
        ({"network": "given", "communicate": (1,)}, "times.communicate has 1 numbers"),
    ],
)
def test_a_list_that_does_not_fit_is_told(config, text):
    with pytest.raises(UsageError, match=text):
        times(**config)


@pytest.mark.parametrize(
    "config",
    [
        {"law": "equal", "unit_s": 1e-12},
        {"law": "given", "compute": (1, 1, 1, 1e300)},
        {"network": "given", "communicate": (0, 0, 0, 1e-10)},
    ],
)
def test_times_that_no_clock_can_count_are_refused(config):
    with pytest.raises(UsageError, match=r"must be from 1e-09 to 1e\+09 s"):
        times(**config)
