"""Segments that leave nothing behind, on huge pages where they are large."""

import _thread
import errno
import gc
import os
from pathlib import Path

import numpy as np
import pytest

from tests.unit.channels.ends import LONG_S, in_child
from tianji.channels import memory
from tianji.channels.memory import HUGE_PAGE, Segment, new_fence
from tianji.errors import ChannelError

LARGE = 2 * HUGE_PAGE


def open_files():
    return len(os.listdir("/proc/self/fd"))


def test_a_segment_is_new_zeroed_memory_of_the_size_asked_for():
    segment = Segment.create("test", 10_000)
    assert segment.nbytes == os.fstat(segment.fd).st_size == 10_000
    assert bytes(segment.memory) == bytes(10_000)


@pytest.mark.parametrize("nbytes", [1 << 20, LARGE])
def test_all_of_a_segment_is_set_aside_at_once(nbytes):
    segment = Segment.create("test", nbytes)
    assert os.fstat(segment.fd).st_blocks * 512 >= nbytes


@pytest.mark.parametrize("nbytes", [4096, LARGE])
def test_whoever_has_the_descriptor_sees_the_same_memory(nbytes):
    segment = Segment.create("test", nbytes)
    other = Segment.attach(os.dup(segment.fd))
    segment.words(128, 2)[1] = -7
    assert other.nbytes == nbytes
    assert other.words(128, 2).tolist() == [0, -7]
    assert other.words(136, 1)[0] == -7


def test_a_segment_has_no_name_in_any_file_system():
    segment = Segment.create("nameless", 4096)
    assert os.readlink(f"/proc/self/fd/{segment.fd}").startswith("/memfd:tianji-nameless")
    assert not list(Path("/dev/shm").glob("*nameless*"))


@pytest.mark.parametrize("refusal", [errno.ENOMEM, errno.ENOSPC])
def test_memory_that_is_refused_is_told_in_words_and_leaks_no_descriptor(monkeypatch, refusal):
    def refuse(fd, offset, nbytes):
        raise OSError(refusal, "refused")

    monkeypatch.setattr(memory.os, "posix_fallocate", refuse)
    before = open_files()
    with pytest.raises(ChannelError, match=r"No memory for slots: 3\.0 MiB.*smaller replay"):
        Segment.create("slots", 3 << 20)
    assert open_files() == before


def test_any_other_refusal_is_passed_on_as_it_is(monkeypatch):
    def refuse(fd, offset, nbytes):
        raise OSError(errno.EPERM, "not here")

    monkeypatch.setattr(memory.os, "posix_fallocate", refuse)
    before = open_files()
    with pytest.raises(PermissionError):
        Segment.create("slots", 4096)
    assert open_files() == before


@pytest.mark.parametrize("nbytes", [HUGE_PAGE, LARGE, LARGE + 4096, LARGE + 5])
def test_a_large_segment_begins_where_a_huge_page_can(nbytes):
    segment = Segment.create("test", nbytes)
    assert segment.address % HUGE_PAGE == 0
    assert Segment.attach(os.dup(segment.fd)).address % HUGE_PAGE == 0
    assert segment.nbytes == len(segment.memory) == os.fstat(segment.fd).st_size == nbytes
    assert not np.frombuffer(segment.memory, np.uint8).any()


def test_every_byte_of_a_large_segment_is_the_same_in_another_view():
    segment = Segment.create("test", LARGE + 4096)
    other = Segment.attach(os.dup(segment.fd))
    drawn = np.random.default_rng(0).integers(256, size=segment.nbytes, dtype=np.uint8)
    np.frombuffer(segment.memory, np.uint8)[:] = drawn
    assert (np.frombuffer(other.memory, np.uint8) == drawn).all()


def maps_of(label):
    return [line for line in Path("/proc/self/maps").read_text().splitlines() if label in line]


