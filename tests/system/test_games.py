"""Games, whose frames are stored once, with every kind of store and buffer."""

import pytest

from tests.system.runs import QUIET, run

pytest.importorskip("ale_py", reason="needs the extra `atari`")

ALGORITHMS = {
    "ppo": {"name": "ppo", "unroll_length": 4, "minibatch_size": 16, "epochs": 1},
    "impala": {"name": "impala", "unroll_length": 4},
    "dqn": {
        "name": "dqn", "unroll_length": 2, "batch_size": 4, "updates_per_version": 1,
        "warmup_steps": 8, "replay_size": 64, "sampling": "prioritized", "n_step": 3,
    },
    "sync-nigt": {"name": "sync-nigt", "unroll_length": 4},
}  # fmt: skip


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_game_is_trained_on(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    summary = run(
        env="ALE/Pong-v5", algorithm=ALGORITHMS[name], engine="inline", num_envs=4, num_actors=2,
        max_env_steps=32, observe=QUIET,
    )  # fmt: skip
    assert summary["stopped_because"] == "max_env_steps"
    assert summary["updates"] > 0
    assert (summary["device"], summary["inference"], summary["gpu"]) == ("cpu", "actor-cpu", None)


def test_frames_reach_a_learner_whose_buffer_has_a_process_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    summary = run(
        env="ALE/Pong-v5", algorithm=ALGORITHMS["ppo"], engine="local", num_envs=4, num_actors=1,
        max_env_steps=32, observe=QUIET, plan={"source": "rule", "buffer_worker": "buffer"},
    )  # fmt: skip
    assert summary["stopped_because"] == "max_env_steps"
    assert summary["restarts"] == 0
