"""The virtual clock: whatever is due next, in an order that is always the same."""

from tianji.virtual.clock import START_NS, VirtualClock


def run(*events):
    """(after, rank, name) in the order asked for; returns the names in which they happened."""
    clock, happened = VirtualClock(), []
    for after_ns, rank, name in events:
        clock.at(START_NS + after_ns, lambda name=name: happened.append(name), rank)
    while clock.step():
        pass
    return happened


def test_what_is_due_first_happens_first():
    assert run((5, 0, "b"), (3, 9, "a"), (7, 0, "c")) == ["a", "b", "c"]


def test_at_the_same_time_it_goes_by_rank():
    assert run((5, 2, "c"), (5, -1, "a"), (5, 1, "b")) == ["a", "b", "c"]


def test_within_a_rank_it_goes_by_the_order_in_which_it_was_asked_for():
    assert run((5, 1, "a"), (5, 1, "b"), (5, 0, "first"), (5, 1, "c")) == ["first", "a", "b", "c"]
