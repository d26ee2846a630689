"""Which costs the virtual engine gets."""

import pytest

from tests.fakes.specs import make_spec
from tests.unit.virtual.test_sizes import profile
from tianji.config.machine import read_machine
from tianji.planning.keep import key_of, save
from tianji.planning.planner import virtual_costs


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def nothing(_text):
    raise AssertionError("nothing is to be measured")


def test_by_rule_nothing_is_measured(tmp_path):
    spec = make_spec(tmp_path, engine="virtual", plan={"source": "rule"})
    assert virtual_costs(spec, nothing) is None


def test_a_profile_that_was_kept_is_used(tmp_path):
    spec = make_spec(tmp_path, engine="virtual")
    save(key_of(spec.config, read_machine()), profile())
    assert virtual_costs(spec, nothing) == profile()


def test_without_one_the_run_is_measured_and_kept(tmp_path, monkeypatch):
    import tianji.planning.measure.measure

    spec = make_spec(tmp_path, engine="virtual")
    monkeypatch.setattr(tianji.planning.measure.measure, "measure", lambda *_: profile())
    assert virtual_costs(spec, nothing) == profile()
    monkeypatch.setattr(tianji.planning.measure.measure, "measure", nothing)
    assert virtual_costs(spec, nothing) == profile()
