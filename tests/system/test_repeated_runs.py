"""Many runs in one process, as in a notebook: nothing of one is left for the next."""

import gc
import os

from tests.system.runs import PPO, run


def test_runs_leave_no_open_file_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(algorithm=PPO, max_env_steps=500)
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(2):
        run(algorithm=PPO, max_env_steps=500)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before
