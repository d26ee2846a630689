"""RLlib PPO on Pong (new API stack): its Atari wrappers and connectors, the network at 84 x 84.

.peers/bin/python -m benchmarks.pong.peers.rllib --seconds 60
"""

from __future__ import annotations

from benchmarks.pong.peers.turn import Turn  # first: it notes when the process started

# isort: split
import argparse
from typing import Any

import ale_py
import gymnasium as gym
import ray
from ray import tune
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.env_to_module.frame_stacking import FrameStackingEnvToModule
from ray.rllib.connectors.learner.frame_stacking import FrameStackingLearner
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.env.wrappers.atari_wrappers import wrap_atari_for_new_api_stack

RUNNERS = 2


def make_game(settings: dict[str, Any]) -> gym.Env[Any, Any]:
    gym.register_envs(ale_py)
    return wrap_atari_for_new_api_stack(
        gym.make("ALE/Pong-v5", render_mode="rgb_array", **settings), dim=84, framestack=None
    )


def config(args: argparse.Namespace) -> PPOConfig:
    tune.register_env("pong", make_game)
    return (
        PPOConfig()
        .environment(
            "pong",
            env_config={"frameskip": 1, "repeat_action_probability": 0.0},
            clip_rewards=True,
        )
        .env_runners(
            num_env_runners=RUNNERS,
            num_envs_per_env_runner=args.num_envs // RUNNERS,
            rollout_fragment_length=args.num_steps,
            env_to_module_connector=lambda *_, **__: FrameStackingEnvToModule(num_frames=4),
        )
        .learners(num_learners=0)
        .training(
            learner_connector=lambda *_, **__: FrameStackingLearner(num_frames=4),
            train_batch_size_per_learner=args.num_envs * args.num_steps,
            minibatch_size=args.minibatch,
            num_epochs=args.epochs,
            lr=2.5e-4,
            clip_param=0.1,
            entropy_coeff=0.01,
            vf_loss_coeff=0.5,
            use_kl_loss=False,
            grad_clip=0.5,
            grad_clip_by="global_norm",
        )
        .rl_module(
            model_config=DefaultModelConfig(
                conv_filters=[[32, 8, 4], [64, 4, 2], [64, 3, 1]],
                conv_activation="relu",
                head_fcnet_hiddens=[512],
                head_fcnet_activation="relu",
                vf_share_layers=True,
            )
        )
        .debugging(seed=args.seed, log_level="ERROR")
    )


def main() -> None:
    turn = Turn()
    # More logical CPUs than cores, so that Ray places every actor; they share the real cores.
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    algorithm = config(turn.args).build_algo()
    turn.start()
    while not turn.is_over:
        result = algorithm.train()
        turn.mark(result["env_runners"]["num_env_steps_sampled_lifetime"])
    algorithm.stop()
    ray.shutdown()
    turn.print_answer("RLlib examples/algorithms/ppo/atari_ppo.py", "ray", "gymnasium", "ale-py")


if __name__ == "__main__":
    main()
