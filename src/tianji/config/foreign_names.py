"""Names that other libraries give to settings, for suggestions. None of them is an alias."""

from __future__ import annotations

from collections.abc import Collection, Mapping

FOREIGN_NAMES: Mapping[str, tuple[str, ...]] = {
    "lr": ("learning_rate",),
    "step_size": ("learning_rate",),
    "alpha": ("learning_rate",),
    "total_timesteps": ("max_env_steps",),
    "timesteps": ("max_env_steps",),
    "total_steps": ("max_env_steps",),
    "max_steps": ("max_env_steps",),
    "train_for_env_steps": ("max_env_steps",),
    "env_id": ("env",),
    "algo": ("algorithm",),
    "n_envs": ("num_envs",),
    "num_workers": ("num_actors",),
    "num_env_runners": ("num_actors",),
    "n_workers": ("num_actors",),
    "n_steps": ("n_step", "unroll_length"),
    "num_steps": ("unroll_length",),
    "rollout": ("unroll_length",),
    "rollout_length": ("unroll_length",),
    "rollout_fragment_length": ("unroll_length",),
    "horizon": ("unroll_length",),
    "batch_size": ("minibatch_size", "minibatches"),
    "num_minibatches": ("minibatches", "minibatch_size"),
    "n_epochs": ("epochs",),
    "num_epochs": ("epochs",),
    "update_epochs": ("epochs",),
    "num_sgd_iter": ("epochs",),
    "discount": ("gamma",),
    "lambda": ("gae_lambda", "trace_lambda"),
    "lambda_": ("gae_lambda", "trace_lambda"),
    "lam": ("gae_lambda", "trace_lambda"),
    "ent_coef": ("entropy",),
    "entropy_coef": ("entropy",),
    "entropy_coeff": ("entropy",),
    "vf_coef": ("value_loss",),
    "value_coef": ("value_loss",),
    "vf_loss_coeff": ("value_loss",),
    "clip_range": ("clip",),
    "clip_coef": ("clip",),
    "clip_param": ("clip",),
    "clip_range_vf": ("value_clip",),
    "clip_vloss": ("value_clip",),
    "buffer_size": ("replay_size",),
    "learning_starts": ("warmup_steps",),
    "gradient_steps": ("updates_per_version",),
    "tau": ("target_tau",),
    "target_update_interval": ("target_period_updates",),
    "target_network_frequency": ("target_period_updates",),
    "exploration_initial_eps": ("epsilon_start",),
    "exploration_final_eps": ("epsilon_final",),
    "start_e": ("epsilon_start",),
    "end_e": ("epsilon_final",),
    "policy": ("hidden",),
    "policy_kwargs": ("hidden",),
    "net_arch": ("hidden",),
    "norm_obs": ("normalize.observations",),
    "norm_reward": ("normalize.rewards",),
    "save_freq": ("checkpoint.period_s",),
    "eval_freq": ("evaluate.period_s",),
    "n_eval_episodes": ("episodes",),
    "exp_name": ("run",),
    "name": ("run",),
}
"""By the other libraries' name, our settings of that meaning; the first that the algorithm has is
suggested."""


def own_name(foreign: str, known: Collection[str]) -> str | None:
    """The name among `known` of the setting that other libraries call `foreign`."""
    return next((name for name in FOREIGN_NAMES.get(foreign, ()) if name in known), None)
