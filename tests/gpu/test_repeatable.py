"""The same seed gives the same parameters on a GPU, bit for bit, in float32 and without lag."""

from pathlib import Path

import pytest
import torch

from tests.system.runs import DQN, IMPALA, PPO, differences, run, saved_state

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

ENVS = {"pixels": "tianji.envs.worlds:Pixels", "numbers": "CartPole-v1"}
ALGORITHMS = {"ppo": PPO, "impala": IMPALA, "dqn": DQN}
PLACES = {
    "inline": {"engine": "inline"},
    "processes": {"engine": "local", "max_lag": 0, "inference": "actor-gpu"},
    "processes, inference on the CPU": {
        "engine": "local", "max_lag": 0, "inference": "actor-cpu",
    },
}  # fmt: skip


def trained(name, settings):
    run(run=name, device="cuda", model={"precision": "float32"}, max_env_steps=1024, **settings)
    state = saved_state(Path("runs") / name)
    return {key: x for key, x in state.items() if key.startswith((".weights", ".state.update"))}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("env", ENVS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_same_seed_gives_the_same_parameters(algorithm, env, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = {"env": ENVS[env], "algorithm": ALGORITHMS[algorithm], "num_actors": 2}
    one, other = (trained(name, {**settings, **PLACES[place]}) for name in ("one", "other"))
    assert one and differences(one, other) == []
    another = trained("another", {**settings, **PLACES[place], "seed": 2})
    assert differences(one, another), "the comparison sees a difference"
