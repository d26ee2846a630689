"""The processes that make the runs of a figure."""

import os
import select
import signal
import subprocess
import sys
import textwrap

ASKER = """
    import os, sys, time
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context
    from tianji.figures.gathering.measure import prepare

    if __name__ == "__main__":
        pool = ProcessPoolExecutor(1, get_context("spawn"), prepare, (os.getpid(),))
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 600)
        time.sleep(600)
"""


def test_whoever_makes_runs_ends_with_whoever_asked_for_them(tmp_path):
    file = tmp_path / "asker.py"
    file.write_text(textwrap.dedent(ASKER), encoding="utf-8")
    with subprocess.Popen([sys.executable, file], stdout=subprocess.PIPE, text=True) as asker:
        assert asker.stdout is not None
        maker = os.pidfd_open(int(asker.stdout.readline()))
        try:
            asker.send_signal(signal.SIGTERM)
            asker.wait()
            assert has_ended(maker)
        finally:
            os.close(maker)


def has_ended(pidfd):
    """Readable from then on."""
    return bool(select.select([pidfd], [], [], 20)[0])
