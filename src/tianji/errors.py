"""The exceptions that TianJi raises on purpose."""

import difflib
from collections.abc import Iterable


class TianjiError(Exception):
    """An error with a message for a person; the command line prints the text and no traceback."""

    exit_code = 1


class UsageError(TianjiError):
    """Bad input, found before any process starts: what is wrong, what is allowed, what to do."""

    exit_code = 2


class ChannelError(TianjiError):
    """The two ends of a channel do not fit: another layout, a second reader, an item too large."""


class WorkerLost(TianjiError):
    """A role died or stopped answering and could not be restarted."""


class EnvironmentFailed(TianjiError):
    """An environment keeps raising, also after it was replaced by a new one."""


class TrainingDiverged(TianjiError):
    """A loss or a gradient is no longer a finite number."""


class ReduceBroken(TianjiError):
    """A collective has failed: one of the ranks is gone, or did not come in time."""


class CheckpointError(TianjiError):
    """A checkpoint is missing, incomplete, altered, or does not fit this run."""


def did_you_mean(name: str, known: Iterable[str], most: int = 1) -> str:
    """Return a sentence with the known names closest to a misspelt one; "" if none is close.

    >>> did_you_mean("cartpole-v1", ["CartPole-v1", "Pendulum-v1"])
    " Did you mean 'CartPole-v1'?"
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=most)
    return f" Did you mean {' or '.join(repr(by_lower[match]) for match in close)}?" * bool(close)
