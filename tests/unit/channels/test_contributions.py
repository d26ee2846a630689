"""An actor's sum is found as of its last post, whole, in this process and in shared memory."""

import os

import numpy as np
import pytest

from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.contributions import (
    Contribution,
    ContributionReader,
    ContributionWriter,
    contribution_bytes,
)
from tianji.channels.inproc import InprocBoard

P = 5


@pytest.fixture(params=["inproc", "shm"])
def ends(request):
    """A function that opens an actor's end (again), and the learner's end."""
    if request.param == "inproc":
        board = InprocBoard(contribution_bytes(P))
        yield lambda: ContributionWriter(board, board), ContributionReader([board])
        return
    fd = os.memfd_create("sum")
    opened = []

    def open_writer():
        opened.clear()  # whoever had it is gone, and its seat is free
        opened.append(ShmBoardWriter(fd, contribution_bytes(P)))
        return ContributionWriter(opened[0], ShmBoardReader(fd))

    yield open_writer, ContributionReader([ShmBoardReader(fd)])
    os.close(fd)


def read(reader):
    sum_P = np.zeros(P, np.float32)
    return reader.read(0, sum_P), sum_P.tolist()


def test_nothing_is_found_before_the_first_post(ends):
    open_writer, reader = ends
    assert read(reader)[0] is None
    assert open_writer().left(np.zeros(P, np.float32)) is None


def test_the_last_post_is_found(ends):
    open_writer, reader = ends
    writer = open_writer()
    for count in range(1, 8):
        writer.post(Contribution(3, count), np.full(P, count, np.float32))
    assert read(reader) == (Contribution(3, 7), [7.0] * P)


def test_a_successor_finds_what_was_left_and_posts_on(ends):
    open_writer, reader = ends
    open_writer().post(Contribution(2, 1), np.ones(P, np.float32))
    successor = open_writer()
    sum_P = np.zeros(P, np.float32)
    assert successor.left(sum_P) == Contribution(2, 1)
    assert sum_P.tolist() == [1.0] * P
    successor.post(Contribution(2, 2), 2 * sum_P)
    assert read(reader) == (Contribution(2, 2), [2.0] * P)
