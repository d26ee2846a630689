"""Names that other libraries give to our settings, for suggestions. None of them is an alias."""

from __future__ import annotations

from collections.abc import Collection

FOREIGN_NAMES: tuple[tuple[str, str], ...] = (
    ("learning_rate", "lr step_size alpha"),
    ("max_env_steps", "total_timesteps timesteps total_steps max_steps train_for_env_steps"),
    ("env", "env_id"),
    ("algorithm", "algo"),
    ("num_envs", "n_envs"),
    ("num_actors", "num_workers num_env_runners n_workers"),
    ("n_step", "n_steps"),
    ("unroll_length", "n_steps num_steps rollout rollout_length rollout_fragment_length horizon"),
    ("minibatch_size", "batch_size"),
    ("minibatches", "batch_size num_minibatches"),
    ("minibatch_size", "num_minibatches"),
    ("epochs", "n_epochs num_epochs update_epochs num_sgd_iter"),
    ("gamma", "discount"),
    ("gae_lambda", "lambda lambda_ lam"),
    ("trace_lambda", "lambda lambda_ lam"),
    ("entropy", "ent_coef entropy_coef entropy_coeff"),
    ("value_loss", "vf_coef value_coef vf_loss_coeff"),
    ("clip", "clip_range clip_coef clip_param"),
    ("value_clip", "clip_range_vf clip_vloss"),
    ("replay_size", "buffer_size"),
    ("warmup_steps", "learning_starts"),
    ("updates_per_version", "gradient_steps"),
    ("target_tau", "tau"),
    ("initial_temperature", "ent_coef init_temperature initial_alpha"),
    ("target_period_updates", "target_update_interval target_network_frequency"),
    ("epsilon_start", "exploration_initial_eps start_e"),
    ("epsilon_final", "exploration_final_eps end_e"),
    ("hidden", "policy policy_kwargs net_arch"),
    ("normalize.observations", "norm_obs"),
    ("normalize.rewards", "norm_reward"),
    ("checkpoint.period_s", "save_freq"),
    ("evaluate.period_s", "eval_freq"),
    ("episodes", "n_eval_episodes"),
    ("run", "exp_name name"),
)
"""Our setting and the names that others give it; the first setting that the algorithm has wins."""


def own_name(foreign: str, known: Collection[str]) -> str | None:
    """Return the name in `known` of the setting that other libraries call `foreign`."""
    found = (ours for ours, theirs in FOREIGN_NAMES if foreign in theirs.split() and ours in known)
    return next(found, None)
