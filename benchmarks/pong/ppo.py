"""PPO with the Nature-CNN as an expert writes it by hand in torch: plain, eager, on one device.

On a GPU the frames are copied to it once, as bytes, and stay there as the rollout; networks run in
bf16 by autocast and Adam is fused. On a CPU everything is float32.

T: steps of a rollout, N: environments, B: rows of a minibatch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

FRAMES = (4, 84, 84)


@dataclass(frozen=True)
class Settings:
    """Numbers of the serial loop that reached 18 in Pong after 2.45 M steps."""

    num_envs: int = 64
    num_steps: int = 64
    epochs: int = 4
    minibatch: int = 1024
    learning_rate: float = 5e-4
    clip: float = 0.1
    entropy: float = 0.01
    gamma: float = 0.99
    gae_lambda: float = 0.95
    value_loss: float = 0.5
    max_grad_norm: float = 0.5

    @property
    def batch(self) -> int:
        return self.num_envs * self.num_steps


class NatureNet(nn.Module):
    """The network of Mnih et al. 2015 with a head for the policy and one for the value."""

    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self.torso = nn.Sequential(
            _orthogonal(nn.Conv2d(4, 32, 8, stride=4), math.sqrt(2.0)),
            nn.ReLU(),
            _orthogonal(nn.Conv2d(32, 64, 4, stride=2), math.sqrt(2.0)),
            nn.ReLU(),
            _orthogonal(nn.Conv2d(64, 64, 3, stride=1), math.sqrt(2.0)),
            nn.ReLU(),
            nn.Flatten(),
            _orthogonal(nn.Linear(64 * 7 * 7, 512), math.sqrt(2.0)),
            nn.ReLU(),
        )
        self.policy = _orthogonal(nn.Linear(512, num_actions), 0.01)
        self.value = _orthogonal(nn.Linear(512, 1), 1.0)

    def forward(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits and the values of stacks of frames in bytes."""
        features = self.torso(frames.float() / 255.0)
        return self.policy(features), self.value(features).squeeze(-1)


def _orthogonal(layer: nn.Conv2d | nn.Linear, gain: float) -> nn.Module:
    nn.init.orthogonal_(layer.weight, gain)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer


def advantages(
    reward: NDArray[np.float32],
    ended: NDArray[np.bool_],
    value: NDArray[np.float32],
    gamma: float,
    gae_lambda: float,
) -> NDArray[np.float32]:
    """Generalised advantage estimates [T, N]; `value` has one row more than `reward`."""
    result = np.empty_like(reward)
    running = np.zeros_like(reward[0])
    discount = gamma * (1.0 - ended.astype(np.float32))
    delta = reward + discount * value[1:] - value[:-1]
    for t in reversed(range(len(reward))):
        running = delta[t] + discount[t] * gae_lambda * running
        result[t] = running
    return result


class PPO:
    """Network, optimiser and one rollout of T steps of N environments."""

    def __init__(self, settings: Settings, num_actions: int, device: torch.device) -> None:
        self.settings, self.device = settings, device
        self.net = NatureNet(num_actions).to(device)
        self.optimiser = torch.optim.Adam(
            self.net.parameters(),
            lr=settings.learning_rate,
            eps=1e-5,
            fused=True if device.type == "cuda" else None,
        )
        shape = (settings.num_steps, settings.num_envs)
        self._frames = torch.zeros(*shape, *FRAMES, dtype=torch.uint8, device=device)
        self._action = torch.zeros(shape, dtype=torch.int64, device=device)
        self._log_prob = torch.zeros(shape, device=device)
        self._value = torch.zeros(shape, device=device)
        self._reward = np.zeros(shape, np.float32)
        self._ended = np.zeros(shape, np.bool_)

    def _forward(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        is_gpu = self.device.type == "cuda"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=is_gpu):
            logits, value = self.net(frames)
        return logits.float(), value.float()

    @torch.no_grad()
    def act(self, t: int, frames: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Store the frames as step t and return an action for every environment."""
        self._frames[t].copy_(torch.from_numpy(frames))
        logits, self._value[t] = self._forward(self._frames[t])
        log_probs = F.log_softmax(logits, dim=-1)
        noise = torch.empty_like(log_probs).exponential_()
        action = (log_probs - noise.log()).argmax(dim=-1)
        self._action[t] = action
        self._log_prob[t] = log_probs.gather(1, action[:, None]).squeeze(1)
        return action.cpu().numpy()

    def observe(self, t: int, reward: NDArray[np.int32], ended: NDArray[np.bool_]) -> None:
        """Store what the actions of step t led to; rewards are clipped to their sign."""
        np.sign(reward, out=self._reward[t], casting="unsafe")
        self._ended[t] = ended

    def update(self, next_frames: NDArray[np.uint8]) -> None:
        """Train on the rollout; `next_frames` are the observations after its last step."""
        advantage, target = self._estimate(next_frames)
        rows = [
            x.flatten(0, 1) for x in (self._frames, self._action, self._log_prob, advantage, target)
        ]
        for _ in range(self.settings.epochs):
            order = torch.randperm(self.settings.batch, device=self.device)
            for chosen in order.split(self.settings.minibatch):
                self.update_minibatch(*(values[chosen] for values in rows))

    @torch.no_grad()
    def _estimate(self, next_frames: NDArray[np.uint8]) -> tuple[Tensor, Tensor]:
        _, next_value = self._forward(torch.from_numpy(next_frames).to(self.device))
        value = torch.cat([self._value, next_value[None]]).cpu().numpy()
        settings = self.settings
        advantage = advantages(
            self._reward, self._ended, value, settings.gamma, settings.gae_lambda
        )
        both = torch.from_numpy(np.stack([advantage, advantage + value[:-1]])).to(self.device)
        return both[0], both[1]

    def update_minibatch(
        self,
        frames_B: Tensor,
        action_B: Tensor,
        log_prob_B: Tensor,
        advantage_B: Tensor,
        target_B: Tensor,
    ) -> None:
        """Make one optimiser step. Nothing here waits for a GPU."""
        settings = self.settings
        logits_BA, value_B = self._forward(frames_B)
        log_probs_BA = F.log_softmax(logits_BA, dim=-1)
        ratio_B = (log_probs_BA.gather(1, action_B[:, None]).squeeze(1) - log_prob_B).exp()
        advantage_B = (advantage_B - advantage_B.mean()) / (advantage_B.std() + 1e-8)
        clipped_B = ratio_B.clamp(1.0 - settings.clip, 1.0 + settings.clip)
        gain = torch.min(ratio_B * advantage_B, clipped_B * advantage_B).mean()
        entropy = -(log_probs_BA.exp() * log_probs_BA).sum(dim=-1).mean()
        value_loss = F.mse_loss(value_B, target_B)
        loss = settings.value_loss * value_loss - gain - settings.entropy * entropy
        self.optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), settings.max_grad_norm)
        self.optimiser.step()
