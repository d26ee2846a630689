"""Requests for inference: one row of words for each actor, and the outputs that answer it.

    asker.ask(slot, row)                  # the actor: its observations lie in that row of the slot
    lanes = answerer.waiting()            # the server; answerer.requests(lanes) says what they need
    answerer.answer(lanes, version)       # after it has written outputs_LNA[lane]
    if asker.is_answered(): ...           # the actor reads asker.outputs_NA and asker.version

Only numbers move: observations stay in the slots. A request stands until it is answered, so that a
server that takes over after a death finds it. Requests are numbered, so that an actor that takes
over never reads the answer to its predecessor.

L: actors, N: environments of an actor, A: outputs, W: words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tianji.channels.memory import IS_ORDERED, Segment, new_fence

# Words of a lane, in two cache lines: what the actor writes, and what the server writes.
_ASKED, _SLOT, _ROW = 0, 1, 2
_ANSWERED, _VERSION = 8, 9
_WORDS = 16


@dataclass(frozen=True, slots=True)
class RequestMemory:
    """The shared memory of all requests and answers."""

    words_LW: npt.NDArray[np.int64]
    outputs_LNA: npt.NDArray[np.float32]

    @staticmethod
    def open(fd: int, num_lanes: int, num_envs: int, num_outputs: int) -> RequestMemory:
        """Map a memfd. Whoever comes first gives it its size, which all know."""
        num_words = num_lanes * _WORDS
        num_floats = num_lanes * num_envs * num_outputs
        segment = Segment.allocate(fd, "requests for inference", 8 * num_words + 4 * num_floats)
        words = np.frombuffer(segment.memory, np.int64, num_words)
        outputs = np.frombuffer(segment.memory, np.float32, num_floats, 8 * num_words)
        return RequestMemory(
            words.reshape(num_lanes, _WORDS), outputs.reshape(num_lanes, num_envs, num_outputs)
        )


class Asker:
    """An actor's end."""

    def __init__(self, memory: RequestMemory, lane: int, wake_server: Callable[[], None]) -> None:
        """wake_server: rings the server's bell; it sets a fence before."""
        self._words = memoryview(memory.words_LW[lane])
        self._wake_server = wake_server
        self._number = self._words[_ASKED]
        self._fence = new_fence()
        self.outputs_NA = memory.outputs_LNA[lane]

    def ask(self, slot: int, row: int) -> None:
        words = self._words
        words[_SLOT], words[_ROW] = slot, row
        self._number += 1
        if not IS_ORDERED:
            self._fence()
        words[_ASKED] = self._number
        self._wake_server()

    def is_answered(self) -> bool:
        """Return whether the last request was answered."""
        is_here: bool = self._words[_ANSWERED] == self._number
        if not IS_ORDERED:
            self._fence()
        return is_here

    @property
    def version(self) -> int:
        """Return the version of the policy that made the last answer."""
        version: int = self._words[_VERSION]
        return version


class Answerer:
    """The server's end."""

    def __init__(self, memory: RequestMemory) -> None:
        self._words_LW = words_LW = memory.words_LW
        self._asked_L, self._answered_L = words_LW[:, _ASKED], words_LW[:, _ANSWERED]
        self._numbers_L = self._answered_L.copy()
        """The requests that waiting() has returned."""
        self._fence = new_fence()
        self.outputs_LNA = memory.outputs_LNA

    def waiting(self) -> npt.NDArray[np.int64]:
        """Return the lanes that wait for an answer."""
        self._numbers_L = self._asked_L.copy()
        if not IS_ORDERED:
            self._fence()
        return np.flatnonzero(self._numbers_L != self._answered_L)

    def requests(self, lanes: npt.NDArray[np.int64]) -> list[tuple[int, int, int]]:
        """Return lane, slot and row of what these lanes ask for."""
        words_LW = self._words_LW[lanes]
        return list(
            zip(
                lanes.tolist(),
                words_LW[:, _SLOT].tolist(),
                words_LW[:, _ROW].tolist(),
                strict=True,
            )
        )

    def answer(self, lanes: npt.NDArray[np.int64], version: int) -> None:
        """Say that the outputs of these lanes are there; their actors have to be woken."""
        self._words_LW[lanes, _VERSION] = version
        if not IS_ORDERED:
            self._fence()
        self._answered_L[lanes] = self._numbers_L[lanes]
