"""What a person can ask of PPO."""

from __future__ import annotations

from pydantic import Field

from tianji.algorithms.actor_critic import settings
from tianji.config.schema import Count, Fraction, Positive, TriedCount


class PPOConfig(settings.ActorCriticConfig):
    """Proximal policy optimisation (Schulman et al. 2017) with a decoupled objective."""

    name: str = "ppo"
    learning_rate: Positive = 5e-4
    """Step size of the optimiser at the start."""
    unroll_length: TriedCount = 256
    """Steps of every environment in one unroll; longer means fewer hand-overs and more lag. auto:
    the shortest that costs no speed."""
    learning_rate_final: float | None = Field(None, ge=0.0)
    """Step size at max_env_steps, reached in a straight line; none keeps it constant."""
    clip: Positive = 0.2
    """How far the probability of an action may move in one version before its gradient stops."""
    clip_final: Positive | None = None
    """Clip at max_env_steps, reached in a straight line; empty keeps it constant."""
    gae_lambda: Fraction = 0.95
    """Advantages: 0 trusts the value network, 1 the rewards; between them, less variance."""
    epochs: Count = 10
    """Passes over every batch; more learn more from it and move further from what made it."""
    minibatch_size: TriedCount = 128
    """Rows of one update. A batch is cut into the fewest equal parts that are not larger. auto: the
    smallest that costs no speed."""
    entropy: float = Field(0.0, ge=0.0)
    """Weight of the entropy bonus; too much keeps the policy random."""
    value_loss: float = Field(0.5, ge=0.0)
    """Weight of the squared error of the values."""
    value_clip: Positive | None = None
    """How far a value may move in one version; empty lets it move freely."""
    target_kl: Positive | None = None
    """Skip the epochs that are left once the policy moved this far; empty never skips."""
    normalize_advantage: bool = True
    """Centre and scale the advantages of every batch."""
    decoupled: bool = True
    """Clip against the learner's policy when it took the batch, and weight rows by how likely
    their actions were under it; without, clip against the policy that acted."""
    max_behaviour_weight: Positive = 2.0
    """Largest such weight; 1 never counts a row more than once."""
