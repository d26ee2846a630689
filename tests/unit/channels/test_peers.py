"""Peers: sums over ranks, in one process and between processes."""

import os
import signal
import threading
import time
from functools import partial
from typing import NamedTuple

import pytest
import torch

from tests.fakes.ranks import on_threads
from tests.fakes.scripted import gauge_row
from tests.unit.channels.ends import FORK, LONG_S
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.peers.cards import shared_cards
from tianji.channels.peers.gloo import LIFE_S, GlooPeers
from tianji.channels.peers.inproc import InprocTeam
from tianji.channels.peers.interface import ALONE, gathered, total
from tianji.channels.peers.shared import HALF_BYTES, SharedPeers, _take_part
from tianji.channels.peers.timed import TimedPeers
from tianji.channels.peers.turns import Turns
from tianji.errors import ReduceBroken, UsageError

SHORT_S = 0.5
OPENED = []


def vector(rank, dtype=torch.float32):
    return torch.randn(1000, generator=torch.Generator().manual_seed(rank), dtype=dtype)


def sums_of(peers):
    """Every kind of sum, twice: float32 and float64, a few numbers, and those of each rank."""
    found = []
    for turn in range(2):
        single, double = vector(peers.rank + turn), vector(peers.rank, torch.float64)
        peers.add(single)
        peers.add(double)
        numbers = total(peers, [1.0, peers.rank]), gathered(peers, [peers.rank, turn])
        found.append((single.tolist(), double.tolist(), *numbers))
    return found


def check_sums(found, num_ranks):
    assert all(each == found[0] for each in found), "ranks have different sums"
    for turn, (single, double, few, every) in enumerate(found[0]):
        exact = sum(vector(rank + turn).double() for rank in range(num_ranks))
        torch.testing.assert_close(torch.tensor(single).double(), exact, rtol=1e-5, atol=1e-5)
        exact = sum(vector(rank, torch.float64) for rank in range(num_ranks))
        torch.testing.assert_close(torch.tensor(double, dtype=torch.float64), exact)
        assert few == [num_ranks, sum(range(num_ranks))]
        assert every == [[rank, turn] for rank in range(num_ranks)]


@pytest.fixture(autouse=True)
def closed_boards():
    yield
    while OPENED:
        os.close(OPENED.pop())


class Memory(NamedTuple):
    """The file descriptors of all ranks."""

    cards: list[int]
    parts: list[int]


def boards(num_ranks):
    """The memory of all ranks, closed after the test."""
    fds = Memory(*([os.memfd_create(n) for _ in range(num_ranks)] for n in Memory._fields))
    OPENED.extend([*fds.cards, *fds.parts])
    return fds


def over_gloo(rank, fds, timeout_s=LONG_S, show_life=lambda: None):
    return GlooPeers(shared_cards(rank, fds.cards), timeout_s, show_life)


def in_shared_memory(rank, fds, timeout_s=LONG_S, show_life=lambda: None):
    return SharedPeers(shared_cards(rank, fds.cards), fds.parts, timeout_s, show_life)


between_processes = pytest.mark.parametrize("meet", [over_gloo, in_shared_memory])


def in_processes(meet, program, num_ranks, timeout_s=LONG_S):
    """Run program(peers) in as many processes; what each returned, None for one that died."""
    fds = boards(num_ranks)
    pipes = [FORK.Pipe(duplex=False) for _ in range(num_ranks)]

    def run(rank):
        for other in set(range(num_ranks)) - {rank}:
            pipes[other][1].close()
        pipes[rank][1].send(program(meet(rank, fds, timeout_s)))

    children = [FORK.Process(target=run, args=(rank,)) for rank in range(num_ranks)]
    for child in children:
        child.start()
    for _, theirs in pipes:
        theirs.close()  # so that a child's end closes with it
    found = [_received(mine) for mine, _ in pipes]
    for child in children:
        child.join(LONG_S)
    return found


def _received(pipe):
    assert pipe.poll(LONG_S), "a rank hangs"
    try:
        return pipe.recv()
    except EOFError:
        return None


def seconds_to_fail(peers):
    """Return how long a reduction took to fail, and what it said."""
    started_s = time.monotonic()
    with pytest.raises(ReduceBroken) as error:
        peers.add(vector(0))
    return time.monotonic() - started_s, str(error.value)


def test_one_rank_alone_keeps_its_values():
    values = vector(0)
    ALONE.add(values)
    assert torch.equal(values, vector(0))
    assert total(ALONE, [3.0, 4.0]) == [3.0, 4.0]
    assert gathered(ALONE, [3.0, 4.0]) == [[3.0, 4.0]]


@pytest.mark.parametrize("num_ranks", [2, 3])
def test_ranks_of_one_process_get_the_same_sums(num_ranks):
    team = InprocTeam(num_ranks, LONG_S)
    ends = [team.end(rank) for rank in range(num_ranks)]
    check_sums(on_threads([lambda end=end: sums_of(end) for end in ends]), num_ranks)


