"""Measuring the network between two hosts."""

import os
import socket

import pytest

from tianji.engines.agents.network import Target, measure


def test_a_host_with_the_secret_is_answered_and_strangers_are_not(monkeypatch):
    monkeypatch.setattr("tianji.engines.agents.network.SEND_S", 0.05)
    secret = os.urandom(32)
    with Target("127.0.0.1", secret) as target:
        with pytest.raises(ConnectionError):
            measure(["127.0.0.1"], target.port, os.urandom(32))
        found = measure(["127.0.0.1"], target.port, secret)
    assert found.gbit_per_s > 0
    assert found.way_ms > 0
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", target.port))


def test_a_target_that_nobody_visits_ends_at_once():
    with Target("127.0.0.1", os.urandom(32)):
        pass
