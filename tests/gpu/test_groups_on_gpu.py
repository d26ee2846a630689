"""Groups whose learners share a GPU."""

import numpy as np
import pytest
import torch

from tests.system.runs import IMPALA, PPO, run
from tests.system.test_groups import weights_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("algorithm", [PPO, IMPALA], ids=["ppo", "impala"])
def test_groups_on_a_gpu_are_equal_after_every_average(algorithm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    summary = run(
        env="tianji.envs.worlds:Pixels", algorithm=algorithm, engine="inline", device="cuda",
        num_groups=2, combine="average", combine_every=1, max_env_steps=1024,
    )  # fmt: skip
    assert summary["device"] == "cuda:0" and summary["updates"] > 0
    run_dir = tmp_path / summary["run_dir"]
    assert np.array_equal(weights_of(run_dir, 0), weights_of(run_dir, 1))


def test_groups_with_processes_of_their_own_share_a_gpu(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    summary = run(
        env="tianji.envs.worlds:Pixels", algorithm=PPO, device="cuda", num_groups=2,
        combine="gossip", max_env_steps=4096,
    )  # fmt: skip
    assert summary["stopped_because"] == "max_env_steps"
    # Nobody waits: one group may have made all steps before the other has begun.
    assert len(summary["groups"]) == 2 and summary["updates"] > 0
