"""The algorithms that gather gradients: their records, checks and steps."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.fakes.experience import ACTIONS, GATHERED, VECTOR, Rig
from tianji.algorithms.interface import Gather, OwnReplay
from tianji.algorithms.registry import load_algorithm
from tianji.config.run import RunConfig
from tianji.config.schema import load_algorithm_config
from tianji.config.settings import list_settings
from tianji.envs.interface import Spaces
from tianji.errors import TrainingDiverged, UsageError
from tianji.models.tensors import flatten
from tianji.types import Batch

every_algorithm = pytest.mark.parametrize("name", GATHERED)
DISCRETE = ACTIONS["discrete"]


def asked(name, settings=None, **config):
    given = {"num_envs": 6, "num_actors": 3, **config}
    return RunConfig(algorithm={"name": name, **(settings or {})}, **given)


def check(name, settings=None, action=DISCRETE, **config):
    load_algorithm(name).check(Spaces(VECTOR, action), asked(name, settings, **config))


def batch_of(vector, weight=1.0):
    arrays = {"sum": np.asarray(vector, np.float32), "weight": np.array([weight])}
    return Batch(arrays, (), 1, 10)


# ------------------------------------------------------------------------------------- records


@pytest.mark.parametrize(
    ("name", "settings", "gather", "gradients"),
    [
        ("rennala-nigt", {"m": 5}, Gather("first", 5, 5), 5),
        ("rennala-nigt", {"m": 5, "m_init": 9}, Gather("first", 5, 9), 5),
        ("rennala-pg", {"m": 2}, Gather("first", 2, 2), 2),
        ("malenia-nigt", {"m": 7, "absent_after_s": 3}, Gather("harmonic", 7, 7, "server", 3), 7),
        ("sync-nigt", {"realisation": "all-reduce"}, Gather("barrier", 1, 1, "all-reduce"), 3),
        ("afedpg", {}, Gather("every", note="AFedPG in our reconstruction"), 1),
        ("a3c", {}, Gather("every", fresh=False, max_lag=100), 1),
        (
            "gorila",
            {"n_step": 3, "batch_size": 8},
            Gather(
                "every",
                fresh=False,
                max_lag=100,
                memory=OwnReplay(capacity_steps=100_000, warmup_steps=1000, batch_size=8, n_step=3),
            ),
            1,
        ),
    ],
)
def test_every_algorithm_has_its_rule(name, settings, gather, gradients):
    config = asked(name, {"unroll_length": 10, **settings})
    cadence = load_algorithm(name).cadence(config)
    steps = gradients * 10 * 2
    assert cadence == replace(gather, unroll_length=10, steps_per_version=steps)


@every_algorithm
def test_the_cadence_is_known_before_the_number_of_actors(name):
    cadence = load_algorithm(name).cadence(RunConfig(algorithm=name, num_envs=6))
    assert cadence.steps_per_version % cadence.unroll_length == 0


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("rennala-nigt", {"absent_after_s"}),
        ("rennala-pg", {"eta", "absent_after_s"}),
        ("malenia-nigt", set()),
        ("sync-nigt", {"m", "m_init"}),
        ("afedpg", {"m", "m_init", "realisation", "absent_after_s"}),
    ],
)
def test_settings_that_mean_nothing_for_an_algorithm_are_not_offered(name, missing):
    offered = {s.last_part for s in list_settings(load_algorithm_config(name))}
    every = {"eta", "m", "m_init", "realisation", "absent_after_s", "schedule", "estimate"}
    assert every - offered == missing
    assert "max_grad_norm" not in offered


def test_afedpg_says_that_it_is_a_reconstruction():
    assert "our reconstruction" in (load_algorithm_config("afedpg").__doc__ or "")


@every_algorithm
def test_defaults_work_for_cartpole_and_for_bounded_boxes(name):
    check(name)
    check(name, action=ACTIONS["box"])


@every_algorithm
@pytest.mark.parametrize("what", ["observations", "rewards"])
def test_a_learner_that_sees_no_steps_cannot_normalise(name, what):
    with pytest.raises(UsageError, match=rf"normalize.{what} .*{name}.*wrap the environment"):
        check(name, normalize={what: True})


def test_actions_without_bounds_cannot_be_squashed():
    with pytest.raises(UsageError, match=r"no bounds.*RescaleAction.*ppo or impala"):
        check("rennala-nigt", action=spaces.Box(-1.0, np.inf, (2,)))


def test_peers_need_two_environments_of_an_actor():
    check("rennala-nigt", {"baseline": "peers"})
    with pytest.raises(
        UsageError, match=r"two or more .*num_envs is 3 with num_actors 3"
    ) as raised:
        check("rennala-nigt", {"baseline": "peers"}, num_envs=3)
    assert "lower num_actors to at most 1, or" in str(raised.value)


@pytest.mark.parametrize(
    ("num_observed", "num_actions", "size"),
    [(376, 17, 30_498), (377, 17, 30_562), (17, 6, 6_092), (11, 3, 5_318), (11, 2, 5_188)],
    ids=["Humanoid-v4", "Humanoid-v4 with a type bit", "Walker2d-v4", "Hopper-v4", "Reacher-v4"],
)
def test_networks_are_as_large_as_the_papers(num_observed, num_actions, size):
    observation = spaces.Box(-np.inf, np.inf, (num_observed,), np.float64)
    task = Spaces(observation, spaces.Box(-1.0, 1.0, (num_actions,)))
    model = load_algorithm("rennala-nigt").build_model(task, asked("rennala-nigt"))
    assert len(flatten(model).vector_P) == len(model.ahead) == size


# ------------------------------------------------------------------------------------ estimates


def ends(terminated_rows, truncated_rows=()):
    unroll = {name: np.zeros((6, 2), np.bool_) for name in ("terminated", "truncated")}
    for t, n in terminated_rows:
        unroll["terminated"][t, n] = True
    for t, n in truncated_rows:
        unroll["truncated"][t, n] = True
    return unroll | {"valid": np.ones((6, 2), np.bool_)}


def rows_until_complete(estimate, unroll):
    rig = Rig("rennala-nigt", settings={"estimate": estimate})
    estimator = rig.algorithm.build_estimator(rig.model, rig.spaces, rig.config)
    given = []
    for _ in range(2):  # the second gradient must not remember the first
        rows = [t for t in range(6) if estimator.is_complete(unroll, t)]
        given.append(rows[0] + 1 if rows else None)
    assert given[0] == given[1]
    return given[0]


def test_by_default_all_gradients_take_equally_many_steps():
    assert rows_until_complete("steps", ends([(0, 0), (0, 1)])) is None


def test_episodes_are_complete_when_every_environment_has_ended_one():
    assert rows_until_complete("episodes", ends([(1, 0)], [(3, 1)])) == 4
    assert rows_until_complete("episodes", ends([(1, 0), (3, 0)])) is None
    assert rows_until_complete("episodes", ends([(0, 0), (0, 1)])) == 1


def test_an_environment_that_failed_is_not_waited_for():
    unroll = ends([(3, 1)])
    unroll["valid"][2, 0] = False
    assert rows_until_complete("episodes", unroll) == 4


def test_a_gradient_of_which_every_first_step_failed_is_zero():
    rig = Rig("rennala-nigt")
    estimator = rig.algorithm.build_estimator(rig.model, rig.spaces, rig.config)
    unroll = {**ends([]), "valid": np.zeros((6, 2), np.bool_)}
    estimator.begin(version=0)
    estimator.add(unroll, 6)
    assert estimator.count == 1
    assert not estimator.sum_P.any()


# ---------------------------------------------------------------------------------------- steps


@pytest.mark.parametrize("name", ["rennala-nigt", "malenia-nigt", "sync-nigt"])
def test_a_step_is_normalised_and_goes_along_the_momentum(name):
    rig = Rig(name, settings={"learning_rate": 0.5, "eta": 0.25})
    theta = rig.parameters()
    size = len(theta)
    first, second = torch.randn(2, size, generator=torch.manual_seed(1)).numpy()
    metrics = rig.train(batch_of(4.0 * first, weight=4.0))
    moved = rig.parameters()
    torch.testing.assert_close(moved, theta + 0.5 * torch.from_numpy(first / norm(first)))
    torch.testing.assert_close(rig.model.ahead, moved + 3.0 * (moved - theta))
    assert metrics["grad_norm"] == pytest.approx(norm(first), rel=1e-5)
    assert (metrics["learning_rate"], metrics["gradients"]) == (0.5, 1.0)
    metrics = rig.train(batch_of(second))
    momentum = 0.75 * first + 0.25 * second
    expected = moved + 0.5 * torch.from_numpy(momentum / norm(momentum))
    torch.testing.assert_close(rig.parameters(), expected)
    assert metrics["direction_norm"] == pytest.approx(norm(momentum), rel=1e-5)


def test_afedpgs_learner_goes_along_what_arrives():
    rig = Rig("afedpg", settings={"learning_rate": 0.5, "eta": 0.25})
    for seed in (1, 2):
        before = rig.parameters()
        direction = torch.randn(len(before), generator=torch.manual_seed(seed)).numpy()
        rig.train(batch_of(direction))
        expected = before + 0.5 * torch.from_numpy(direction / norm(direction))
        torch.testing.assert_close(rig.parameters(), expected)
        np.testing.assert_array_equal(rig.model.direction, direction)


def test_rennala_pg_takes_the_plain_gradient_and_looks_nowhere_ahead():
    rig = Rig("rennala-pg", settings={"learning_rate": 0.5})
    before = rig.parameters()
    gradient = torch.randn(len(before), generator=torch.manual_seed(1))
    rig.train(batch_of(2.0 * gradient.numpy(), weight=2.0))
    torch.testing.assert_close(rig.parameters(), before + 0.5 * gradient)
    assert torch.equal(rig.model.ahead, rig.parameters())


def test_decaying_steps_get_shorter():
    rig = Rig("rennala-nigt", settings={"learning_rate": 0.3, "schedule": "decaying"})
    rates = [rig.train(rig.batch(seed))["learning_rate"] for seed in (1, 2)]
    assert rates == pytest.approx([0.3 * 2 / 3, 0.3 * 2 / 4])


@every_algorithm
def test_a_gradient_that_is_not_finite_stops_training(name):
    rig = Rig(name)
    before = rig.parameters()
    with pytest.raises(TrainingDiverged, match=r"nan at update 1\..*lower learning rate"):
        rig.train(batch_of(np.full(len(before), np.nan)))
    assert torch.equal(rig.parameters(), before)


def norm(vector):
    return float(np.linalg.norm(vector))
