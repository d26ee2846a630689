"""What a Reduce between processes must do. Every rank is a process of its own."""

import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.unit.channels.ends import FORK, LONG_S
from tianji.channels.reduce import GlooReduce, Team
from tianji.errors import ReduceBroken, UsageError

SIZE = 1000


class End:
    """One rank's end, and the sleep of its role."""

    def __init__(self, fd, rank, timeout_s):
        self._rung = threading.Event()
        self.reduce = GlooReduce(fd, timeout_s, self._rung.set)
        self.rank = rank

    def give(self, team, values):
        self._rung.clear()
        self.reduce.give(team, self.rank, values)

    def wait(self):
        while self.reduce.is_under_way():
            assert self._rung.wait(LONG_S), "nobody rang"
            self._rung.clear()
        return self.reduce.result()

    def sum(self, team, values):
        self.give(team, values)
        return self.wait()


def in_ranks(program, num_ranks, timeout_s=LONG_S):
    """Run program(end) in as many processes; what each returned, None for one that died."""
    fd = os.memfd_create("reduce")
    pipes = [FORK.Pipe(duplex=False) for _ in range(num_ranks)]

    def run(rank):
        pipes[rank][1].send(program(End(fd, rank, timeout_s)))

    children = [FORK.Process(target=run, args=(rank,)) for rank in range(num_ranks)]
    for child in children:
        child.start()
    for child in children:
        child.join(LONG_S)
    os.close(fd)
    return [mine.recv() if mine.poll() else None for mine, _ in pipes]


def team_of(num_ranks, number=1):
    return Team(number, tuple(range(num_ranks - 1)))


def vector(rank):
    return np.random.default_rng(rank).standard_normal(SIZE)


def how_it_failed(end, team):
    try:
        return end.sum(team, np.zeros(SIZE))
    except ReduceBroken as error:
        return str(error)


def test_all_ranks_get_the_same_sum_to_the_last_bit():
    sums = in_ranks(lambda end: end.sum(team_of(4), vector(end.rank)), 4)
    np.testing.assert_allclose(sums[0], sum(map(vector, range(4))), rtol=1e-12)
    assert len({total.tobytes() for total in sums}) == 1


def test_one_team_reduces_again_and_again():
    def program(end):
        return [float(end.sum(team_of(3), np.full(2, end.rank + turn))[0]) for turn in range(5)]

    assert in_ranks(program, 3) == [[3.0, 6.0, 9.0, 12.0, 15.0]] * 3


def test_a_rank_that_is_late_with_one_result_may_be_called_for_the_next():
    def program(end):
        if end.rank == 0:
            time.sleep(0.2)
            end.sum(team_of(2), np.ones(1))
        else:
            end.give(team_of(2), np.ones(1))
        return float(end.sum(team_of(2), np.full(1, 10.0))[0])

    assert in_ranks(program, 2) == [20.0, 20.0]


def test_giving_waits_for_nobody_and_what_was_given_may_be_written_again():
    has_looked = FORK.Event()

    def program(end):
        values = np.full(SIZE, 1.0)
        if end.rank == 1:
            assert has_looked.wait(LONG_S)
        end.give(team_of(2), values)
        early = end.reduce.result() if end.rank == 0 else None
        has_looked.set()
        values[:] = -5.0
        return early is None, float(end.wait()[0])

    assert in_ranks(program, 2) == [(True, 2.0)] * 2


def test_members_learn_of_a_team_by_its_number():
    def program(end):
        team = Team(7, (4, 2))
        if end.rank == 0:
            end.reduce.announce(team)
        return end.reduce.team(7) == team

    assert in_ranks(program, 2) == [True, True]


def test_a_rank_that_dies_breaks_it_for_all_the_others_and_a_new_team_goes_on():
    def program(end):
        end.sum(team_of(4), vector(end.rank))
        if end.rank == 3:
            os._exit(1)
        failed = how_it_failed(end, team_of(4))
        return failed, float(end.sum(team_of(3, number=2), np.ones(1))[0])

    *others, dead = in_ranks(program, 4)
    assert dead is None
    for failed, total in others:
        assert failed.startswith("The all-reduce of 4 ranks has failed: ")
        assert "by peer" in failed, "that it was not the timeout"
        assert ".cc" not in failed, "nothing for those who wrote the library"
        assert total == 3.0


def test_a_rank_that_never_comes_is_waited_for_no_longer_than_the_timeout():
    def program(end):
        return how_it_failed(end, team_of(3)) if end.rank < 2 else None

    *others, _ = in_ranks(program, 3, timeout_s=1.0)
    assert all("has failed" in failed for failed in others)


def test_what_is_under_way_is_let_go_when_a_new_team_is_made():
    """Rank 2 never came to the first team, and nobody waits until that is given up."""

    def program(end):
        if end.rank == 2:
            return None
        end.give(team_of(3), np.ones(1))
        return float(end.sum(team_of(2, number=2), np.ones(1))[0])

    assert in_ranks(program, 3)[:2] == [2.0, 2.0]


def test_an_end_that_is_closed_has_nothing_under_way():
    """The other one gives a little later."""

    def program(end):
        if end.rank == 1:
            time.sleep(0.2)
        end.give(team_of(2), np.ones(1))
        end.reduce.close()
        return end.reduce.is_under_way()

    assert in_ranks(program, 2) == [False, False]


def listening_addresses():
    """Of this process, as the kernel writes them."""
    sockets = {os.readlink(fd) for fd in Path("/proc/self/fd").iterdir() if fd.exists()}
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]
    ]
    listens = "0A"
    mine = [row for row in rows if row[3] == listens and f"socket:[{row[9]}]" in sockets]
    return {row[1].split(":")[0] for row in mine}


def test_ranks_listen_on_the_loopback_interface_alone():
    def program(end):
        end.sum(team_of(2), np.ones(1))
        return listening_addresses()

    loopback = "0100007F"
    assert in_ranks(program, 2) == [{loopback}] * 2


@pytest.mark.parametrize("missing", ["is_available", "is_gloo_available"])
def test_a_torch_without_gloo_is_told_of_in_words(monkeypatch, missing):
    monkeypatch.setattr(f"torch.distributed.{missing}", lambda: False)
    with pytest.raises(UsageError, match="realisation server"):
        GlooReduce(os.memfd_create("reduce"), 1.0, lambda: None)


class FormsNothing(GlooReduce):
    """An end whose group cannot be formed, for a given reason."""

    def __init__(self, error, wake):
        super().__init__(os.memfd_create("reduce"), LONG_S, wake)
        self._error = error

    def _form(self, team, rank):
        raise self._error


def result_after(error):
    rung = threading.Event()
    reduce = FormsNothing(error, rung.set)
    reduce.give(team_of(2), 0, np.ones(1))
    assert rung.wait(LONG_S), "the attempt never ends, and the role waits for it for ever"
    return reduce.result()


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("[x.cc:1] Connection closed by peer. Check your network."),
        ConnectionResetError(),
        OSError(101, "Network is unreachable"),
        TimeoutError("timed out"),
        EOFError(),
        ValueError("invalid address"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_the_network_raises_ends_the_attempt(error):
    with pytest.raises(ReduceBroken, match=r"The all-reduce of 2 ranks has failed: \w"):
        result_after(error)


def test_an_error_of_the_program_is_raised_where_the_role_can_see_it():
    with pytest.raises(TypeError, match="not a group"):
        result_after(TypeError("not a group"))
