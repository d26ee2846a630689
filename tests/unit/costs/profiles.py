"""Profiles and demands made up of round numbers."""

from tianji.config.machine import Machine
from tianji.costs.profile import ActorCost, Cost, LearnerCost, Profile
from tianji.planning.solve.demand import Demand, SharedBytes

MIB = 1 << 20


def cost(alone_s, strain=1.0, cpu_s=None, noise=0.01):
    return Cost(
        alone_s=alone_s,
        loaded_s=alone_s * strain,
        cpu_s=alone_s if cpu_s is None else cpu_s,
        noise=noise,
    )


def actor(num_envs, unroll, threads=1, memory_bytes=200 * MIB):
    unroll = unroll if isinstance(unroll, Cost) else cost(unroll)
    return ActorCost(
        num_envs=num_envs,
        threads=threads,
        unroll=unroll,
        environment_share=0.6,
        unevenness=1.5,
        memory_bytes=memory_bytes,
    )


def learner(threads, version, receive_s=0.0, memory_bytes=300 * MIB):
    version = version if isinstance(version, Cost) else cost(version)
    return LearnerCost(
        threads=threads,
        version=version,
        update_s=version.alone_s / 10,
        receive_s=receive_s,
        publish_s=0.0,
        memory_bytes=memory_bytes,
    )


def profile(step_s=0.001, version=0.01, num_envs=8, **values):
    """Unrolls of one step, whose duration is proportional to the environments; one thread."""
    counts = [n for n in range(1, num_envs + 1) if num_envs % n == 0]
    return Profile(
        **{
            "steps_per_version": num_envs,
            "actors": tuple(actor(count, count * step_s) for count in counts),
            "learners": (learner(1, version),),
            "send_s": 0.0,
            "policy_bytes": MIB,
            "unroll_bytes": MIB,
            **values,
        }
    )


def demand(num_envs=8, **values):
    counts = [n for n in range(1, num_envs + 1) if num_envs % n == 0]
    return Demand(
        **{
            "num_envs": num_envs,
            "unroll_length": 1,
            "steps_per_version": num_envs,
            "trained_steps_per_version": 3 * num_envs,
            "ratio": 1.0,
            "staleness": 1.0,
            "lag_target": 1,
            "max_lag": 1,
            "shared": {n: SharedBytes(n * MIB, 10 * MIB, MIB) for n in counts},
            "policy_copies": 4,
            **values,
        }
    )


def machine(num_cores, memory_bytes=1 << 40):
    return Machine(tuple(range(num_cores)), memory_bytes)