@between_processes
@pytest.mark.parametrize("num_ranks", [2, 3])
def test_ranks_in_processes_get_the_same_sums(num_ranks, meet):
    check_sums(in_processes(meet, sums_of, num_ranks), num_ranks)


@pytest.mark.parametrize("count", [1, 7, 200_000, HALF_BYTES // 4 + 5, 3 * HALF_BYTES // 4])
def test_sums_in_shared_memory_are_those_of_one_process_to_the_bit_whatever_their_size(count):
    """In one piece, in slices, and in several chunks."""

    def values(rank):
        return torch.randn(count, generator=torch.Generator().manual_seed(rank))

    def program(peers):
        given = values(peers.rank)
        for _ in range(3):  # the halves take turns
            peers.add(given)
            given /= 3
        return given.numpy().tobytes()

    found = in_processes(in_shared_memory, program, 3)
    team = InprocTeam(3, LONG_S)
    ends = [team.end(rank) for rank in range(3)]
    wanted = on_threads([lambda end=end: program(end) for end in ends])
    assert found == wanted


def test_ranks_that_hurry_never_overwrite_what_others_still_read():
    def program(peers):
        wrong = 0
        for turn in range(300):
            if (turn + peers.rank) % 7 == 0:
                time.sleep(0.0005)
            given = torch.full((500,), float(turn))
            peers.add(given)
            wrong += not bool((given == 3.0 * turn).all())
        return wrong

    assert in_processes(in_shared_memory, program, 3) == [0, 0, 0]


def test_a_process_that_leaves_is_missed_at_once():
    def program(peers):
        if peers.rank == 1:
            peers.close()
            return None
        return seconds_to_fail(peers)[1]

    assert "another one has left" in in_processes(in_shared_memory, program, 2)[0]


def test_ranks_that_take_turns_run_one_at_a_time_and_always_in_the_same_order():
    """Two teams, which wait in sums of their own, and give way to each other."""

    def run_once():
        turns, order = Turns(4), []
        teams = [InprocTeam(2, LONG_S, turns, members) for members in ((0, 1), (2, 3))]

        def run(member):
            with turns.of(member):
                for _ in range(5):
                    order.append((member, "begins"))
                    time.sleep(1e-4)
                    order.append((member, "adds"))
                    teams[member // 2].end(member % 2).add(torch.ones(1))
                    order.append((member, "has a sum"))
                    turns.give_way(member)

        on_threads([lambda member=member: run(member) for member in range(4)])
        return order

    order = run_once()
    begins = [i for i, (_, what) in enumerate(order) if what == "begins"]
    assert all(order[i + 1] == (order[i][0], "adds") for i in begins), "nobody comes in between"
    assert len(begins) == 20 and run_once() == run_once() == order


def test_members_that_all_wait_are_told_so():
    turns = Turns(2)

    def wait(member):
        with turns.of(member), pytest.raises(ReduceBroken, match="none comes"):
            turns.wait(member, lambda: False)

    on_threads([lambda: wait(0), lambda: wait(1)])


def test_a_rank_that_leaves_breaks_the_sums_of_the_others_at_once():
    team = InprocTeam(3, LONG_S)

    def last():
        time.sleep(0.05)
        team.end(2).close()

    waits = [lambda rank=rank: seconds_to_fail(team.end(rank)) for rank in (0, 1)]
    *found, _ = on_threads([*waits, last])
    assert all(waited_s < LONG_S / 2 for waited_s, _ in found)
    with pytest.raises(ReduceBroken):
        team.end(0).add(torch.ones(1))


def test_a_rank_that_never_comes_is_not_awaited_for_ever():
    waited_s, text = seconds_to_fail(InprocTeam(2, SHORT_S).end(0))
    assert SHORT_S * 0.9 < waited_s < LONG_S / 2
    assert text.startswith("The learners of 2 groups cannot add up their gradients")


@between_processes
def test_a_process_that_dies_breaks_the_sums_of_all_others_at_once(meet):
    def program(peers):
        peers.add(vector(peers.rank))
        if peers.rank == 2:
            os._exit(1)
        found = seconds_to_fail(peers)
        return *found, seconds_to_fail(peers)[1]

    *found, dead = in_processes(meet, program, 3)
    assert dead is None
    for waited_s, text, again in found:
        assert waited_s < LONG_S / 2
        assert text.startswith("The learners of 3 groups cannot add up their gradients: one has")
        assert again == "The learners of the groups are no longer connected."


@between_processes
def test_a_process_that_hangs_is_not_awaited_for_ever(meet):
    def program(peers):
        if peers.rank == 1:
            time.sleep(3 * SHORT_S)
            return None
        return seconds_to_fail(peers)

    waited_s, text = in_processes(meet, program, 2, SHORT_S)[0]
    assert waited_s < LONG_S / 2
    assert f"has not come for {SHORT_S:g} s" in text


@between_processes
def test_a_rank_shows_life_while_it_waits_for_others(meet):
    signs = []

    def program(peers):
        peers._show_life = lambda: signs.append(time.monotonic())
        if peers.rank == 1:
            time.sleep(4 * LIFE_S)
        values = torch.ones(3)
        peers.add(values)
        return len(signs), values.tolist()

    (waiting, values), (late, _) = in_processes(meet, program, 2)
    assert waiting >= 2 > late
    assert values == [2.0] * 3


@between_processes
def test_ranks_that_meet_later_are_waited_for_with_signs_of_life(meet):
    """However late they are: the time limit is for ranks that have met."""
    fds, signs = boards(2), []

    def come(rank, delay_s):
        time.sleep(delay_s)
        return total(meet(rank, fds, 2 * LIFE_S, lambda: signs.append(rank)), [1.0])

    found = on_threads([lambda: come(0, 0.0), lambda: come(1, 3 * LIFE_S)])
    assert found == [[2.0], [2.0]]
    assert signs.count(0) >= 2


def test_a_torch_without_gloo_is_told_of_in_words(monkeypatch):
    monkeypatch.setattr("torch.distributed.is_gloo_available", lambda: False)
    with pytest.raises(UsageError, match="--combine average"):
        GlooPeers(None, SHORT_S)


def test_reductions_have_a_time_and_a_size_of_their_own_in_the_gauges():
    class Slow:
        rank, num_ranks = 1, 2

        def add(self, values):
            assert gauges[Gauge.ACTIVITY] == Activity.COMBINING
            clock[0] += 70

    gauges, clock = gauge_row(), [0]
    gauges[Gauge.ACTIVITY] = Activity.UPDATING
    timed = TimedPeers(Slow(), gauges, lambda: clock[0])
    assert (timed.rank, timed.num_ranks) == (1, 2)
    timed.add(torch.zeros(10))
    timed.add(torch.zeros(10, dtype=torch.float64))
    assert gauges[Gauge.COMBINE_NS] == 140
    assert gauges[Gauge.REDUCED_BYTES] == 120
    assert gauges[Gauge.ACTIVITY] == Activity.UPDATING


@between_processes
def test_ranks_meet_again_after_one_has_died_whoever_comes_first(meet):
    """The boards still hold the cards of the dead one and of those before it."""
    fds = boards(2)

    def come(rank, delay_s):
        time.sleep(delay_s)
        return total(meet(rank, fds), [rank + 1.0])

    for late in ((0.0, 0.1), (0.1, 0.0)):
        for rank in range(2):
            post_a_card(rank, fds)  # these died before they met
        programs = [partial(come, rank, delay_s) for rank, delay_s in enumerate(late)]
        assert on_threads(programs) == [[3.0], [3.0]]


def post_a_card(rank, fds):
    """A rank starts, and is not heard of again."""

    def start():
        cards = shared_cards(rank, fds.cards)
        cards._post(cards._mine)

    child = FORK.Process(target=start)
    child.start()
    child.join(LONG_S)
    assert child.exitcode == 0


@between_processes
def test_a_rank_that_dies_while_others_wait_for_it_is_met_when_it_has_started_again(meet):
    fds = boards(2)

    def waits():
        return total(meet(0, fds), [2.0])

    def dies():
        post_a_card(1, fds)
        time.sleep(0.2)
        return total(meet(1, fds), [5.0])

    assert on_threads([waits, dies]) == [[7.0], [7.0]]


def test_a_rank_that_dies_as_soon_as_it_has_met_the_others_breaks_their_first_sum():
    """It has posted nothing but its card: nobody may wait for more from it before a sum."""
    fds = boards(2)

    def dies():
        part = _take_part(fds.parts[1])
        shared_cards(1, fds.cards).agree()
        del part

    child = FORK.Process(target=dies)
    child.start()
    peers = in_shared_memory(0, fds)
    child.join(LONG_S)
    assert "another one has died" in seconds_to_fail(peers)[1]


@between_processes
def test_a_rank_whose_predecessor_went_without_a_word_breaks_the_sum_of_the_others_at_once(meet):
    """Its host was lost: no connection was closed, and it starts again on another host."""
    fds = boards(2)

    def lost():
        met = meet(1, fds)
        hold.wait(LONG_S)
        met.close()

    hold = FORK.Event()
    child = FORK.Process(target=lost)
    child.start()
    peers = meet(0, fds)
    os.kill(child.pid, signal.SIGSTOP)
    posted = threading.Timer(LIFE_S, take_over, (1, fds))
    posted.start()
    waited_s, text = seconds_to_fail(peers)
    os.kill(child.pid, signal.SIGCONT)
    hold.set()
    child.join(LONG_S)
    assert waited_s < LONG_S / 2
    assert "another one has started again" in text


def take_over(rank, fds):
    """Post a new card where the old writer still sits, as on another host's copy of the board."""
    copy = os.memfd_create("card")
    OPENED.append(copy)
    old = fds.cards[rank]
    size = os.fstat(old).st_size
    os.pwrite(copy, os.pread(old, size, 0), 0)
    cards = shared_cards(rank, [*fds.cards[:rank], copy])
    cards._post(cards._mine)
    os.pwrite(old, os.pread(copy, size, 0), 0)
