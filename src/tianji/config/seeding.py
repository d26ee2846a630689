"""Random seeds of the parts of a run, all derived from the seed that the run has."""

from __future__ import annotations

import numpy as np

_SEED_SPACE = {"model": 0, "actor": 1, "store": 2, "learner": 3, "evaluator": 4}


def seed_for(root: int, kind: str, index: int = 0) -> int:
    """Derive a seed from the root seed; there is no other way."""
    sequence = np.random.SeedSequence(root, spawn_key=(_SEED_SPACE[kind], index))
    return int(sequence.generate_state(1, np.uint64)[0] >> 1)
