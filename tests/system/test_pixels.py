"""Images through the general path: any Gymnasium environment, its wrappers, networks of one's own.

None of these runs depends on how fast the machine is.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tests.system.runs import DQN, IMPALA, PPO, QUIET, run
from tianji.config.overrides import make_config
from tianji.errors import UsageError
from tianji.run import train_config
from tianji.trained.policy import load_policy

FAKES = "tests.fakes.pixel_envs"
SHORT = {
    "ppo": {**PPO, "unroll_length": 4, "minibatch_size": 16},
    "impala": {**IMPALA, "unroll_length": 4},
    "dqn": {
        **DQN, "unroll_length": 2, "batch_size": 4, "updates_per_version": 1, "warmup_steps": 8,
        "replay_size": 64,
    },
    "a3c": {"name": "a3c", "unroll_length": 4},
    "gorila": {
        "name": "gorila", "unroll_length": 2, "batch_size": 4, "warmup_steps": 8, "n_step": 3,
        "replay_size": 64,
    },
}  # fmt: skip
HAS_OPENCV = importlib.util.find_spec("cv2") is not None
needs_opencv = pytest.mark.skipif(not HAS_OPENCV, reason="needs opencv-python-headless")
ENVS = {
    "colours": ("Noise", {}),
    "channels first": ("Noise", {"shape": (3, 40, 40)}),
    "no channels": ("Noise", {"shape": (40, 40)}),
    "oblong": ("Noise", {"shape": (30, 70, 3)}),
    "floats": ("Noise", {"dtype": "float32", "high": 1.0}),
    "16 bits": ("Noise", {"dtype": "uint16", "high": 65535}),
    "stack of grey": ("stacked", {"shape": (40, 40)}),
    "stack of colours": ("stacked", {}),
    "continuous actions": ("Driving", {}),
    "image and direction": ("without_mission", {}),
}
WRAPPED = {
    "resized, grey, stacked": ("grey", {}),
    "with a channel axis": ("grey", {"keep_dim": True}),
    "one frame": ("grey", {"num_frames": 0}),
    "Pong": ("preprocessed_pong", {}),
    "Pong in colour": ("preprocessed_pong", {"grayscale_obs": False}),
    "Pong in floats": ("preprocessed_pong", {"scale_obs": True}),
}


def train_short(env, kwargs, algorithm="ppo", **more):
    summary = run(
        env=f"{FAKES}:{env}", env_kwargs=kwargs, algorithm=SHORT[algorithm], engine="inline",
        num_envs=4, max_env_steps=64, **more,
    )  # fmt: skip
    assert summary["stopped_because"] == "max_env_steps" and summary["updates"] > 0
    return summary


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ENVS)
def test_images_of_every_shape_and_type_are_trained_on(name):
    train_short(*ENVS[name])


@pytest.mark.parametrize("algorithm", ["impala", "dqn", "a3c", "gorila"])
@pytest.mark.parametrize("name", ["no channels", "stack of colours", "image and direction"])
def test_every_algorithm_takes_them(name, algorithm):
    train_short(*ENVS[name], algorithm)


@needs_opencv
@pytest.mark.parametrize("name", WRAPPED)
def test_the_wrappers_of_gymnasium_work(name):
    if "pong" in WRAPPED[name][0]:
        pytest.importorskip("ale_py", reason="needs the extra `atari`")
    train_short(*WRAPPED[name])


def test_car_racing_is_trained_on():
    pytest.importorskip("Box2D", reason="needs the extra `box2d`")
    summary = run(
        env="CarRacing-v3", algorithm=SHORT["ppo"], engine="inline", num_envs=2, max_env_steps=16
    )
    assert summary["updates"] > 0


def test_words_in_an_observation_are_refused_with_advice():
    with pytest.raises(UsageError, match=r"entry 'mission'.*FilterObservation"):
        train_short("Grid", {})


NETWORKS = {"ppo": "actor_critic", "impala": "actor_critic", "dqn": "q_network"}


IN_PROCESSES = [
    ("dqn", "local"),
    # Processes find a network of two heads by its name in the same way.
    *(pytest.param(name, "local", marks=pytest.mark.slow) for name in ("ppo", "impala")),
]


@pytest.mark.parametrize(
    ("algorithm", "engine"), [*((name, "inline") for name in NETWORKS), *IN_PROCESSES]
)
def test_a_network_of_ones_own_takes_images(algorithm, engine):
    summary = run(
        env="tianji.envs.worlds:Pixels", algorithm=SHORT[algorithm], engine=engine, num_envs=4,
        max_env_steps=64, model={"factory": f"{FAKES}:{NETWORKS[algorithm]}"},
        normalize={"observations": False},
    )  # fmt: skip
    assert summary["updates"] > 0 and summary["restarts"] == 0
    policy = load_policy(Path(summary["run_dir"]))
    action = policy.act(np.zeros((36, 36, 1), np.uint8))
    assert action in range(3)


@pytest.mark.parametrize("algorithm", NETWORKS)
def test_a_network_of_ones_own_takes_the_stacks_of_games(algorithm):
    """The frames are stored once, and arrive as whole stacks."""
    pytest.importorskip("ale_py", reason="needs the extra `atari`")
    summary = run(
        env="ALE/Pong-v5", algorithm=SHORT[algorithm], engine="inline", num_envs=4,
        max_env_steps=32, model={"factory": f"{FAKES}:{NETWORKS[algorithm]}"},
        normalize={"observations": False},
    )  # fmt: skip
    assert summary["updates"] > 0


@pytest.mark.timeout(900)
@pytest.mark.parametrize("factory", [None, f"{FAKES}:actor_critic"])
def test_catching_is_learned_from_images(factory):
    """Chance has -0.65; a paddle that stays has -0.67."""
    own = {} if factory is None else {"model.factory": factory, "normalize.observations": False}
    here = {"engine": "inline", "learner_threads": 1, "observe": QUIET}
    summary = train_config(make_config("catch-pixels-ppo", max_env_steps=60_000, **here, **own))
    assert summary["stopped_because"] == "target_reached", summary["best_mean_return_100"]


CURTAIN = {
    "env": f"{FAKES}:stacked_curtain", "num_envs": 16, "max_lag": 1, "observe": QUIET,
    "algorithm": {
        "name": "ppo", "gamma": 0.99, "unroll_length": 32, "epochs": 4, "minibatch_size": 256,
        "learning_rate": 1e-3, "learning_rate_final": 1e-4, "entropy": 0.01,
    },
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_hidden_ball_is_learned_from_stacks_of_frames(seed):
    """Two to three minutes on two busy cores, after 17,000 to 31,000 steps. Chance has -0.75."""
    summary = train_config(
        make_config(**CURTAIN, seed=seed, target_return=0.8, max_env_steps=200_000)
    )
    assert summary["stopped_because"] == "target_reached", summary["best_mean_return_100"]
    assert summary["discarded_items"] == 0


@pytest.mark.timeout(900)
def test_a_hidden_ball_is_learned_better_than_by_chance():
    """The beginning of it, in one process and with one seed."""
    summary = train_config(
        make_config(
            **CURTAIN, engine="inline", learner_threads=1, target_return=-0.3, max_env_steps=30_000
        )
    )
    assert summary["stopped_because"] == "target_reached", summary["best_mean_return_100"]
