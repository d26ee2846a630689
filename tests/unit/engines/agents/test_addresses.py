"""Addresses of hosts, and which of them can be reached."""

import socket

import pytest

from tianji.engines.agents.addresses import first_that_answers, own_addresses
from tianji.errors import TianjiError


def test_loopback_is_tried_last():
    assert own_addresses()[-1] == "127.0.0.1"
    assert len(set(own_addresses())) == len(own_addresses())


def test_the_first_address_with_a_listener_is_taken():
    with socket.create_server(("127.0.0.2", 0)) as server:
        port = server.getsockname()[1]
        found = first_that_answers(["127.0.0.3", "127.0.0.2", "127.0.0.1"], port)
    assert found == ("127.0.0.2", port)


def test_a_host_that_cannot_be_reached_is_named():
    with socket.create_server(("127.0.0.2", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(TianjiError, match=rf"port {port} .* 127.0.0.2, 127.0.0.3\. Allow"):
        first_that_answers(["127.0.0.2", "127.0.0.3"], port)
