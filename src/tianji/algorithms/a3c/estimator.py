"""The gradients of A3C's actors, each of one unroll of all environments of the actor.

The loss is that of advantage actor-critic (Mnih et al. 2016, section 4.3), as a mean over steps:

    L = E[ -A log pi(a|s) + c_1 (V - R)^2 - c_2 H ],    R = A + V, without gradient through A and R

Its gradient is that of ppo_loss() at the policy that acted, where every ratio is 1 and nothing is
clipped (Huang et al. 2022, "A2C is a special case of PPO"). So PPO's loss and its closed form are
used, with the values and log-probabilities of the same parameters as the old ones.
"""

from __future__ import annotations

from tianji.algorithms.a3c.config import A3CConfig
from tianji.algorithms.accelerators.actor_critic import build_ppo
from tianji.algorithms.actor_critic.experience import Experience
from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.algorithms.actor_critic.preprocessor import Preprocessor
from tianji.algorithms.gathered import GradientSum
from tianji.algorithms.ppo.batch import Columns, EvaluatedBatch
from tianji.algorithms.ppo.loss import LossTerms
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.models.tensors import flatten
from tianji.types import Batch, Unroll

ANY_CLIP = 0.5
"""Ratios are 1, which no clip above 0 changes."""


class ActorCriticEstimator(GradientSum):
    """See algorithms/interface.py."""

    def __init__(self, model: ActorCritic, spaces: Spaces, config: RunConfig) -> None:
        assert isinstance(config.algorithm, A3CConfig)
        super().__init__(flatten(model))
        self._config = config.algorithm
        self._preprocessor = Preprocessor(model, spaces, config)
        self._evaluator, self._gradient = build_ppo(model)

    def differentiate(self, unroll: Unroll, num_rows: int) -> None:
        experience = self._preprocessor.process(Batch(unroll, (), num_items=1, num_steps=0))
        if not experience.valid_TN.any():  # every environment failed
            self.flat.gradient_P.zero_()
            return
        batch, config = self._evaluate(experience), self._config
        terms = LossTerms(ANY_CLIP, None, config.value_loss, config.entropy, batch.num_rows)
        self._gradient.gradient(self._gradient.prepare(batch, terms), terms)

    def _evaluate(self, experience: Experience) -> EvaluatedBatch[Columns]:
        """Evaluate all rows once, and estimate the advantages of the valid steps."""
        config, evaluator, order = self._config, self._evaluator, experience.row_order()
        inputs = evaluator.inputs(experience.obs_rows(order))
        action_KB = evaluator.actions(experience.action_rows())
        found = evaluator.evaluate(inputs, action_KB)
        final_value_C = experience.final_value(evaluator)
        advantage_B = experience.gae(
            order, found.value_R, final_value_C, config.gamma, config.gae_lambda
        )
        value_B = found.value_R[: order.num_valid]
        columns = Columns(found.log_prob_B, advantage_B, value_B + advantage_B, value_B)
        valid_inputs = {name: x[: order.num_valid] for name, x in inputs.items()}
        return EvaluatedBatch(valid_inputs, action_KB, columns)
