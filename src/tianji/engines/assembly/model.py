"""Seeds and initial weights, the same in every process of a run."""

from __future__ import annotations

import numpy as np
import torch

from tianji.algorithms.registry import load_algorithm
from tianji.engines.spec import RunSpec

_SEED_SPACE = {"model": 0, "actor": 1, "store": 2, "evaluator": 4}


def seed_for(root: int, kind: str, index: int = 0) -> int:
    """Derive a seed from the root seed; there is no other way."""
    sequence = np.random.SeedSequence(root, spawn_key=(_SEED_SPACE[kind], index))
    return int(sequence.generate_state(1, np.uint64)[0] >> 1)


def build_model(spec: RunSpec) -> torch.nn.Module:
    """Build the model with the same initial weights in every process, whatever its threads: an
    orthogonal matrix from two threads differs in its last bits from that of one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(seed_for(spec.config.seed, "model"))
    model = load_algorithm(spec.config.algorithm.name).build_model(spec.spaces, spec.config)
    torch.set_num_threads(threads)
    return model
