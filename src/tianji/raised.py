"""What an exception says, and where in a person's own code it was raised, in words."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

_OURS, _PYTHONS = str(Path(__file__).parent), sysconfig.get_path("stdlib")
_PACKAGES = "site-packages"


def error_in_words(error: BaseException) -> str:
    """Return the type and the text of an exception, without a full stop, so that a sentence can go
    on after it.

    >>> error_in_words(KeyError("speed")), error_in_words(RuntimeError("It broke."))
    ("KeyError: 'speed'", 'RuntimeError: It broke')
    >>> error_in_words(AssertionError())
    'AssertionError'
    """
    name, text = type(error).__name__, str(error).strip().removesuffix(".")
    return f"{name}: {text}" if text else name


def raised_in_words(error: BaseException) -> str:
    """Return the same on one line, with the innermost place in the person's own code, where there
    is one.

    >>> raised_in_words(error)
    "KeyError: 'speed' (in step() of chase.py, line 12)"
    """
    said = " ".join(error_in_words(error).split())
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if is_theirs(frame.filename) and _PACKAGES not in frame.filename:
            return f"{said} ({place_in_words(frame.name, frame.filename, frame.lineno or 0)})"
    return said


def is_theirs(file: str) -> bool:
    """Return whether code in this file is neither Python's own nor ours."""
    is_pythons = file.startswith((_PYTHONS, "<")) and _PACKAGES not in file
    return not is_pythons and not file.startswith(_OURS)


def place_in_words(function: str, file: str, line: int) -> str:
    """Name a line of Python as a person looks for it.

    >>> place_in_words("step", "/me/chase.py", 12)
    'in step() of chase.py, line 12'
    """
    what = "" if function.startswith("<") else f"{function}() of "  # <module>, <lambda>
    return f"in {what}{Path(file).name}, line {line}"
