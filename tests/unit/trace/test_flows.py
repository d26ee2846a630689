"""How arrows are drawn between the rings of roles."""

from tests.unit.trace.rings import ring
from tianji.trace.flows import item_flows, policy_flows
from tianji.trace.spans import Kind

SEND, RECEIVE, STORED, USED = Kind.SEND, Kind.RECEIVE, Kind.STORED, Kind.USED


def flows(*roles):
    """Subject and (role, rounded time) of every item's arrow."""
    names = [role.role for role in roles]
    return [
        (flow.subject, [(names[p.role], round(p.at_ns, -1)) for p in flow.places])
        for flow in item_flows(roles)
    ]


def test_an_item_goes_from_its_send_to_its_receipt_to_its_update():
    actor = ring("actor", (SEND, 100, 200, 7))
    buffer = ring("buffer", (RECEIVE, 150, 210, 7), (STORED, 250, 250, 7))
    learner = ring("learner", (USED, 300, 300, 7), (USED, 300, 300, 8))
    assert flows(actor, buffer, learner) == [
        (7, [("actor", 100), ("buffer", 210), ("learner", 300)])
    ]


def test_an_item_of_a_replay_ends_where_it_is_stored():
    actor = ring("actor", (SEND, 100, 200, 7))
    buffer = ring("buffer", (RECEIVE, 150, 210, 7), (STORED, 250, 250, 7))
    assert flows(actor, buffer) == [(7, [("actor", 100), ("buffer", 210), ("buffer", 250)])]


def test_an_item_that_was_given_up_ends_where_it_was_received():
    actor = ring("actor", (SEND, 100, 200, 7))
    assert flows(actor, ring("buffer", (RECEIVE, 150, 210, 7))) == [
        (7, [("actor", 100), ("buffer", 210)])
    ]


def test_an_item_that_nobody_received_has_no_arrow():
    assert flows(ring("actor", (SEND, 100, 200, 7)), ring("buffer")) == []


def test_an_item_whose_send_fell_out_has_no_arrow():
    assert flows(ring("actor"), ring("buffer", (RECEIVE, 150, 210, 7))) == []


def test_an_item_that_was_made_again_has_an_arrow_of_its_own():
    actor = ring("actor", (SEND, 100, 200, 7), (SEND, 500, 600, 7))
    dead = ring("dead", (RECEIVE, 150, 210, 7))
    alive = ring("alive", (RECEIVE, 550, 610, 7), (USED, 700, 700, 7))
    assert flows(actor, dead, alive) == [
        (7, [("actor", 100), ("dead", 210)]),
        (7, [("actor", 500), ("alive", 610), ("alive", 700)]),
    ]


def test_every_pick_up_of_a_policy_has_its_own_arrow():
    learner = ring("learner", (Kind.PUBLISH, 10, 20, 3), (Kind.PUBLISH, 50, 60, 4))
    one = ring("actor-0", (Kind.PICK_UP, 22, 32, 3))
    other = ring("actor-1", (Kind.PICK_UP, 25, 42, 3), (Kind.PICK_UP, 45, 72, 4))
    found = [(f.subject, f.places[1].role, f.places[1].at_ns) for f in
             policy_flows([learner, one, other])]  # fmt: skip
    assert found == [(3, 1, 31), (3, 2, 41), (4, 2, 71)]
