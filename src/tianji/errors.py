"""The only exceptions TianJi raises on purpose."""


class TianjiError(Exception):
    """Anything TianJi says to a person; the command line prints the text and no traceback."""

    exit_code = 1


class UsageError(TianjiError):
    """Bad input, found before any process starts: what was wrong, what is allowed, what to do."""

    exit_code = 2


class ChannelError(TianjiError):
    """The two ends of a channel do not fit: another layout, a second reader, an item too large."""


class WorkerLost(TianjiError):
    """A role died or stopped answering and could not be brought back."""


class EnvironmentFailed(TianjiError):
    """An environment raises again and again, also when a new one takes its place."""


class TrainingDiverged(TianjiError):
    """A loss or a gradient stopped being a finite number."""


class CheckpointError(TianjiError):
    """A checkpoint is missing, incomplete, altered, or does not fit this run."""
