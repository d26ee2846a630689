"""Tests of what the supervisor of a run loads: every person waits for it."""

import subprocess
import sys

LOADS = """
import sys
import tianji.cli.verbs.train, tianji.engines.local, tianji.run
sys.exit("torch" in sys.modules)
"""


def test_the_supervisor_does_not_load_torch():
    assert subprocess.run([sys.executable, "-c", LOADS], check=False).returncode == 0