def address_space_bytes():
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("nbytes", [4096, LARGE])
def test_memory_is_unmapped_with_its_last_view(nbytes):
    segment = Segment.create("last-view", nbytes)
    segment.close()
    words = segment.words(0, 1)
    del segment
    gc.collect()
    words[0] = 5
    assert words[0] == 5, "a view keeps its memory"
    assert len(maps_of("tianji-last-view")) == 1
    del words
    gc.collect()
    assert maps_of("tianji-last-view") == []


def test_the_addresses_reserved_around_a_large_segment_go_with_it():
    nbytes = 16 * HUGE_PAGE
    Segment.create("test", nbytes).close()
    before = address_space_bytes()
    for _ in range(4):
        Segment.create("test", nbytes).close()
    assert address_space_bytes() - before < nbytes


def test_where_the_kernel_refuses_huge_pages_the_memory_is_there_all_the_same(monkeypatch):
    class Refusing:
        mmap = memory._waiting.mmap

        def madvise(self, address, nbytes, advice):
            self.asked = (address, nbytes, advice)
            return -1

    kernel = Refusing()
    monkeypatch.setattr(memory, "_waiting", kernel)
    segment = Segment.create("test", LARGE + 4096)
    assert kernel.asked == (segment.address, LARGE, memory.MADV_COLLAPSE)
    segment.words(LARGE + 4088, 1)[0] = 3
    assert Segment.attach(os.dup(segment.fd)).words(LARGE + 4088, 1)[0] == 3


@pytest.mark.parametrize("nbytes", [HUGE_PAGE - 1, memory.MAX_HUGE_BYTES + 1])
def test_small_and_very_large_segments_are_left_on_small_pages(monkeypatch, nbytes):
    """The one for lack of a whole huge page, the other because it would take too long."""
    monkeypatch.setattr(memory.os, "posix_fallocate", lambda fd, _, n: os.ftruncate(fd, n))
    monkeypatch.setattr(memory._waiting, "madvise", lambda *_: pytest.fail("it was laid out"))
    Segment.create("test", nbytes).close()


def mapped_by_huge_pages_kib(label):
    entry = Path("/proc/self/smaps").read_text().partition(label)[2]
    return int(entry.partition("ShmemPmdMapped:")[2].split()[0])


def test_a_large_segment_lies_on_huge_pages_where_the_kernel_can():
    segment = Segment.create("huge", LARGE)
    if memory._waiting.madvise(segment.address, LARGE, memory.MADV_COLLAPSE) != 0:
        pytest.skip("this kernel cannot: Linux 6.1, built with huge pages, can")
    np.frombuffer(segment.memory, np.uint8)[::4096] = 1  # pages are mapped when they are touched
    assert mapped_by_huge_pages_kib("tianji-huge") == LARGE // 1024


def test_a_fence_can_be_called_any_number_of_times():
    fence = new_fence()
    for _ in range(1000):
        fence()


def _count_to(words, count):
    fence = new_fence()
    for number in range(1, count + 1):
        words[1 + number % 64] = number
        fence()
        words[0] = number


def test_a_count_that_follows_a_fence_is_never_seen_before_what_it_counts():
    words, fence = Segment.create("test", 8 * 65).words(0, 65), new_fence()
    count, seen = 30_000, 0
    child = in_child(_count_to, words, count)
    while seen < count:
        seen = words[0]
        fence()
        assert words[1 + seen % 64] >= seen or seen == 0
        assert child.is_alive() or words[0] == count
    child.join(LONG_S)


def test_a_fence_that_was_broken_off_works_again(monkeypatch):
    """As when a signal handler raises between its two moves."""

    class Lock:
        def __init__(self):
            self._lock = _thread.allocate_lock()
            self.release = self._lock.release
            self.breaks_off = False

        def acquire(self):
            if self.breaks_off:
                raise KeyboardInterrupt
            return self._lock.acquire(timeout=1)

    lock = Lock()
    monkeypatch.setattr(memory.threading, "Lock", lambda: lock)
    fence = new_fence()
    lock.breaks_off = True
    with pytest.raises(KeyboardInterrupt):
        fence()
    lock.breaks_off = False
    fence()
    fence()
