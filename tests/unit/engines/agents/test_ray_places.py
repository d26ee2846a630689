"""Which agents get places on a Ray cluster first."""

import threading
from types import SimpleNamespace

import pytest

from tianji.engines.agents import ray_hosts

pytest.importorskip("ray", reason="needs Ray")


@pytest.fixture
def hosts(monkeypatch):
    """Two learners with a host of actors each; every node is free."""
    made = ray_hosts.RayHosts("auto", num_learners=2, hosts_each=2)
    monkeypatch.setattr(made, "_place", lambda is_wanted: SimpleNamespace(host="10.0.0.7"))
    return made


def in_thread(call, *words):
    thread = threading.Thread(target=call, args=words, daemon=True)
    thread.start()
    return thread


def test_actors_have_places_as_soon_as_all_learners_have_theirs(hosts, monkeypatch):
    monkeypatch.setattr(ray_hosts, "LOOK_S", 600.0)
    waits = in_thread(hosts.start, 1, lambda: True)
    hosts.start(0, lambda: True)
    assert 1 not in hosts.places, "the other learner has none yet"
    hosts.start(2, lambda: True)
    waits.join(60)
    assert sorted(hosts.places) == [0, 1, 2]


def test_actors_that_are_not_wanted_any_more_do_not_wait(hosts, monkeypatch):
    monkeypatch.setattr(ray_hosts, "LOOK_S", 0.001)
    wanted = iter([True, True, False])
    waits = in_thread(hosts.start, 1, lambda: next(wanted, False))
    waits.join(60)
    assert not waits.is_alive()
