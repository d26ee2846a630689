"""How REINFORCE acts: as PPO and IMPALA do, so nothing is new here.

An algorithm that acts in another way has a class with the methods of
tianji.algorithms.interface.Acting in this file, and a build_acting() that makes one.
"""

from tianji.algorithms.actor_critic.record import build_acting

__all__ = ["build_acting"]
