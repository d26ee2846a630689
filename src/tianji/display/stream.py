"""Streams for people: a closed terminal or an unread pipe costs words, and does not end a run."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, TextIO, cast

_GONE = {errno.EIO, errno.EPIPE}
"""Errors of a write to a closed terminal, or to a pipe without a reader."""


def standard_error() -> TextIO:
    """Standard error, where everything for people goes, as a stream whose writes never fail."""
    return unfailing(sys.stderr)


def say(text: str) -> None:
    """Print a line for people."""
    stream = standard_error()
    stream.write(f"{text}\n")
    stream.flush()


def unfailing(stream: TextIO) -> TextIO:
    """The same stream, but words that cannot be written are dropped."""
    return stream if isinstance(stream, _Unfailing) else cast("TextIO", _Unfailing(stream))


class _Unfailing:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            self._stream.write(text)
        except OSError as error:
            self._drop(error)
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._drop(error)

    def _drop(self, error: OSError) -> None:
        """The interpreter flushes at its end, and would exit with 120 where the reader is gone."""
        if error.errno in _GONE:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
