import numpy as np
import pytest
from gymnasium import spaces

from tests.fakes.experience import ACTIONS, VECTOR
from tianji.algorithms.registry import load_algorithm
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.errors import UsageError

DISCRETE = ACTIONS["discrete"]


def check(name, action=DISCRETE, observation=VECTOR, settings=None, **config):
    run = RunConfig(algorithm={"name": name, **(settings or {})}, **config)
    load_algorithm(name).check(Spaces(observation, action), run)


@pytest.mark.parametrize("name", ["ppo", "impala", "dqn", "a3c", "gorila"])
def test_defaults_work_for_cartpole(name):
    check(name)


@pytest.mark.parametrize("name", ["dqn", "gorila"])
@pytest.mark.parametrize("action", ["box", "multidiscrete", "multibinary"])
def test_q_values_need_one_choice(name, action):
    with pytest.raises(UsageError, match=r"needs a Discrete action space.*impala, a3c or sac"):
        check(name, ACTIONS[action])


@pytest.mark.parametrize("name", ["a3c", "gorila"])
@pytest.mark.parametrize("what", ["observations", "rewards"])
def test_a_learner_that_sees_no_steps_cannot_normalise(name, what):
    with pytest.raises(UsageError, match=rf"normalize.{what} .*{name} the learner sees gradients"):
        check(name, normalize={what: True})


def test_gorila_refuses_a_memory_that_never_fills():
    with pytest.raises(UsageError, match=r"warmup_steps 500 .* replay_size 400"):
        check("gorila", settings={"warmup_steps": 500, "replay_size": 400})


@pytest.mark.parametrize("action", ["discrete", "multidiscrete", "multibinary"])
def test_sac_needs_numbers(action):
    with pytest.raises(UsageError, match=r"SAC needs a Box action space.*Use dqn .* or ppo"):
        check("sac", ACTIONS[action])


def test_sac_needs_numbers_with_bounds():
    check("sac", ACTIONS["box"])
    with pytest.raises(UsageError, match=r"has no bounds.*RescaleAction.*or use ppo or impala"):
        check("sac", spaces.Box(-np.inf, np.inf, (2,), np.float32))
    with pytest.raises(UsageError, match="Box of floats"):
        check("sac", spaces.Box(0, 9, (2,), np.int64))


@pytest.mark.parametrize("name", ["ppo", "impala"])
def test_actions_without_a_distribution_are_refused(name):
    with pytest.raises(UsageError, match=r"Action space .*is not supported.*ActionWrapper"):
        check(name, spaces.Tuple([DISCRETE, DISCRETE]))
    with pytest.raises(UsageError, match="Box of floats"):
        check(name, spaces.Box(0, 9, (2,), np.int64))


@pytest.mark.parametrize("name", ["ppo", "impala", "dqn"])
def test_observations_without_a_shape_are_refused(name):
    with pytest.raises(UsageError, match="Observation space"):
        check(name, observation=spaces.Text(5))


def test_a_minibatch_larger_than_the_batch_is_the_batch():
    check("ppo", settings={"minibatch_size": 512})


def test_impala_cannot_cut_more_parts_than_environments():
    with pytest.raises(UsageError, match=r"minibatches 9 is more than num_envs 8"):
        check("impala", settings={"minibatches": 9})


@pytest.mark.parametrize(
    ("settings", "config", "message"),
    [
        ({"warmup_steps": 500, "replay_size": 400}, {}, "warmup_steps 500 .* replay_size 400"),
        ({"replay_size": 31, "warmup_steps": 1}, {}, r"num_envs 8 \* unroll_length 4 = 32"),
        ({}, {"normalize": {"rewards": True}}, "normalize.rewards"),
        ({"dueling": True}, {"model": {"factory": "a:b"}}, "dueling .* 'a:b'"),
    ],
)
def test_dqn_refuses_settings_that_contradict_each_other(settings, config, message):
    with pytest.raises(UsageError, match=message):
        check("dqn", settings=settings, **config)


@pytest.mark.parametrize("name", ["ppo", "impala", "dqn"])
def test_users_networks_normalise_for_themselves(name):
    with pytest.raises(UsageError, match=r"normalize.observations .* 'a:b'"):
        check(name, model={"factory": "a:b"}, normalize={"observations": True})


@pytest.mark.parametrize(
    ("settings", "config", "message"),
    [
        ({"warmup_steps": 500, "replay_size": 400}, {}, "warmup_steps 500 .* replay_size 400"),
        ({"replay_size": 31, "warmup_steps": 1}, {}, r"num_envs 8 \* unroll_length 4 = 32"),
        ({}, {"normalize": {"rewards": True}}, "normalize.rewards .* SAC learns from single"),
        ({}, {"model": {"hidden": ()}}, "model.hidden has no layers"),
    ],
)
def test_sac_refuses_settings_that_contradict_each_other(settings, config, message):
    with pytest.raises(UsageError, match=message):
        check("sac", ACTIONS["box"], settings=settings, **config)


def test_learners_of_sac_do_not_add_up_their_gradients():
    from tianji.planning.groups import check_groups

    run = RunConfig(algorithm="sac", num_groups=2, combine="gradients")
    with pytest.raises(UsageError, match="learners of sac cannot add up") as error:
        check_groups(run)
    assert "--combine" not in str(error.value), "its groups cannot mix either"


@pytest.mark.parametrize("num_envs", [8, 16])
def test_sac_makes_one_update_for_every_step_of_every_environment(num_envs):
    run = RunConfig(algorithm={"name": "sac", "batch_size": 64}, num_envs=num_envs)
    cadence = load_algorithm("sac").cadence(run)
    assert (cadence.ratio, cadence.num_updates) == (64.0, cadence.steps_per_version)
    fewer = RunConfig(algorithm={"name": "sac", "updates_per_version": 8}, num_envs=num_envs)
    assert load_algorithm("sac").cadence(fewer).num_updates == 8


def test_dqn_looks_as_far_ahead_as_its_returns():
    run = RunConfig(algorithm={"name": "dqn", "n_step": 3, "unroll_length": 4}, num_envs=16)
    cadence = load_algorithm("dqn").cadence(run)
    assert (cadence.lookahead, cadence.steps_per_version, cadence.ratio) == (3, 64, 16.0)
    assert cadence.capacity_steps == run.algorithm.replay_size
