"""Which numbers of actors are measured, and what becomes of them."""

from types import SimpleNamespace

import pytest

from tests.fakes.specs import make_spec
from tests.unit.planning.measure.profiles import sampled
from tianji.config.machine import Machine
from tianji.envs.build import probe
from tianji.errors import UsageError
from tianji.planning.measure.crew import Built
from tianji.planning.measure.measurement import CostMeasurement, Point

GIB = 1 << 30


def costs(tmp_path, memory_bytes, **values):
    spec = make_spec(tmp_path, engine="local", num_envs=8, num_actors="auto", **values)
    found, crew = probe(spec.env, {}), SimpleNamespace(spec=spec)
    return CostMeasurement(crew, Machine((0, 1), memory_bytes), found, 0.0, print)


def test_numbers_of_actors_without_memory_for_them_are_left_out(tmp_path):
    counts = [8, 4, 2, 1]
    plans = costs(tmp_path, 64 * GIB)._plans(counts)
    assert [plan.num_actors for plan in plans] == counts
    assert [p.num_actors for p in costs(tmp_path, GIB)._plans(counts)] == [2, 1]
    with pytest.raises(UsageError, match="does not fit"):
        costs(tmp_path, GIB // 8)._plans(counts)


@pytest.mark.parametrize(("cpu_s", "loaded_s"), [(1.0, 2.0), (0.1, 1.0)])
def test_load_does_not_make_a_wait_longer(tmp_path, cpu_s, loaded_s):
    (plan,) = costs(tmp_path, GIB)._plans([1])
    built = Built(build_s=0.0, memory_bytes=1)
    point = Point(plan, built, sampled(1.0, cpu_s=cpu_s), loaded_s=1.0)
    assert point.cost == point.alone.cost
    point.add_load([sampled(2.0, cpu_s=cpu_s)])
    assert point.cost.unroll.loaded_s == loaded_s
