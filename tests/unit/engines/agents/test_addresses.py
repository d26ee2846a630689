"""Addresses of hosts, and which of them can be reached."""

import socket

import pytest

from tianji.engines.agents.addresses import (
    Greeter,
    Invitation,
    choose,
    first_that_answers,
    own_addresses,
    visit,
)
from tianji.errors import TianjiError, UsageError


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


def test_a_host_that_reaches_the_head_knows_both_addresses():
    with Greeter() as greeter:
        invitation = Invitation.decode(greeter.invitation.encode())
        assert invitation == greeter.invitation
        assert visit(invitation) == {address: address for address in own_addresses()}
    assert visit(invitation) == {}, "it is closed afterwards"


def test_another_program_at_the_same_address_is_not_the_head():
    with Greeter() as other:
        asked = Invitation(["127.0.0.1"], other.invitation.port, "what the head would say")
        assert visit(asked) == {}


def test_the_first_network_in_which_all_reach_the_head_is_used():
    head = {"172.17.0.1": "172.17.0.1", "10.0.0.1": "10.0.0.1", "127.0.0.1": "127.0.0.1"}
    there = {"10.0.0.1": "10.0.0.2"}
    assert choose([head, there, head]) == ["10.0.0.1", "10.0.0.2", "10.0.0.1"]
    assert choose([head, head]) == ["127.0.0.1", "127.0.0.1"], "all are on one host"


def test_hosts_without_a_common_network_are_named():
    head = {"10.0.0.1": "10.0.0.1"}
    with pytest.raises(UsageError, match=r"of 10\.0\.0\.1\. Ranks that reach none: 2\."):
        choose([head, head, {}])
