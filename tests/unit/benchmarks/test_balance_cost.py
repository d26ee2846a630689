"""The pieces of gauges and controller that the benchmark of their cost runs."""

from __future__ import annotations

import pytest

from benchmarks.balance_cost import bench, pieces


@pytest.mark.parametrize("preset", bench.PRESETS)
def test_every_piece_can_be_measured(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "CALLS", 20)
    plan, _ = bench.plan_of(preset)
    pieces.controller_us(plan)  # how long it takes is the benchmark's business
    pieces.look_us(plan)
    assert set(pieces.unit_costs()) >= {use.piece for use in bench.uses_of(plan, 1)}
