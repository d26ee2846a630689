"""What every peer's script takes and prints: one turn of training on the CPU, one line of JSON.

The line holds `marks`, pairs of training seconds and agent steps at the end of every iteration
(collection and update), so that the rate leaves out the start and an unfinished iteration. This
file runs in the peers' virtual environments: it imports the standard library only.
"""

from __future__ import annotations

import argparse
import json
import time
from importlib import metadata

PROCESS_STARTED = time.monotonic()


class Turn:
    """Arguments, clock and marks of one peer."""

    def __init__(self, **variants: list[str]) -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--seconds", type=float, default=60.0, help="training time")
        parser.add_argument("--threads", type=int, default=2, help="torch threads")
        parser.add_argument("--num-envs", type=int, default=8)
        parser.add_argument("--num-steps", type=int, default=128, help="steps of a rollout")
        parser.add_argument("--epochs", type=int, default=4)
        parser.add_argument("--minibatch", type=int, default=256)
        for name, choices in variants.items():
            parser.add_argument(f"--{name}", choices=choices, default=choices[0])
        self.args = parser.parse_args()
        self.marks: list[tuple[float, int]] = []
        self._started = time.monotonic()

    def start(self) -> None:
        """Start the clock: everything is built."""
        self._started = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._started

    @property
    def is_over(self) -> bool:
        return self.elapsed_s >= self.args.seconds

    def mark(self, env_steps: int) -> None:
        """Note the agent steps at the end of an iteration."""
        self.marks.append((self.elapsed_s, int(env_steps)))

    def print_answer(self, source: str, *packages: str) -> None:
        """Print the line; `source` says where the numbers of this peer come from."""
        answer = {
            "start_up_s": self._started - PROCESS_STARTED,
            "marks": self.marks,
            "settings": {"source": source, **vars(self.args)},
            "versions": {name: metadata.version(name) for name in ("torch", *packages)},
        }
        print(json.dumps(answer), flush=True)
