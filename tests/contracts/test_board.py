"""What every Board must do; in shared memory, also across processes."""

import os

import numpy as np
import pytest

from tests.unit.channels.ends import LONG_S, in_child, make_bell, wait_for
from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.inproc import InprocBoard
from tianji.channels.memory import Segment
from tianji.channels.requested import RequestedReader
from tianji.channels.requests import Asker, RequestMemory
from tianji.errors import ChannelError

SIZE = 1 << 16


def inproc():
    board = InprocBoard(SIZE)
    return board, board


def shm():
    fd = os.memfd_create("board")
    return ShmBoardWriter(fd, SIZE), ShmBoardReader(fd)


def requested():
    writer, reader = shm()
    memory = RequestMemory.open(os.memfd_create("requests"), 1, num_envs=0, num_outputs=0)
    return writer, RequestedReader(reader, Asker(memory, 0, lambda: None))


@pytest.fixture(params=[inproc, shm, requested])
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


def test_a_board_that_is_not_whole_yet_must_have_the_size_of_the_policy_too():
    fd = os.memfd_create("board")
    os.ftruncate(fd, 4096)  # its writer died before the header was whole
    with pytest.raises(ChannelError, match="same model"):
        ShmBoardWriter(fd, SIZE)


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
    del writer
    ShmBoardWriter(fd, SIZE).post(3, fill(3))
    assert reader.latest(lambda payload: np.copyto(copy, payload)) == 3


def _read_on(fd, size, bell, seen):
    """Pick up policies until the last one; every byte of each must be of the same version."""
    reader, mine = ShmBoardReader(fd), np.zeros(size, np.uint8)
    while seen[LAST] < seen[END]:
        if reader.version() < 0:
            continue
        version = reader.latest(lambda payload: np.copyto(mine, payload))
        seen[MIXED] += bool((mine != version % 251).any())
        seen[FELL] += version < seen[LAST]
        seen[COUNT] += 1
        seen[LAST] = version
        bell.ring()


MIXED, FELL, COUNT, LAST, END = range(5)


@pytest.mark.parametrize(
    ("size", "count", "num_readers"),
    [(100, 10_000, 1), (1 << 16, 3000, 1), (1 << 16, 3000, 3), (3_000_000, 200, 3)],
)
def test_no_reader_ever_sees_a_mixed_version(size, count, num_readers):
    """This process posts as fast as it can, others read all the while."""
    fd = os.memfd_create("board")
    segment = Segment.create("test", 64 * num_readers)
    rows = [segment.words(64 * index, 5) for index in range(num_readers)]
    bell = make_bell()
    for row in rows:
        row[LAST], row[END] = -1, count - 1
    writer = ShmBoardWriter(fd, size)
    children = [in_child(_read_on, fd, size, bell, row) for row in rows]
    writer.post(0, fill(0))
    wait_for(bell, lambda: all(row[COUNT] for row in rows))
    for version in range(1, count):
        writer.post(version, fill(version % 251))
    for child in children:
        child.join(LONG_S)
    assert [row[MIXED] for row in rows] == [0] * num_readers, "half of one version and of another"
    assert [row[FELL] for row in rows] == [0] * num_readers, "an older one after a newer one"
    assert [row[LAST] for row in rows] == [count - 1] * num_readers
    assert all(row[COUNT] > 1 for row in rows)
