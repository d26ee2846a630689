"""Where a process hangs, read from the stacks that faulthandler has written."""

from __future__ import annotations

import re

from tianji.raised import is_theirs, place_in_words

_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>\S+)$', re.M)


def hangs_in_words(stacks: str) -> str:
    """Return the innermost line of code that is neither Python's own nor ours; "" without one.

    >>> hangs_in_words('  File "/me/chase.py", line 12 in step')
    'It is in step() of chase.py, line 12.'
    """
    for frame in _FRAME.finditer(stacks):
        if is_theirs(frame["file"]):
            place = place_in_words(frame["function"], frame["file"], int(frame["line"]))
            return f"It is {place}."
    return ""
