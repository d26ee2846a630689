"""Figures 6 (a) to (d): what is on them, and what their data is made of."""

import json

import numpy as np
import pytest

from tests.unit.figures.made_up import ablation_data, scaling_data
from tianji.cli.main import main
from tianji.config.machine import Machine
from tianji.costs.profile import Profile, Rehearsal
from tianji.figures import catalogue
from tianji.figures.balance import ablation, scaling
from tianji.figures.balance.scaling_picture import equilibrium
from tianji.figures.catalogue import FIGURES
from tianji.figures.files import describe

PRODUCED, TRAINED = "produced by the actors", "trained on, over the ratio"


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def test_three_rates_share_an_axis_because_training_is_divided_by_the_ratio():
    above, below = FIGURES["tianji-6a"].draw(scaling_data()).axes
    drawn = lines(above)
    assert list(drawn[PRODUCED].get_ydata()) == [10, 20, 30, 35, 35]
    assert list(drawn[TRAINED].get_ydata()) == [10, 20, 30, 35, 35]
    assert "simulated" in drawn
    assert above.get_title(loc="left").endswith("one run for each point")
    assert list(below.get_lines()[0].get_ydata()) == [1.0] * 5


def test_the_balance_is_where_more_actors_bring_next_to_nothing():
    assert equilibrium(scaling_data()["points"]) == 4
    texts = [text.get_text() for text in FIGURES["tianji-6b"].draw(scaling_data()).axes[0].texts]
    assert " balance at 4 actors " in texts
    assert " paper: at 16 actors " in texts


def test_planned_and_arbitrary_runs_are_drawn_over_seconds_and_over_steps():
    seconds, steps = FIGURES["tianji-6d"].draw(ablation_data()).axes
    planned, arbitrary = (
        next(line for name, line in lines(seconds).items() if name.startswith(mapping))
        for mapping in ("planned, 1 actor + 1 learner thread", "arbitrary, 8 actors + 2 learner")
    )
    assert max(planned.get_xdata()) == 1.0
    assert max(arbitrary.get_xdata()) == 2.0
    assert {max(line.get_xdata()) for line in steps.get_lines()} == {2.0}  # thousands
    stale = lines(steps)["planned, 1 actor + 1 learner thread, Staleness: P = 1/8"]
    assert np.max(stale.get_ydata()) == 202  # the median of three seeds


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("tianji-6a", scaling_data()), ("tianji-6b", scaling_data()),
        ("tianji-6d", ablation_data()),
    ],
)  # fmt: skip
def test_each_is_drawn_by_one_command(name, data, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(catalogue, "read_data", {name: data}.__getitem__)
    assert main(["figure", name, "--json"]) == 0
    assert json.loads(capfd.readouterr().out.splitlines()[-1])["path"] == f"{name}.png"
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


@pytest.mark.parametrize("num_cores", [2, 4, 16])
def test_a_larger_batch_on_more_threads_keeps_the_ratio(num_cores):
    small, large = scaling.SMALL, scaling.large(num_cores)
    assert large.learner_threads > small.learner_threads
    assert large.batch_size == small.batch_size * large.learner_threads
    assert large.ratio == small.ratio


@pytest.mark.parametrize("size", [1, 14])
def test_every_actor_brings_one_environment_and_its_updates(size):
    config = scaling.SMALL.config(size)
    assert (config.num_actors, config.num_envs, config.learner_threads) == (size, size, 1)
    updated = config.algorithm.updates_per_version * config.algorithm.batch_size
    assert updated / (size * config.algorithm.unroll_length) == scaling.SMALL.ratio


def test_a_machine_with_few_cores_measures_few_sizes():
    assert scaling.sizes_for(2) == [1, 2, 3, 4]
    assert scaling.sizes_for(16) == list(scaling.SIZES)


def test_measured_data_has_what_the_picture_needs(monkeypatch):
    def rates(config, seconds):
        return Rehearsal(
            num_actors=config.num_actors, learner_threads=1, actor_threads=1, produced=1.0,
            received=1.0, trained=2.0, lag_versions=1.0,
        )  # fmt: skip

    measured = Profile.model_validate(scaling_data()["profile"])
    monkeypatch.setattr(scaling, "measure_rates", rates)
    monkeypatch.setattr(scaling, "_profile", lambda *_: measured)
    monkeypatch.setattr(scaling, "read_machine", lambda: Machine((0, 1), 1 << 30))
    data = describe("tianji-6a") | scaling.measure_small()
    assert set(data) == set(scaling_data())
    assert data["capacity"] == pytest.approx({"actor": 10_000, "learner": 35_000})
    assert [point["actors"] for point in data["simulated"]] == [1, 2, 3, 4]
    assert data["simulated"][0]["received"] == pytest.approx(10_000, rel=0.1)
    assert FIGURES["tianji-6a"].draw(data)


def test_a_curve_begins_with_the_first_mean_return():
    records = [
        {"wall_s": 0.1, "env_steps": 10, "mean_return_100": None},
        {"wall_s": 0.2, "env_steps": 20, "mean_return_100": 9.5},
    ]
    assert ablation.curve(records) == {"seconds": [0.2], "steps": [20], "return": [9.5]}


def test_the_four_runs_differ_in_nothing_but_mapping_and_staleness(monkeypatch, tmp_path):
    asked = []

    def fake(config):
        asked.append(config)
        record = {"wall_s": 1.0, "env_steps": 5, "mean_return_100": 20.0}
        (tmp_path / "metrics.jsonl").write_text(json.dumps(record))
        return {"run_dir": str(tmp_path), "rates_per_s": {}, "lag_versions": {}}

    monkeypatch.setattr("tianji.run.train_config", fake)
    monkeypatch.setattr(
        ablation, "find_mappings", lambda _: {"planned": (1, 1), "arbitrary": (8, 1)}
    )
    monkeypatch.setattr(ablation, "SEEDS", (3,))
    data = describe("tianji-6d") | ablation.measure_ablation()
    assert [(c.num_actors, c.algorithm.pool_batches) for c in asked] == [
        (1, 1), (1, 8), (8, 1), (8, 8),
    ]  # fmt: skip
    same = [
        c.model_copy(
            update={
                "num_actors": 1,
                "algorithm": c.algorithm.model_copy(update={"pool_batches": 1}),
            }
        )
        for c in asked
    ]
    assert all(config == same[0] for config in same)
    assert set(data) == set(ablation_data())
    assert set(data["points"][0]) >= set(ablation_data()["points"][0])
