"""From a profile to scenarios of any size."""

import pytest

from tianji.config.run import RunConfig
from tianji.costs.profile import ActorCost, Cost, LearnerCost, Profile
from tianji.virtual.sizes import Size, enough_cores, scales, scenario_of, simulate_size

PPO = RunConfig(algorithm={"name": "ppo", "unroll_length": 10, "epochs": 3}, num_envs=8)
DQN = RunConfig(
    algorithm={"name": "dqn", "unroll_length": 10, "batch_size": 40, "updates_per_version": 4},
    num_envs=8,
)


def cost(seconds, loaded=1.0):
    return Cost(alone_s=seconds, loaded_s=loaded * seconds, cpu_s=seconds, noise=0.0)


def actor(num_envs, unroll_s):
    return ActorCost(
        num_envs=num_envs, threads=1, unroll=cost(unroll_s), environment_share=0.5,
        unevenness=1.0, memory_bytes=0,
    )  # fmt: skip


def profile(version_s=0.04, receive_s=0.001, update_s=0.009):
    learner = LearnerCost(
        threads=1, version=cost(version_s), update_s=update_s, receive_s=receive_s,
        publish_s=0.001, memory_bytes=0,
    )  # fmt: skip
    return Profile(
        steps_per_version=80, actors=(actor(4, 0.02), actor(8, 0.03)), learners=(learner,),
        send_s=0.0, policy_bytes=1000, unroll_bytes=8000,
    )  # fmt: skip


def size(**values):
    return Size(**{"actors_per_node": 2, "envs_per_actor": 4, "cores_per_node": 16, **values})


def test_at_home_a_version_costs_what_was_measured():
    learner = scenario_of(PPO, profile(), size()).learner
    total = 2 * learner.receive_s + learner.num_updates * learner.update_s + learner.publish_s
    assert total == pytest.approx(0.04)
    assert learner.num_updates == 4


@pytest.mark.parametrize("config", [PPO, DQN], ids=["ppo", "dqn"])
def test_with_more_actors_a_version_grows_and_the_ratio_stays(config):
    home, large = (scenario_of(config, profile(), size(actors_per_node=n)) for n in (2, 6))
    assert large.point.unrolls_per_version == 3 * home.point.unrolls_per_version
    assert large.trained_steps_per_version == 3 * home.trained_steps_per_version
    assert large.learner.num_updates == 3 * home.learner.num_updates


def test_a_smaller_size_costs_less_even_where_it_has_but_one_update():
    learner = scenario_of(PPO, profile(update_s=0.1), size(actors_per_node=1)).learner
    assert learner.num_updates == 1
    assert learner.update_s == pytest.approx((0.04 - 0.003) / 2)


def test_many_updates_are_taken_together_and_cost_the_same():
    home, large = (
        scenario_of(PPO, profile(), size(actors_per_node=n, num_groups=2)) for n in (2, 1000)
    )
    assert (large.learner.num_updates, home.updates_per_tick) == (256, 1)
    whole_s = large.learner.num_updates * large.learner.update_s
    assert whole_s == pytest.approx(500 * home.learner.num_updates * home.learner.update_s)
    assert large.updates_per_tick * 256 == 500 * home.learner.num_updates


def test_several_machines_multiply_the_actors():
    scenario = scenario_of(PPO, profile(), size(num_nodes=3))
    assert len(scenario.paces) == 6
    assert scenario.actors_per_node == 2
    assert scenario.machines.unroll_bytes == 4000


def test_without_lag_the_simulation_is_serial():
    serial = PPO.model_copy(update={"max_lag": 0})
    found = simulate_size(serial, profile(), size())
    assert found.lag_versions == 0
    assert found.produced == pytest.approx(80 / (0.02 + 0.04), rel=1e-3)


def test_warm_up_comes_before_the_first_version():
    scenario = scenario_of(DQN, profile(), size())
    assert scenario.point.warmup_unrolls == 1000 // 40


def test_machines_get_a_core_for_every_process():
    assert enough_cores(size(cores_per_node=1)).cores_per_node == 3
    assert enough_cores(size(cores_per_node=1, num_nodes=2)).cores_per_node == 4, "and a gateway"
    assert enough_cores(size()).cores_per_node == 16


def test_scales_double_up_to_the_size_asked_for():
    assert [s.num_nodes for s in scales(size(num_nodes=6))] == [1, 2, 4, 6]
    assert [s.actors_per_node for s in scales(size(actors_per_node=4))] == [1, 2, 4]
