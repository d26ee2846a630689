"""Addresses of hosts in the network between them."""

import pytest

from tianji.engines.agents.addresses import Door, Invitation, choose, own_addresses, visit
from tianji.errors import UsageError


def test_a_host_that_reaches_the_head_knows_both_addresses():
    with Door() as door:
        invitation = Invitation.decode(door.invitation.encode())
        assert invitation == door.invitation
        assert visit(invitation) == {address: address for address in own_addresses()}
    assert visit(invitation) == {}, "the door is closed afterwards"


def test_another_program_at_the_same_address_is_not_the_head():
    with Door() as other:
        asked = Invitation(["127.0.0.1"], other.invitation.port, "what the head would say")
        assert visit(asked) == {}


def test_the_loopback_address_comes_last():
    *_, last = own_addresses()
    assert last == "127.0.0.1"


def test_the_first_network_in_which_all_reach_the_head_is_used():
    head = {"172.17.0.1": "172.17.0.1", "10.0.0.1": "10.0.0.1", "127.0.0.1": "127.0.0.1"}
    there = {"10.0.0.1": "10.0.0.2"}
    assert choose([head, there, head]) == ["10.0.0.1", "10.0.0.2", "10.0.0.1"]
    assert choose([head, head])[0] == "172.17.0.1", "all are on one host"


def test_hosts_without_a_common_network_are_named():
    head = {"10.0.0.1": "10.0.0.1"}
    with pytest.raises(UsageError, match=r"of 10\.0\.0\.1\. Ranks that reach none: 2\."):
        choose([head, head, {}])
