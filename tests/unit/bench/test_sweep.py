"""The sweep: what is measured, how much of it, and what is said about it."""

import pytest

from tests.unit.bench.made_up import measured, sweep_made_up
from tianji.bench.sweep import (
    ACTORS,
    FIGURE_SIZE,
    MANY_ACTORS,
    SIZES,
    in_words,
    loads,
    make_point,
    measure_actors,
    measure_sizes,
    settings,
    sweep,
)

KB, MB = 1 << 10, 1 << 20


@pytest.fixture
def made_up(monkeypatch):
    sweep_made_up(monkeypatch)


def test_sizes_go_from_4_kb_to_8_mb_and_every_point_is_there_once():
    assert (SIZES[0], SIZES[-1]) == (4 * KB, 8 * MB)
    assert {0.0, 0.001, 0.010} == {sample_s for _, _, sample_s in settings()}
    assert len(set(settings())) == len(settings())


def test_whatever_is_predicted_has_a_point_of_one_actor_to_fit_on():
    for size, _, sample_s in settings():
        assert (size, 1, 0.0) in settings()
        assert (size, 1, sample_s) in settings()


@pytest.mark.parametrize(
    ("setting", "num_messages"),
    [
        ((4 * KB, 1, 0.0), 300_000),
        ((8 * MB, 1, 0.0), 1192),
        ((512 * KB, 4, 0.001), 4000),
        ((512 * KB, 16, 10.0), 320),
    ],
)
def test_messages_fill_the_time_and_every_actor_has_some(setting, num_messages):
    assert make_point(*setting, point_s=1.0).num_messages == num_messages
    make_point(*setting, point_s=1.0).check()


def test_every_load_that_the_model_asks_for_is_measured():
    needed = loads(num_cores=2)
    assert {runs for _, runs in needed} == {2, 4}
    assert {size for size, _ in needed} == set(SIZES)
    assert (FIGURE_SIZE, 16) in loads(num_cores=16), "for the point of saturation"


def test_the_two_figures_measure_their_own_points(made_up):
    by_size = measure_sizes(point_s=0.01)
    assert [(p["size_bytes"], p["actors"]) for p in by_size] == [(size, 1) for size in SIZES]
    by_actors = measure_actors(point_s=0.01)
    assert {p["size_bytes"] for p in by_actors} == {FIGURE_SIZE}
    expected = [(t, n) for t in (0.0, 0.001, 0.010) for n in MANY_ACTORS]
    assert [(p["sample_time_s"], p["actors"]) for p in by_actors] == expected


def test_a_sweep_measures_every_setting_and_predicts_it(made_up):
    said = []
    found = sweep(said.append)
    measured_at = [(p["size_bytes"], p["actors"], p["sample_time_s"]) for p in found["points"]]
    assert measured_at == settings()
    assert len(said) == len(settings())
    assert said[0].startswith(f"1 of {len(settings())}: 4096 bytes")
    assert found["worst_prediction_error"] == pytest.approx(0.0, abs=1e-9), "the same model twice"
    fitted = [p for p in found["points"] if p["is_fitted"]]
    assert {p["actors"] for p in fitted} == {1} and len(fitted) == len(SIZES) + 2
    assert [row["sample_time_s"] for row in found["saturation"]] == [0.0, 0.001, 0.010]
    assert found["idle_receiver_share"] == 0.0012


def test_what_the_sweep_says_in_words(made_up):
    best, *saturation, model = sweep(lambda text: None)["in_words"]
    assert "up to 21.0 GB/s" in best, best
    assert "of the speed at which one core copies memory" in best
    assert len(saturation) == 3
    assert "sample time 1 ms: up to 41.6 actors the actors are the bottleneck" in saturation[1]
    assert saturation[1].endswith("beyond that the processors.")
    assert "within 0 % on every point that it was not fitted on" in model
    assert "takes 0.12 % of a core" in model


def test_the_share_of_copying_is_that_of_one_actor_without_a_sample_time():
    points = [measured(s_per_10k=1.0), measured(4, s_per_10k=0.25), measured(1, 0.001)]
    found = {
        "points": points, "saturation": [], "worst_prediction_error": 0.1,
        "idle_receiver_share": 0.0,
    }  # fmt: skip
    first, _ = in_words(found)
    assert f"One actor reaches {points[0]['share_of_memcpy'] * 100:.0f} %" in first
    assert "21.0 GB/s" in first


def test_all_numbers_of_actors_begin_with_one():
    assert ACTORS[0] == MANY_ACTORS[0] == 1
