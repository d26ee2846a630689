"""A trained policy with action masks: acting, values, evaluation and export."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import tianji
from tests.system.runs import QUIET
from tianji.envs.doors import Doors
from tianji.errors import UsageError
from tianji.trained.evaluate import evaluate_run
from tianji.trained.export import export_run

SMALL = {
    "ppo": {"unroll_length": 16, "minibatch_size": 64, "epochs": 2},
    "dqn": {"unroll_length": 4, "warmup_steps": 64, "epsilon_start": 1.0},
}


@pytest.fixture(scope="module", params=[("ppo", "info"), ("dqn", "observation")])
def trained(request, tmp_path_factory):
    """A short run on doors that refuse every illegal key."""
    name, mask = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("runs"))
        found = tianji.train(
            env="tianji.envs.doors:Doors",
            env_kwargs={"mask": mask, "illegal": "refuse"},
            algorithm=name,
            engine="inline",
            max_env_steps=512,
            observe=QUIET,
            **SMALL[name],
        )
        yield found, mask


def given(observation, info, mask):
    return {"action_mask": info["action_mask"]} if mask == "info" else {}


def test_it_acts_is_evaluated_and_exported_without_an_illegal_action(trained, tmp_path):
    (summary, policy), mask = trained
    env = Doors(mask=mask, illegal="refuse")
    observation, info = env.reset(seed=3)
    for step in range(40):
        is_greedy = step % 2 == 0
        action = policy.act(observation, deterministic=is_greedy, **given(observation, info, mask))
        observation, _, terminated, _, info = env.step(action)
        if terminated:
            observation, info = env.reset()
    for stochastic in (False, True):
        report = evaluate_run(Path(summary["run_dir"]), 4, seed=0, stochastic=stochastic)
        assert report["episodes"] == 4
    exported = export_run(Path(summary["run_dir"]))
    names = ["obs" if mask == "info" else "obs.door", "obs.action_mask"]
    assert list(exported["inputs"]) == names
    session = onnxruntime.InferenceSession(exported["output"])
    table = np.zeros((3, 50), np.int8)
    table[[0, 1, 2], [7, 8, 9]] = 1
    inputs = {names[0]: np.zeros((3, 9), np.float32), names[1]: table}
    assert session.run(["action"], inputs)[0].tolist() == [7, 8, 9]


def test_a_batch_of_observations_takes_a_batch_of_masks(trained):
    (_, policy), mask = trained
    table = np.eye(50, dtype=np.int8)[[4, 11]]
    seen = np.zeros((2, 9), np.float32)
    if mask == "info":
        assert policy.act(seen, action_mask=table.astype(bool)).tolist() == [4, 11]
        assert policy.value(seen, action_mask=table).shape == (2,)
    else:
        obs = {"door": seen, "action_mask": table}
        assert policy.act(obs).tolist() == [4, 11]
        assert policy.act(obs, action_mask=table[::-1]).tolist() == [11, 4]


def test_a_mask_that_is_missing_or_of_another_size_is_refused(trained):
    (_, policy), mask = trained
    if mask == "info":
        with pytest.raises(UsageError, match=r"no info.'action_mask'.: give it the mask"):
            policy.act(np.zeros(9, np.float32))
        with pytest.raises(UsageError, match=r"of shape \(3,\); this policy takes shape \(50,\)"):
            policy.act(np.zeros(9, np.float32), action_mask=np.ones(3))
    else:
        with pytest.raises(UsageError, match="no observation 'action_mask': give it the mask"):
            policy.act({"door": np.zeros(9, np.float32)})


def test_masks_of_a_batch_belong_to_a_batch_of_observations(trained):
    (_, policy), mask = trained
    table, seen = np.eye(50, dtype=np.int8)[[4, 11]], np.zeros((3, 9), np.float32)
    told = r"shape \(2, 50\), and there (is one observation|are 3 observations): it takes one mask"
    for rows in (seen, seen[0]):
        obs = rows if mask == "info" else {"door": rows, "action_mask": table}
        with pytest.raises(UsageError, match=told):
            policy.act(obs, action_mask=table)
    one = table[0]
    obs = seen if mask == "info" else {"door": seen, "action_mask": one}
    assert policy.act(obs, action_mask=one).tolist() == [4, 4, 4], "one mask for all"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (np.zeros(50), "has no legal action"),
        (np.full(50, np.nan), "not made of 0 and 1"),
        (np.array([np.ones(50), np.zeros(50)]), "has no legal action"),
    ],
)
def test_a_mask_that_allows_nothing_or_is_none_is_refused(trained, given, told):
    (_, policy), mask = trained
    seen = np.zeros((*given.shape[:-1], 9), np.float32)
    obs = seen if mask == "info" else {"door": seen, "action_mask": given}
    with pytest.raises(UsageError, match=told):
        policy.act(obs, action_mask=given)
