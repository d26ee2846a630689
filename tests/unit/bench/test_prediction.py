"""The model fitted on one actor's measurements, against values worked out by hand."""

import pytest

from tests.unit.bench.made_up import ALONE, CORES, LOADED, SIZE, measured
from tianji.bench.prediction import Model, is_fitted_on, runs_at_once, worst_error


@pytest.fixture
def model():
    others = [measured(2, sender_us=999.0), measured(copying=True, sender_us=999.0)]
    return Model([*ALONE, *others], LOADED, CORES)


SHARE_1_MS, SHARE_10_MS = 40 / 1100, 40 / 10200  # of the time, an actor sends
# Actors, sample time, seconds for 10,000, who holds it up.
BY_HAND = [
    (1, 0.0, 10_000 * 40e-6, "actors"),
    (2, 0.0, 10_000 * 70e-6 / 2, "processors"),
    (8, 0.0, 10_000 * 100e-6 / 2, "processors"),
    (1, 0.001, 10_000 * 1100e-6, "actors"),
    (4, 0.001, 10_000 * (1100e-6 + 40e-6 * SHARE_1_MS) / 4, "actors"),
    (64, 0.001, 10_000 * (5e-6 + 50e-6 + 50e-6 * SHARE_1_MS) / 2, "processors"),
    (16, 0.010, 10_000 * (10200e-6 + 40e-6 * SHARE_10_MS) / 16, "actors"),
]


@pytest.mark.parametrize(("actors", "sample_time_s", "seconds", "side"), BY_HAND)
def test_the_model_predicts_what_one_works_out_by_hand(model, actors, sample_time_s, seconds, side):
    said = model.predict(measured(actors, sample_time_s, s_per_10k=2 * seconds))
    assert said["predicted_s_per_10k"] == pytest.approx(seconds)
    assert said["prediction_error"] == pytest.approx(-0.5)
    assert said["critical_path"] == side


def test_the_printed_equation_is_told_beside_it(model):
    said = model.predict(measured(4, 0.001))
    send_s = 40e-6 + 40e-6 * SHARE_1_MS
    assert said["printed_equation_s_per_10k"] == pytest.approx(10_000 * (1060e-6 + send_s))


def test_the_equation_divided_by_the_actors_knows_no_cores(model):
    said = model.predict(measured(8, 0.0))
    assert said["critical_path"] == "processors"
    assert said["equation_s_per_10k"] == pytest.approx(10_000 * 20e-6), "the buffer's time"
    said = model.predict(measured(4, 0.001))
    assert said["equation_s_per_10k"] == pytest.approx(said["predicted_s_per_10k"])


def test_sampling_counts_with_the_processor_time_it_takes(model):
    assert model.collecting(SIZE, 3, 0.001).sample_cpu_s == pytest.approx(5e-6)
    assert model.collecting(SIZE, 3, 0.010).sample_cpu_s == 0.0, "less than nothing was measured"
    found = model.collecting(SIZE, 3, 0.001)
    assert (found.num_actors, found.sample_s, found.num_cores) == (3, 0.00106, CORES)


def test_costs_are_those_of_one_actor_and_of_the_load(model):
    alone, two, eight = (model.costs(SIZE, n, sample_s=0.0) for n in (1, 2, 8))
    assert (alone.send_s, alone.receive_s, alone.cpu_s) == pytest.approx((40e-6, 10e-6, 50e-6))
    assert (two.send_s, two.receive_s, two.cpu_s) == pytest.approx((60e-6, 10e-6, 70e-6))
    assert (eight.send_s, eight.receive_s, eight.cpu_s) == pytest.approx((80e-6, 20e-6, 100e-6))


def test_a_machine_is_full_with_two_actors_for_each_core():
    assert [runs_at_once(n, 2) for n in (1, 2, 3, 4, 5, 100)] == [1, 2, 3, 4, 4, 4]


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
    busy_us, cpu_us = 1100 + 20 * SHARE_1_MS, 55 + 20 * SHARE_1_MS
    assert found["actors"] == pytest.approx(busy_us / (cpu_us / 2))
    assert found["then"] == "processors"
    assert (found["size_bytes"], found["sample_time_s"]) == (SIZE, 0.001)


def test_without_a_sample_time_less_than_two_actors_saturate(model):
    found = model.saturation(SIZE, 0.0)
    assert found["actors"] == pytest.approx(60 / 35)
    assert found["then"] == "processors"
