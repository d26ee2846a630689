"""Says which tracebacks tell a person more than the message of the error does."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path

from tianji import errors

_FRAME = re.compile(r'^  File "([^"]+)", line \d+', re.MULTILINE)
_ON_PURPOSE = re.compile(rf"^{re.escape(errors.__name__)}\.\w+: ", re.MULTILINE)
"""The last line of an error of TianJi, whose message is for people."""
_FOLDERS = (
    str(Path(errors.__file__).parent),
    *(sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")),
)
"""Where the code of TianJi, of Python and of installed packages lies."""
_NOT_THEIRS = ("<frozen ", *(f"{folder}/" for folder in _FOLDERS))


def says_more(traceback: str) -> bool:
    """Return False where TianJi raised on purpose and no frame is of the person's own code."""
    if not _ON_PURPOSE.search(traceback):
        return True
    return not all(file.startswith(_NOT_THEIRS) for file in _FRAME.findall(traceback))
