"""Measuring the network between two hosts."""

import os
import socket

import pytest

from tianji.engines.agents.mpi.hosts import OwnAgent
from tianji.engines.agents.network import Target, measure


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr("tianji.engines.agents.network.SEND_S", 0.05)


def test_a_host_with_the_secret_is_answered_once_and_strangers_are_not():
    secret = os.urandom(32)
    target = Target("127.0.0.1", secret)
    with pytest.raises(ConnectionError):
        measure(["127.0.0.1"], target.port, os.urandom(32))
    found = measure(["127.0.0.1"], target.port, secret)
    assert found.gbit_per_s > 0
    assert found.way_ms > 0
    target.thread.join()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", target.port))


def test_agents_measure_the_way_between_them():
    one, other = OwnAgent("one", "127.0.0.1"), OwnAgent("other")
    assert one.measure_from(other, os.urandom(32)).gbit_per_s > 0
