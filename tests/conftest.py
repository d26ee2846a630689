"""What holds for every test: one thread for torch, no pictures, and a cache folder of their own."""

import gc
import os
import signal
import sys
from pathlib import Path

import pytest

# Where two threads of torch share a core with another test, the one that waits must not hold it.
# It is read when torch is loaded, which is later.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# A shell starts commands in the background with SIGINT ignored, and what they start inherits that:
# the commands under test would never see a Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    """The collector need not walk all tests and modules again and again."""
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Two threads that wait for each other in models this small cost ten times the work."""
    import torch  # not before: the process that only hands out the tests needs none

    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """Profiles that are kept on this machine are neither seen nor changed."""
    with pytest.MonkeyPatch.context() as patch:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        if "MPLCONFIGDIR" not in os.environ:  # matplotlib's list of fonts takes seconds to make
            patch.setenv("MPLCONFIGDIR", str(cache / "matplotlib"))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True, scope="session")
def no_curves():
    """A picture at the end of every run would cost more than most of the runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tianji.display.curve.draw_curve", lambda _run_dir: None)
        yield


@pytest.fixture(autouse=True)
def no_command_goes_on():
    """A run without end, left by a test that failed, would slow all others."""
    yield
    if commands := sys.modules.get("tests.system.commands"):
        commands.kill_the_rest()
