"""Acting and networks are those of TianJi's other actor-critic algorithms: nothing is new here.

An algorithm with another way of acting writes a class with the methods of
tianji.algorithms.interface.Acting in this file.
"""

from tianji.algorithms.actor_critic.model import ActorCritic, build_model, export
from tianji.algorithms.actor_critic.policy import build_acting

__all__ = ["ActorCritic", "build_acting", "build_model", "export"]
