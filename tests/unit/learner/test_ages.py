"""How old the states of peers are, and when a group waits for one."""

import pytest

from tests.unit.learner.test_combination import Batches, Group, Ring, make_learner
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.inproc import InprocBoard
from tianji.learner.ages import Ages
from tianji.learner.combination import Combination
from tianji.learner.role import LOOK_NS

PATIENCE_S = 10.0


class Clock:
    now_s = 100.0

    def __call__(self):
        return int(self.now_s * 1e9)


def ages_of(*peers, max_age=2):
    clock = Clock()
    return Ages(peers, max_age, PATIENCE_S, clock), clock


def test_a_group_waits_after_so_many_versions_without_a_new_state():
    ages, _ = ages_of(1)
    ages.count([], 1)
    assert not ages.hold_back([])
    ages.count([], 2)
    assert ages.hold_back([]) and ages.is_waiting
    assert not ages.hold_back([1]) and not ages.is_waiting, "the peer has posted"


def test_the_mixes_of_one_version_count_once():
    ages, _ = ages_of(1)
    for _ in range(100):
        ages.count([], 1)
        assert not ages.hold_back([])
    ages.count([], 2)
    assert ages.hold_back([])


def test_versions_between_two_mixes_count_but_only_at_the_next_mix():
    ages, _ = ages_of(1, max_age=8)
    ages.count([1], 4)
    ages.count([], 8)
    assert ages.record(0.0)["max"] == 4
    assert not ages.hold_back([]), "4 versions were made since the mix with a new state"
    ages.count([], 12)
    assert ages.record(0.0)["max"] == 8 and ages.hold_back([])
    ages.count([1], 16)
    assert not ages.hold_back([])


def test_a_peer_that_has_posted_nothing_ages_from_the_first_mix():
    ages, _ = ages_of(1, max_age=5)
    ages.count([], 1000)  # a run that was resumed
    assert ages.record(0.0)["max"] == 1 and not ages.hold_back([])
    ages.count([], 1004)
    assert ages.record(0.0)["max"] == 5 and ages.hold_back([])


def test_a_new_state_begins_a_new_count():
    ages, _ = ages_of(1)
    for version, fresh in enumerate(([], [1], [])):
        ages.count(fresh, version)
        assert not ages.hold_back([])


def test_it_waits_for_each_of_several_peers():
    ages, _ = ages_of(1, 2)
    for version in range(2):
        ages.count([1], version)
    assert ages.hold_back([1]) and not ages.hold_back([2])


def test_without_a_bound_it_never_waits():
    ages, _ = ages_of(1, max_age=0)
    for version in range(1000):
        ages.count([], version)
        assert not ages.hold_back([])


def test_a_peer_that_has_died_is_given_up_until_it_posts_again():
    ages, clock = ages_of(1)
    for version in range(2):
        ages.count([], version)
    assert ages.hold_back([])
    clock.now_s += PATIENCE_S
    assert ages.hold_back([])
    clock.now_s += 0.1
    assert not ages.hold_back([]) and not ages.is_waiting
    for version in range(2, 7):
        ages.count([], version)
        assert not ages.hold_back([]), "it waits once for a peer that is gone"
    ages.count([1], 7)
    for version in range(8, 10):
        ages.count([], version)
    assert ages.hold_back([]), "the peer is back"


def test_it_records_the_ages():
    ages, _ = ages_of(1)
    assert ages.record(0.0) == {"mean": None, "max": 0, "waited_s": 0.0}
    for version, fresh in enumerate(([], [], [1])):
        ages.count(fresh, version)
    assert ages.record(2.5) == {"mean": 1.0, "max": 2, "waited_s": 2.5}


class Pair:
    """The learner of group 0, with one mix for each batch, and the board of its peer."""

    def __init__(self, max_age, num_batches=10):
        self.clock = Clock()
        self.groups = [Group([1.0]), Group([3.0])]
        self.boards = [InprocBoard(group.state.nbytes) for group in self.groups]
        ages = Ages([1], max_age, PATIENCE_S, self.clock)
        self.combination = Combination(
            0, self.groups[0].state, self.boards[0], {1: self.boards[1]}, 3, ages=ages
        )
        self.learner, _, self.gauges = make_learner(self.combination)
        self.learner._now_ns = self.clock
        self.learner._batches = Batches(num_batches)

    def post(self, number):
        self.boards[1].post(number, self.groups[1].state.write_to)

    def run(self):
        while self.learner.tick():
            continue
        return self.learner.version


def test_a_learner_takes_no_batch_while_its_peer_is_too_old():
    pair = Pair(max_age=2)
    assert pair.run() == 2
    assert pair.learner.waits_for_peers and pair.learner.is_between_versions
    assert pair.gauges[Gauge.ACTIVITY] == Activity.WAITING
    pair.clock.now_s += 3.0
    assert pair.run() == 2 and pair.gauges[Gauge.PEER_NS] == 3e9
    assert pair.learner.due_ns == pair.clock() + LOOK_NS, "it looks again without a bell"
    pair.post(0)
    assert pair.run() == 5, "one mix with the post, two without another"
    assert pair.combination.record(0.0)["max"] == 2
    assert pair.gauges[Gauge.PEER_NS] == 3e9, "the time of waiting alone"
    assert pair.groups[0].values == [2.0]


def test_a_learner_goes_on_without_a_peer_that_is_gone():
    pair = Pair(max_age=2)
    assert pair.run() == 2
    pair.clock.now_s += PATIENCE_S + 1
    assert pair.run() == 10
    assert not pair.learner.waits_for_peers and pair.learner.due_ns == 0


def test_a_learner_without_a_bound_goes_on_alone():
    assert Pair(max_age=0).run() == 10


@pytest.mark.parametrize("every", [1, 3])
def test_groups_of_a_ring_never_all_wait_for_each_other(every):
    """every: versions between two mixes."""
    ring = Ring([0.0], [4.0], [8.0], combine="gossip", every=every)
    for combination in ring.combinations:
        combination._ages = Ages([0, 1, 2][combination._group - 1 :][:1], 1, PATIENCE_S, Clock())
    for turn in range(50):
        going = [i for i in range(3) if not ring.combinations[i].hold_back()]
        assert going
        some = going[turn % len(going)]
        ring.update(some)
        if ring.combinations[some].is_due:
            ring.mix(some)
        else:
            ring.versions[some] += 1
    highest = [combination.record(0.0)["max"] for combination in ring.combinations]
    assert 0 < max(highest) <= every + 1
