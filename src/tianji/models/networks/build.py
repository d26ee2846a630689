"""The network that a run asks for: the default one for its spaces, or the user's own.

`model.factory = "module:name"` names a function that gets (observation_space, action_space) and
returns an nn.Module. Its forward takes the observations, a tensor [B, ...] for a plain space and a
dictionary of tensors for others, and gives

    policy outputs [B, A] and values [B] or [B, 1]      for actor-critic algorithms
    Q values [B, A]                                     for Q-learning
    policy outputs [B, A]                               for SAC, whose critics are our own, and for
                                                        algorithms that gather gradients

A is the number of choices together, or of numbers in a continuous action; the last ones want two
for each number there, all means and then all spreads. An actor-critic module may have a method
policy(obs) -> [B, A], which actors call so as not to compute values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.envs.spaces import Leaf, observation_leaves
from tianji.errors import TianjiError, UsageError
from tianji.importing import import_users
from tianji.models.networks.encoder import Encoder
from tianji.models.networks.memory import MEMORIES
from tianji.models.networks.precision import Precise, in_precision
from tianji.models.networks.recurrent import RecurrentNet
from tianji.models.networks.stacked import StackedNet
from tianji.models.sizes import hidden_widths, memory_size
from tianji.raised import error_in_words
from tianji.wording import kind_of

PROBE_ROWS = 3


class UserNet(Precise):
    """A user's module with the interface of a StackedNet: named leaves to a tuple [B, A]."""

    def __init__(self, module: nn.Module, leaves: Sequence[Leaf], widths: Sequence[int]) -> None:
        super().__init__()
        self.module = module
        self._keys = [leaf.key for leaf in leaves]
        self._widths = list(widths)

    @in_precision
    def forward(self, obs: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        given = self.module(self._observation(obs))
        outputs = given if isinstance(given, tuple | list) else (given,)
        return tuple(x.reshape(len(x), -1) for x in outputs)

    @in_precision
    def one(self, obs: Mapping[str, Tensor], index: int) -> Tensor:
        """Return one of the outputs; the first by the module's own policy(), if it has one."""
        policy = getattr(self.module, "policy", None)
        if index == 0 and callable(policy):
            output: Tensor = policy(self._observation(obs))
            return output
        return self.forward(obs)[index]

    def _observation(self, obs: Mapping[str, Tensor]) -> Any:
        if self._keys == [""]:
            return obs[""]
        return {key: x for key, x in obs.items() if key in self._keys}

    def probe(self, leaves: Sequence[Leaf], name: str) -> None:
        """Run it once on zeros and refuse outputs that do not have the widths asked for."""
        obs = {
            leaf.key: torch.zeros(PROBE_ROWS, *leaf.shape, dtype=getattr(torch, leaf.dtype))
            for leaf in leaves
        }
        expected = [(PROBE_ROWS, width) for width in self._widths]
        try:
            with torch.no_grad():
                given = self.module(self._observation(obs))
                found = [tuple(x.shape) for x in self.forward(obs)]
                alone = tuple(self.one(obs, 0).shape)
        except Exception as error:  # the user's code may raise anything
            raise UsageError(
                f"The network of model.factory '{name}' fails on {_words(obs)}: "
                + error_in_words(error)
            ) from error
        if found != expected:
            raise UsageError(
                f"The network of model.factory '{name}' gives {_words_of(given)} for "
                f"{PROBE_ROWS} observations; the algorithm needs {expected} (a value may also be "
                f"[{PROBE_ROWS}]). Its forward() must return "
                + ("(policy outputs, value)." if len(expected) > 1 else "one tensor of outputs.")
            )
        if alone != expected[0]:
            raise UsageError(
                f"policy() of the network of model.factory '{name}' gives shape {alone}; the "
                f"algorithm needs {expected[0]}."
            )


def build_user_net(name: str, spaces: Spaces, widths: Sequence[int]) -> UserNet:
    """Import `module:name`, call it, and check what it makes."""
    module_name, colon, attribute = name.partition(":")
    if not colon:
        raise UsageError(f"model.factory is '{name}'; it must be 'module:name' of a function.")
    try:
        factory = getattr(import_users(module_name, to_find="a network"), attribute)
        module = factory(spaces.seen, spaces.action)
    except TianjiError:
        raise
    except Exception as error:  # the user's code may raise anything
        raise UsageError(f"model.factory '{name}': {error_in_words(error)}") from error
    if not isinstance(module, nn.Module):
        raise UsageError(
            f"model.factory '{name}' returned {kind_of(module)}, not a torch.nn.Module."
        )
    leaves = observation_leaves(spaces.seen)
    net = UserNet(module, leaves, widths)
    net.probe(leaves, name)
    return net


def _words(obs: Mapping[str, Tensor]) -> str:
    shapes = [f"{key or 'observations'} {tuple(x.shape)} {x.dtype}" for key, x in obs.items()]
    return ", ".join(shapes)


def _words_of(given: Any) -> str:
    outputs = given if isinstance(given, tuple | list) else (given,)
    return "outputs of shapes " + ", ".join(
        str(tuple(x.shape)) if isinstance(x, Tensor) else type(x).__name__ for x in outputs
    )


def build_net(
    spaces: Spaces, config: RunConfig, widths: Sequence[int], gains: Sequence[float]
) -> StackedNet | UserNet:
    """Build one network for each of the widths, behind one encoder."""
    if config.model.factory is not None:
        return build_user_net(config.model.factory, spaces, widths)
    normalize = config.normalize
    leaves = observation_leaves(spaces.seen)
    encoder = Encoder(leaves, normalize.observations, normalize.bound, config.model.torso)
    hidden, activation = hidden_widths(spaces, config), config.model.activation
    if config.model.memory == "none":
        return StackedNet(encoder, hidden, activation, widths, gains)
    size = memory_size(spaces, config)
    memory = MEMORIES[config.model.memory](encoder.num_features, size)
    return RecurrentNet(encoder, memory, hidden, activation, widths, gains)
