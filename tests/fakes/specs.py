"""Whole specs for tests of engines, with the scripted algorithm over a Counting world."""

from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.engines.spec import RunSpec
from tianji.envs.build import probe
from tianji.planning.resolve.resolve import resolve

MACHINE = Machine((0, 1), 64 << 30)


def make_spec(run_dir, env="tianji.envs.worlds:Counting", **values):
    """One actor with two environments and unrolls of 4 steps, without any display."""
    settings = {
        "env": "tianji.envs.worlds:Counting",
        "algorithm": "tests.fakes.scripted:ALGORITHM",
        "engine": "inline",
        "num_envs": 2,
        "num_actors": 1,
        "max_lag": 0,
        "observe": {"display": "off", "tensorboard": False, "period_s": 1e-9},
        **values,
    }
    config = RunConfig(**settings)
    run_dir.mkdir(exist_ok=True)
    found = probe(env, {})
    return RunSpec(config, resolve(config, MACHINE, found), found.spaces, env, run_dir)
