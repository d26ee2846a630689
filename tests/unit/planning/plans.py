"""Plans for made-up machines and an environment that nobody has to make."""

from tests.fakes.scripted import SPACES
from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.envs.build import Probe
from tianji.planning.resolve.resolve import resolve

SCRIPTED = {"name": "tests.fakes.scripted:ALGORITHM", "unroll_length": 4}
REPLAY = {
    **SCRIPTED, "store": "replay", "lookahead": 3, "warmup_steps": 33, "capacity_steps": 100,
    "steps_per_version": 16, "ratio": 8.0, "num_updates": 4,
}  # fmt: skip
GIB = 1 << 30


def config(algorithm=SCRIPTED, **values):
    return RunConfig(**{"num_envs": 8, "algorithm": algorithm, **values})


def plan_for(asked, cores=4, memory_bytes=64 * GIB, keeps_final=False):
    """cores: how many, or which."""
    probe = Probe(SPACES, keeps_final, "in words", offers_state=False, max_episode_steps=None)
    cores = tuple(range(cores)) if isinstance(cores, int) else cores
    return resolve(asked, Machine(cores, memory_bytes), probe)
