"""iceoryx2: publish-subscribe of byte slices. A sample is loaned, written and sent; the receiver
keeps the samples themselves, so nothing is copied on its side.

`iceoryx2` waits for events: the sender notifies after every sample, the receiver sleeps while there
is none. `iceoryx2-poll` asks again and again and lets others run in between: often faster, but a
receiver that waits takes a whole core.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path
from typing import Any

import iceoryx2 as iox2  # type: ignore[import-not-found]  # it is in .peers

from benchmarks.transports.experiment import ALIGNMENT, make_payload
from benchmarks.transports.points import Point
from benchmarks.transports.processes import FORK, run_forked

MAX_IN_FLIGHT = 16
# It can hold more, but is then slower: a pool of a gigabyte of small samples is never warm.
MAX_KEPT = 1024
ADDED_WHILE_RECEIVING = 1  # the newest sample is there before the oldest goes


def run(name: str, point: Point) -> dict[str, Any]:
    ends = IceoryxEnds(point, has_events=name == "iceoryx2")
    try:
        return run_forked(name, point, ends)
    finally:
        ends.remove_files()


class IceoryxEnds:
    """A name space of its own for every run; what the run leaves in it is removed."""

    def __init__(self, point: Point, has_events: bool) -> None:
        self._point = point
        self._has_events = has_events
        self._prefix = f"bench{os.getpid()}_"
        self._root = Path("/tmp") / f"{self._prefix}iceoryx2"
        self._max_kept = min(point.num_kept, MAX_KEPT)
        self._subscribed = FORK.Event()

    def sender(self, actor: int) -> IceoryxSender:
        self._subscribed.wait()  # so that there is somebody to send to
        node = self._make_node()
        notifier = self._event(node).notifier_builder().create() if self._has_events else None
        return IceoryxSender(self._point, node, self._service(node), notifier)

    def receiver(self) -> IceoryxReceiver:
        node = self._make_node()
        listener = self._event(node).listener_builder().create() if self._has_events else None
        service = self._service(node)
        receiver = IceoryxReceiver(self._point, node, service, listener, self._max_kept)
        self._subscribed.set()
        return receiver

    def remove_files(self) -> None:
        for left in Path("/dev/shm").glob(f"{self._prefix}*"):
            left.unlink(missing_ok=True)
        shutil.rmtree(self._root, ignore_errors=True)

    def _make_node(self) -> Any:
        iox2.set_log_level(iox2.LogLevel.Error)
        config = iox2.config.default()
        config.global_cfg.prefix = iox2.FileName.new(self._prefix)
        config.global_cfg.root_path = iox2.Path.new(str(self._root))
        return iox2.NodeBuilder.new().config(config).create(iox2.ServiceType.Ipc)

    def _event(self, node: Any) -> Any:
        return (
            node.service_builder(iox2.ServiceName.new("experience"))
            .event()
            .max_nodes(self._point.actors + 1)
            .max_notifiers(self._point.actors)
            .max_listeners(1)
            .open_or_create()
        )

    def _service(self, node: Any) -> Any:
        return (
            node.service_builder(iox2.ServiceName.new("experience"))
            .publish_subscribe(iox2.Slice[ctypes.c_uint8])
            .payload_alignment(iox2.Alignment.new(ALIGNMENT))
            .max_nodes(self._point.actors + 1)
            .max_publishers(self._point.actors)
            .max_subscribers(1)
            .enable_safe_overflow(False)
            .subscriber_max_buffer_size(MAX_IN_FLIGHT)
            .subscriber_max_borrowed_samples(self._max_kept + ADDED_WHILE_RECEIVING)
            .open_or_create()
        )


class IceoryxSender:
    def __init__(self, point: Point, node: Any, service: Any, notifier: Any) -> None:
        self.payload = make_payload(point.size_bytes)
        self._address = ctypes.addressof(ctypes.c_uint8.from_buffer(self.payload))
        self._node = node
        self._notifier = notifier
        self._publisher = (
            service.publisher_builder()
            .initial_max_slice_len(point.size_bytes)
            .max_loaned_samples(1)
            .backpressure_strategy(iox2.BackpressureStrategy.RetryUntilDelivered)
            .create()
        )

    def send(self, payload: memoryview) -> memoryview:
        # Until the receiver has looked once, a full buffer loses messages instead of waiting.
        while self._deliver(len(payload)) == 0:
            os.sched_yield()
        if self._notifier is not None:
            self._notifier.notify()
        return payload

    def _deliver(self, size_bytes: int) -> int:
        """Send the payload once; how many receivers it has reached."""
        sample = self._publisher.loan_slice_uninit(size_bytes)
        ctypes.memmove(sample.payload_ptr, self._address, size_bytes)
        return int(sample.assume_init().send())

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self._publisher.delete()


class IceoryxReceiver:
    def __init__(self, point: Point, node: Any, service: Any, listener: Any, max_kept: int) -> None:
        self.max_kept = max_kept
        self._node = node
        self._subscriber = service.subscriber_builder().create()
        self._wait = listener.blocking_wait if listener is not None else os.sched_yield
        # A type of its own, because plain ctypes arrays take no attributes.
        self._message: Any = type("Message", (ctypes.c_uint8 * point.size_bytes,), {})

    def receive(self) -> Any:
        ask = self._subscriber.receive
        sample = ask()
        while sample is None:
            self._wait()
            sample = ask()
        message = self._message.from_address(sample.payload_ptr)
        message.sample = sample  # gives the memory back when the message goes
        return message

    def close(self) -> None:
        pass
