"""A profile made up for tests."""

from tianji.costs.profile import ActorCost, Cost, LearnerCost, Profile
from tianji.planning.measure.crew import Sampled


def cost(seconds, noise=0.01):
    return Cost(alone_s=seconds, loaded_s=1.1 * seconds, cpu_s=seconds, noise=noise)


def actor(num_envs=8, noise=0.01):
    return ActorCost(
        num_envs=num_envs, threads=1, unroll=cost(0.002, noise), environment_share=0.5,
        unevenness=2.0, memory_bytes=200 << 20,
    )  # fmt: skip


def learner(noise=0.01):
    return LearnerCost(
        threads=1, version=cost(0.008, noise), update_s=1e-4, receive_s=1e-5, publish_s=1e-5,
        memory_bytes=250 << 20,
    )  # fmt: skip


def profile(envs=(8,)):
    return Profile(
        steps_per_version=256, actors=tuple(map(actor, envs)), learners=(learner(),), send_s=1e-6,
        policy_bytes=4096, unroll_bytes=8192, warnings=("It is slow.",), profiling_s=9.5,
    )  # fmt: skip


def sampled(unroll_s=0.04, cpu_s=0.04, environment_share=0.2, unevenness=1.0, **values):
    unroll = Cost(alone_s=unroll_s, loaded_s=unroll_s, cpu_s=cpu_s, noise=0.0)
    measured = ActorCost(
        num_envs=1, threads=1, unroll=unroll, environment_share=environment_share,
        unevenness=unevenness, memory_bytes=1,
    )  # fmt: skip
    facts = {"step_s": 1e-4, "reset_factor": 1.0, "send_s": 1e-6, "disturbed_share": 0.0}
    return Sampled(cost=measured, **{**facts, **values})
