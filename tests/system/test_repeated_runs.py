"""Many runs in one process, as in a notebook: nothing of one is left for the next."""

import gc
import json
import os
from pathlib import Path

from tests.system.runs import PPO, run


def test_a_run_leaves_no_open_file_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    summary = run(algorithm=PPO, max_env_steps=500)
    the_plan_says_how_much_shared_memory_it_takes(Path(summary["run_dir"]))
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    run(algorithm=PPO, max_env_steps=500)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


def the_plan_says_how_much_shared_memory_it_takes(run_dir):
    plan = json.loads((run_dir / "plan.json").read_text())
    assert plan["shared_memory_bytes"] >= plan["num_slots"] * plan["slot_bytes"]
    weights = 4 * sum(
        4 * count for count in ((4 * 64 + 64) * 2, (64 * 64 + 64) * 2, 64 * 2 + 2, 64 + 1)
    )
    assert weights <= plan["policy_board_bytes"] <= weights + 3 * 4096
