"""What every Board must do; in shared memory, also across processes."""

import multiprocessing
import os

import numpy as np
import pytest

from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.inproc import InprocBoard
from tianji.errors import ChannelError

SIZE = 1 << 16


def inproc():
    board = InprocBoard(SIZE)
    return board, board


def shm():
    fd = os.memfd_create("board")
    return ShmBoardWriter(fd, SIZE), ShmBoardReader(fd)


@pytest.fixture(params=[inproc, shm])
def board(request):
    return request.param()


def fill(value):
    return lambda payload: payload.fill(value)


def test_there_is_no_version_before_the_first_post(board):
    assert board[1].version() == -1


def test_readers_see_the_latest_value_only(board):
    writer, reader = board
    for version in range(10):
        writer.post(version, fill(version))
    copy = np.zeros(SIZE, np.uint8)
    assert reader.version() == 9
    assert reader.latest(lambda payload: np.copyto(copy, payload)) == 9
    assert (copy == 9).all()


def test_a_reader_may_come_before_the_writer():
    fd = os.memfd_create("board")
    reader = ShmBoardReader(fd)
    assert reader.version() == -1
    with pytest.raises(ChannelError, match="posted"):
        reader.latest(lambda payload: None)
    ShmBoardWriter(fd, SIZE).post(3, fill(1))
    assert reader.version() == 3


def test_a_new_writer_continues_and_must_have_the_same_size():
    fd = os.memfd_create("board")
    ShmBoardWriter(fd, SIZE).post(5, fill(1))
    assert ShmBoardWriter(fd, SIZE).version() == 5
    with pytest.raises(ChannelError, match="same model"):
        ShmBoardWriter(fd, SIZE + 1)


def test_a_writer_that_dies_half_way_leaves_the_value_before():
    fd = os.memfd_create("board")
    writer, reader = ShmBoardWriter(fd, SIZE), ShmBoardReader(fd)
    writer.post(1, fill(1))

    def dies(payload):
        payload[: SIZE // 2] = 2
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        writer.post(2, dies)
    copy = np.zeros(SIZE, np.uint8)
    assert reader.latest(lambda payload: np.copyto(copy, payload)) == 1
    assert (copy == 1).all()
    ShmBoardWriter(fd, SIZE).post(3, fill(3))
    assert reader.latest(lambda payload: np.copyto(copy, payload)) == 3


def _post_many(fd, count):
    writer = ShmBoardWriter(fd, SIZE)
    for version in range(count):
        writer.post(version, fill(version % 251))


def test_no_reader_ever_sees_a_mixed_version():
    """One process posts as fast as it can, this one reads all the while."""
    fd = os.memfd_create("board")
    os.set_inheritable(fd, True)
    reader = ShmBoardReader(fd)
    count = 3000
    child = multiprocessing.get_context("fork").Process(target=_post_many, args=(fd, count))
    child.start()
    copy = np.zeros(SIZE, np.uint8)
    last, seen = -1, 0
    while last < count - 1 and (child.is_alive() or last < reader.version()):
        if reader.version() < 0:
            continue
        version = reader.latest(lambda payload: np.copyto(copy, payload))
        assert copy[0] == version % 251
        assert (copy == copy[0]).all(), "half of one version and half of another"
        assert version >= last
        last, seen = version, seen + 1
    child.join()
    assert last == count - 1
    assert seen > 1
