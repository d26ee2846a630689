"""A stream whose ends are on two hosts does what every stream must do."""

import pytest

from tests.contracts import test_stream as contract
from tests.unit.gateways.hosts import SettledEnd, TwoHosts

CASES = [
    contract.test_without_a_grant_an_actor_is_paced_and_nothing_arrives,
    contract.test_slots_are_bounded_and_come_back_when_released,
    contract.test_several_grants_at_once_are_for_rounds_in_a_row_and_as_many_as_there_are,
    contract.test_nothing_is_lost_doubled_or_reordered_per_sender,
    contract.test_lanes_are_taken_in_turn,
    contract.test_a_reset_lane_delivers_what_was_sent_and_gives_back_the_rest,
    contract.test_after_a_reset_the_lane_works_as_new,
]


@pytest.fixture
def ends():
    made = []

    def forwarded_ends(num_slots, num_lanes):
        hosts = TwoHosts(contract.LAYOUT, num_slots, num_lanes)
        made.append(hosts)
        hosts.settle()
        receiver = SettledEnd(hosts, lambda: hosts.b.receiver)
        senders = [
            SettledEnd(hosts, lambda actor=actor: hosts.a.senders[actor])
            for actor in range(num_lanes)
        ]
        return receiver, senders

    yield forwarded_ends
    for hosts in made:
        hosts.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_it_holds_between_two_hosts(case, ends):
    case(ends)
