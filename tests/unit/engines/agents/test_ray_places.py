"""Which agents get places on a Ray cluster first."""

import threading
from types import SimpleNamespace

import pytest

from tianji.engines.agents import ray_hosts
from tianji.engines.agents.interface import Call, HostLost

pytest.importorskip("ray", reason="needs Ray")


def ray_error(name, *words):
    return getattr(ray_hosts.import_ray().exceptions, name)(*words)


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


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ray_error("ActorDiedError"), "was lost: its agent has died."),
        (
            ray_error("ActorUnavailableError", "RpcError: Socket closed rpc_code: 14", None),
            "was lost: its agent cannot be reached.",
        ),
        (ray_error("GetTimeoutError", "Get timed out."), "has not answered for 30 s."),
    ],
)
def test_a_lost_host_is_told_in_our_words(error, words):
    def get(reply, timeout):
        raise error

    agent = object.__new__(ray_hosts.RayAgent)
    agent.host = "10.0.0.7"
    agent._ray = SimpleNamespace(exceptions=ray_hosts.import_ray().exceptions, get=get)
    agent._actor = SimpleNamespace(answer=SimpleNamespace(remote=lambda *words: None))
    with pytest.raises(HostLost) as raised:
        agent.call(Call.POLL, b"")
    assert str(raised.value) == f"Host 10.0.0.7 {words}"


@pytest.mark.parametrize(("is_found", "first"), [(True, ["own token"]), (False, [])])
def test_the_persons_token_is_used_for_a_cluster_that_was_found(monkeypatch, is_found, first):
    """A token changes what this whole process sends, so that Ray's own functions stand aside."""
    from ray._private.authentication import authentication_token_setup as tokens

    asked = []
    monkeypatch.setattr(
        tokens,
        "maybe_enable_token_auth_if_token_available",
        lambda warn_if_disabled: asked.append("own token"),
    )
    monkeypatch.setattr(
        tokens,
        "ensure_token_if_auth_enabled",
        lambda create_token_if_missing: asked.append("is there one"),
    )
    ray = SimpleNamespace(
        _raylet=SimpleNamespace(GcsClient=lambda address: asked.append(f"ask {address}"))
    )
    ray_hosts._check_token(ray, "10.0.0.1:6379", is_found)
    assert asked == [*first, "is there one", "ask 10.0.0.1:6379"]
