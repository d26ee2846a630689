"""A profile made up for tests."""

from tianji.costs.profile import ActorCost, Cost, LearnerCost, Profile


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
