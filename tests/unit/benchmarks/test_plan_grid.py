"""What the benchmark of plans relies on: fair grids, and sums that are right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.harness import Report
from benchmarks.plan_grid import waiting
from benchmarks.plan_grid.bench import Bench, Finding, parse, rows_of
from benchmarks.plan_grid.combinations import COMBINATIONS, Combination, Mapped
from tianji.config.overrides import resolve_tokens
from tianji.config.run import RunConfig
from tianji.costs.profile import Rehearsal
from tianji.errors import WorkerLost

PPO = COMBINATIONS[0]


@pytest.mark.parametrize("combination", COMBINATIONS, ids=lambda c: c.name)
def test_the_plan_is_asked_for_what_the_grid_measures(combination: Combination) -> None:
    asked = resolve_tokens([combination.preset, *combination.options()]).config
    assert asked == combination.config()


@pytest.mark.parametrize("cores", [2, 16])
@pytest.mark.parametrize("combination", COMBINATIONS, ids=lambda c: c.name)
def test_every_point_shares_the_environments_evenly(combination: Combination, cores: int) -> None:
    points = combination.grid(cores)
    assert all(combination.config(p).num_envs % p.num_actors == 0 for p in points)
    assert len(set(points)) == len(points)


def test_a_grid_grows_with_the_machine() -> None:
    assert PPO.grid(2) == [Mapped(n, k) for n in (1, 2, 4, 8) for k in (1, 2)]
    some = [Mapped(n, k) for n in (1, 2, 4, 8) for k in (1, 2, 4, 8)]
    assert PPO.grid(16) == [*some, Mapped(16, 1), Mapped(16, 2)]


def faked(config: RunConfig, _: float) -> Rehearsal:
    """Four actors with one thread are best, each one away from that costs a tenth."""
    assert config.num_actors != "auto" and config.learner_threads != "auto"
    away = abs(config.num_actors - 4) + config.learner_threads - 1
    rate = 1000.0 * 0.9**away
    return Rehearsal(
        num_actors=config.num_actors, learner_threads=config.learner_threads, actor_threads=1,
        produced=rate, received=rate, trained=3 * rate, lag_versions=1.1,
        ratio=1.0,
    )  # fmt: skip


def planned(num_actors: int) -> dict[str, object]:
    mapped = {"num_actors": num_actors, "learner_threads": 1, "actor_threads": 1}
    predicted = {"produced": 900.0, "received": 900.0, "trained": 2700.0}
    return {**mapped, "predicted": predicted, "planning_s": 9.0, "lag_versions": 1.0}


def run_bench(tmp_path: Path, num_actors: int) -> tuple[Finding, list[dict[str, object]]]:
    args = parse(["--out", str(tmp_path / "out.json")])
    bench = Bench(Report("plan_grid", args), 1.0, 3, faked, lambda _: planned(num_actors))
    found = bench.run(PPO, PPO.grid(2))
    return found, json.loads((tmp_path / "out.json").read_text())["raw"]


def test_a_plan_is_held_against_the_best_point(tmp_path: Path) -> None:
    found, _ = run_bench(tmp_path, num_actors=2)
    assert (found.plan, found.best) == (Mapped(2, 1), Mapped(4, 1))
    assert found.share == pytest.approx(0.81)
    assert found.errors()["trained"] == pytest.approx(900 / 810 - 1)
    assert found.lag_error() == pytest.approx(0.1)
    assert found.ratio_error() == pytest.approx(0.0)


def test_a_point_that_stands_still_is_counted_as_such(tmp_path: Path) -> None:
    def stuck(config: RunConfig, seconds: float) -> Rehearsal:
        if config.learner_threads == 2:
            raise WorkerLost("too few versions")
        return faked(config, seconds)

    args = parse(["--out", str(tmp_path / "out.json")])
    bench = Bench(Report("plan_grid", args), 1.0, 1, stuck, lambda _: planned(4))
    assert bench.run(PPO, PPO.grid(2)).best == Mapped(4, 1)
    raw = json.loads((tmp_path / "out.json").read_text())["raw"]
    assert [row["trained"] for row in raw if "failed" in row] == [0.0] * 4


def test_the_whole_grid_and_every_repeat_are_kept(tmp_path: Path) -> None:
    _, raw = run_bench(tmp_path, num_actors=8)
    phases = [row["phase"] for row in raw]
    assert phases.count("grid") == len(PPO.grid(2))
    assert phases.count("again") == 3 * (3 + 1)


def test_a_plan_that_is_one_of_the_best_is_not_measured_twice(tmp_path: Path) -> None:
    found, raw = run_bench(tmp_path, num_actors=4)
    assert found.share == 1.0
    assert [row["phase"] for row in raw].count("again") == 3 * 3
    assert rows_of([found])[0][:4] == ["cartpole-ppo", "4 x 1", "4 x 1", "1.000"]


def test_the_world_that_waits_waits_in_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    monkeypatch.setattr("time.sleep", naps.append)
    env = waiting.make(wait_ms=2.0)
    env.reset(seed=0)
    env.step(0)
    env.step(1)
    assert naps == [0.002, 0.002]
