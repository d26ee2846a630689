"""TianJi: fast asynchronous reinforcement-learning training for ordinary Gymnasium environments.

>>> import tianji
>>> summary, policy = tianji.train("cartpole-ppo", target_return=300)
>>> action = policy.act(observation)
"""

from tianji.api import Trained, compare, load, make_config, train
from tianji.errors import TianjiError, UsageError
from tianji.version import VERSION

__version__ = VERSION

__all__ = ["TianjiError", "Trained", "UsageError", "compare", "load", "make_config", "train"]
