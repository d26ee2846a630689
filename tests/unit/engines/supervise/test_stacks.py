"""Where a process hangs, in words."""

import sysconfig
from pathlib import Path

import tianji
from tianji.engines.supervise.stacks import hangs_in_words

STDLIB, OURS = sysconfig.get_path("stdlib"), Path(tianji.__file__).parent
STACKS = f"""Current thread 0x00007f (most recent call first):
  File "{STDLIB}/threading.py", line 359 in wait
  File "/home/me/chase.py", line 12 in step
  File "{STDLIB}/site-packages/gymnasium/core.py", line 300 in step
  File "{OURS}/actor/role.py", line 90 in tick
"""


def test_the_innermost_line_of_the_user_is_named():
    assert hangs_in_words(STACKS) == "It is in step() of chase.py, line 12."


def test_a_library_of_the_user_comes_next():
    stacks = "".join(line for line in STACKS.splitlines(True) if "chase" not in line)
    assert hangs_in_words(stacks) == "It is in step() of core.py, line 300."


def test_nothing_is_said_of_stacks_without_such_a_line():
    assert hangs_in_words("") == ""
    assert hangs_in_words(f'  File "{OURS}/actor/role.py", line 90 in tick\n') == ""
