"""What a receiver keeps is found by the one that takes over, however the first one died."""

import gc

import pytest

from tests.fakes.scripted import scripted_layout
from tests.unit.channels.ends import make_bell, make_bells
from tianji.channels.memory import Segment
from tianji.channels.notes import Notes, note_bytes
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory
from tianji.types import Stamp

NUM_SLOTS = 4


def stamp(number, lane=0):
    return Stamp(lane, number, number, number, 8, -1, 2**40)


class Rig:
    """Lanes, and a receiver that can be replaced."""

    def __init__(self, num_lanes=1):
        self.memory = StreamMemory.create(scripted_layout(2, 1), NUM_SLOTS, num_lanes)
        self.bells, self.bell = make_bells(num_lanes), make_bell()
        self.receiver = ShmReceiver(self.memory, self.bells)
        self.senders = [ShmSender(self.memory, lane, self.bell) for lane in range(num_lanes)]

    def store(self, number, lane=0):
        """One unroll on its way from the grant into a store."""
        assert self.receiver.grant(lane, number)
        grant = self.senders[lane].reserve()
        self.senders[lane].send(grant.slot, stamp(number, lane))
        slot = self.receiver.take()
        self.receiver.keep(slot, self.receiver.stamp(slot))
        return slot

    def replace(self):
        """As at the end of its process."""
        self.receiver = None
        gc.collect()
        self.receiver = ShmReceiver(self.memory, self.bells)
        for sender in self.senders:
            sender.attach()

    def grantable(self, lane=0):
        slots = set()
        while self.receiver.grant(lane, 0):
            slots.add(self.senders[lane].reserve().slot)
        return slots


def test_a_new_receiver_finds_what_was_kept_in_its_order_and_grants_the_rest():
    rig = Rig()
    kept = [rig.store(number) for number in range(3)]
    rig.receiver.drop(kept.pop(0))
    kept.append(rig.store(7))
    rig.replace()
    assert rig.receiver.kept == tuple(kept)
    assert [rig.receiver.stamp(slot) for slot in kept] == [stamp(1), stamp(2), stamp(7)]
    assert rig.grantable() == set(range(NUM_SLOTS)) - set(kept)
    rig.receiver.drop(kept[0])
    assert rig.grantable() == {kept[0]}


def test_numbers_go_on_after_a_death():
    rig = Rig()
    first = rig.store(0)
    rig.replace()
    second = rig.store(1)
    rig.replace()
    assert rig.receiver.kept == (first, second)


def test_what_was_taken_and_not_kept_is_free_again():
    rig = Rig()
    rig.receiver.grant(0, 0)
    slot = rig.senders[0].reserve().slot
    rig.senders[0].send(slot, stamp(0))
    assert rig.receiver.take() == slot
    rig.replace()
    assert rig.receiver.kept == ()
    assert rig.grantable() == set(range(NUM_SLOTS))


def test_an_old_grant_that_names_a_kept_slot_frees_nothing():
    """A lane was reset: the slot in work is sent, void, and the next ones went to another lane."""
    rig = Rig(num_lanes=2)
    rig.receiver.grant(0, 0, NUM_SLOTS)
    in_work = rig.senders[0].reserve().slot
    rig.receiver.reset_lane(0)
    kept = [rig.store(number, lane=1) for number in range(NUM_SLOTS - 1)]
    rig.senders[0].send(in_work, stamp(0))
    rig.replace()
    assert all(rig.receiver.is_attached(lane) for lane in range(2))
    assert rig.receiver.kept == tuple(kept)
    assert rig.grantable(1) == {in_work}


class Dies(Exception):
    """The process is killed here."""


class DyingWords:
    """Words of which some can be written; then the writer dies."""

    def __init__(self, words, writes_left):
        self._words, self._left = words, writes_left

    def __setitem__(self, index, value):
        if not self._left:
            raise Dies
        self._left -= 1
        self._words[index] = value


@pytest.mark.parametrize("writes_left", [0, 1])
def test_a_death_in_the_middle_of_an_insert_leaves_the_old_or_the_new_and_nothing_torn(writes_left):
    """The oldest is dropped, the new one is kept: the writer dies before one of the two words."""
    segment = Segment.create("notes", note_bytes(2))
    notes = Notes(segment, 0, 2)
    notes.add(0, stamp(1))
    notes._words = DyingWords(notes._words, writes_left)
    with pytest.raises(Dies):
        notes.remove(0)
        notes.add(1, stamp(2))
    found = Notes(segment, 0, 2)
    assert [found.stamp(slot) for slot in found.found] == [stamp(1)][: 1 - writes_left]
