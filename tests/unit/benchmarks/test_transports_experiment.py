"""What the transports' benchmark relies on: its receiver notices whatever goes wrong on the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.transports import outcome
from benchmarks.transports.experiment import ALIGNMENT, Keeper, fill, make_payload, stamp
from benchmarks.transports.jobs import OURS, make_job
from benchmarks.transports.peers import mp_pipe
from benchmarks.transports.points import KB, MB, MIDDLE, Point, per_10k_s

SIZE = 64


def message(sequence: int, sender: int = 0) -> bytearray:
    payload = make_payload(SIZE)
    fill(payload, sequence, sender)
    stamp(payload, sequence, sender)
    return bytearray(payload)


def test_actors_share_out_all_messages_and_the_first_ones_send_the_remainder() -> None:
    point = Point(SIZE, actors=4, messages=10)
    assert [point.share(actor) for actor in range(4)] == [3, 3, 2, 2]


@pytest.mark.parametrize(
    ("size", "kept"), [(4 * KB, 1024), (128 * KB, 512), (8 * MB, 8), (64 * MB, 8)]
)
def test_64_mb_are_kept_within_8_to_1024_messages(size: int, kept: int) -> None:
    assert Point(size).num_kept == kept


def test_payloads_are_aligned() -> None:
    import numpy as np

    assert np.asarray(make_payload(1000)).ctypes.data % ALIGNMENT == 0


def test_seconds_are_scaled_to_10_000_messages() -> None:
    assert per_10k_s(2.0, messages=1000) == 20.0


def test_ours_sends_all_messages_and_slow_transports_fewer() -> None:
    assert make_job(OURS, Point(MIDDLE)).point.messages == 10_000
    assert make_job("ray", Point(MIDDLE)).point.messages < 1000
    assert make_job(OURS, Point(MIDDLE, 1, 1e-3)).point.messages == 2_000


def test_held_points_are_measured_five_times_for_whom_they_are_held() -> None:
    assert make_job("mpi", Point(MIDDLE, 4, is_copying=True)).repeats == 5
    assert make_job("zmq-tcp", Point(4 * KB)).repeats == 5
    assert make_job("zmq-tcp", Point(MIDDLE)).repeats == 2


@pytest.mark.parametrize("copying", [False, True])
def test_whole_messages_in_every_senders_order_are_kept(copying: bool) -> None:
    keeper = Keeper(Point(SIZE, actors=2, is_copying=copying, is_check=True))
    for sequence, sender in ((0, 1), (0, 0), (1, 0), (1, 1)):
        keeper.keep(message(sequence, sender))
    keeper.finish()
    assert keeper.received == 4


def test_a_torn_message_is_noticed() -> None:
    torn = message(0)
    torn[-16:] = message(1)[-16:]
    with pytest.raises(AssertionError, match="torn"):
        Keeper(Point(SIZE)).keep(torn)


@pytest.mark.parametrize("sequences", [(0, 2), (0, 0), (1,)], ids=["lost", "doubled", "reordered"])
def test_a_message_out_of_order_is_noticed(sequences: tuple[int, ...]) -> None:
    keeper = Keeper(Point(SIZE))
    with pytest.raises(AssertionError, match="arrived"):
        for sequence in sequences:
            keeper.keep(message(sequence))


def test_a_changed_byte_between_the_stamps_is_noticed() -> None:
    changed = message(0)
    changed[SIZE // 2] ^= 1
    with pytest.raises(AssertionError, match="other bytes"):
        Keeper(Point(SIZE, is_check=True)).keep(changed)


def test_a_kept_message_that_is_written_to_is_noticed() -> None:
    keeper = Keeper(Point(SIZE, is_check=True))
    kept = message(0)
    keeper.keep(kept)
    kept[SIZE // 2] ^= 1
    with pytest.raises(AssertionError, match="other bytes"):
        keeper.finish()


def test_a_transport_runs_between_processes_and_reports_its_figures() -> None:
    figures = mp_pipe.run("mp-pipe", Point(4 * KB, actors=2, messages=41, is_check=True))
    assert figures["received"] == 41
    assert figures["messages_per_s"] == pytest.approx(41 / figures["collection_s"])
    assert figures["sender_cpu_us"] > 0


def test_a_worker_that_fails_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: mp_pipe.PipeSender, payload: memoryview) -> memoryview:
        raise OSError("no such pipe")

    monkeypatch.setattr(mp_pipe.PipeSender, "send", fail)
    with pytest.raises(RuntimeError, match="no such pipe"):
        mp_pipe.run("mp-pipe", Point(4 * KB, messages=20))


def test_figure_data_has_every_run_that_worked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome, "FIGURE_DATA", tmp_path)
    results = outcome.Results()
    for messages, point in ((10_000, Point(4 * KB)), (2_000, Point(MIDDLE, 2, 1e-3))):
        run = {"transport": OURS, "size_bytes": point.size_bytes, "failed_tries": 0}
        results.add(OURS, point.with_messages(messages), run)
    results.add("ray", Point(4 * KB), {"transport": "ray", "failed": "it hung", "failed_tries": 3})
    written = outcome.write_figure_data(results, "command", {"ray": "2.60.0"})
    sizes, sample_times = (json.loads(path.read_text()) for path in written)
    assert (sizes["figure"], sample_times["figure"]) == ("tianji-5a", "tianji-5b")
    assert sizes["points"] == [{"transport": OURS, "size_bytes": 4 * KB}]
    assert sample_times["points"] == [{"transport": OURS, "size_bytes": MIDDLE}]
    assert sizes["versions"]["ray"] == "2.60.0"
