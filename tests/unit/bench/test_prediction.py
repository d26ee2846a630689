"""The model fitted on one actor's measurements, against values worked out by hand."""

import pytest

from tests.unit.bench.made_up import ALONE, CORES, SIZE, copy_speed, measured
from tianji.bench.prediction import Model, is_fitted_on, worst_error


@pytest.fixture
def model():
    others = [measured(2, sender_us=999.0), measured(copying=True, sender_us=999.0)]
    return Model([*ALONE, *others], CORES, copy_speed)


# Actors, sample time, seconds for 10,000, who holds it up.
BY_HAND = [
    (1, 0.0, 10_000 * 40e-6, "actors"),
    (2, 0.0, 10_000 * (SIZE / 20e9), "memory"),  # 26.2 us; both cores need 25 us
    (8, 0.0, 10_000 * (SIZE / 10e9), "memory"),
    (1, 0.001, 10_000 * 1100e-6, "actors"),
    (4, 0.001, 10_000 * 1100e-6 / 4, "actors"),
    (64, 0.001, 10_000 * (SIZE / 10e9), "memory"),
    (16, 0.010, 10_000 * 10200e-6 / 16, "actors"),
]


@pytest.mark.parametrize(("actors", "sample_time_s", "seconds", "side"), BY_HAND)
def test_the_model_predicts_what_one_works_out_by_hand(model, actors, sample_time_s, seconds, side):
    said = model.predict(measured(actors, sample_time_s, s_per_10k=2 * seconds))
    assert said["predicted_s_per_10k"] == pytest.approx(seconds)
    assert said["prediction_error"] == pytest.approx(-0.5)
    assert said["critical_path"] == side


def test_the_printed_equation_is_told_beside_it(model):
    said = model.predict(measured(4, 0.001))
    assert said["printed_equation_s_per_10k"] == pytest.approx(10_000 * 1100e-6)


def test_sampling_counts_with_the_processor_time_it_takes(model):
    assert model.collecting(SIZE, 3, 0.001).sample_cpu_s == pytest.approx(5e-6)
    assert model.collecting(SIZE, 3, 0.010).sample_cpu_s == 0.0, "less than nothing was measured"
    found = model.collecting(SIZE, 3, 0.001)
    assert (found.num_actors, found.sample_s, found.num_cores) == (3, 0.00106, CORES)


def test_costs_are_those_of_one_actor_and_of_the_size(model):
    costs = model.costs(SIZE, 8)
    assert (costs.send_s, costs.receive_s) == pytest.approx((40e-6, 10e-6))
    assert costs.cpu_s == pytest.approx(50e-6)
    assert costs.memory_s == pytest.approx(SIZE / 10e9)


def test_a_fit_uses_one_actor_whose_receiver_does_not_copy():
    assert is_fitted_on(measured()) and is_fitted_on(measured(1, 0.001))
    assert not is_fitted_on(measured(2))
    assert not is_fitted_on(measured(copying=True))


def test_the_worst_error_is_that_of_points_the_model_was_not_fitted_on():
    points = [
        {"prediction_error": -0.9, "is_fitted": True},
        {"prediction_error": 0.1, "is_fitted": False},
        {"prediction_error": -0.2, "is_fitted": False},
    ]
    assert worst_error(points) == 0.2
    assert worst_error(points[:1]) == 0.0


def test_where_actors_saturate_and_who_holds_up_more_of_them(model):
    found = model.saturation(SIZE, 0.001)
    # (5 + 50) us on two cores are more than the 26.2 us of memory.
    assert found["actors"] == pytest.approx(1100 / 27.5)
    assert found["then"] == "processors"
    assert (found["size_bytes"], found["sample_time_s"]) == (SIZE, 0.001)


def test_without_a_sample_time_less_than_two_actors_saturate(model):
    found = model.saturation(SIZE, 0.0)
    assert found["actors"] == pytest.approx(40e-6 / (SIZE / 20e9))
    assert found["then"] == "memory"
