"""Every ablation trains on the local engine, and outlives the loss of a process that is awaited."""

import signal

import pytest

from tests.integrity.test_nothing_is_lost import AUDITOR
from tests.system.runs import differences, run, saved_state
from tests.system.test_faults import (
    a_killed_actor_is_replaced,
    a_killed_learner_goes_on_from_its_checkpoint_and_the_actors_stay,
    goes_on,
    latest_version,
    train_told,
)
from tianji.config.overrides import make_config
from tianji.programs.registry import STYLES
from tianji.run import train_config

PRESETS = {
    "free": ("cartpole-dqn", {}), "stacks": ("catch-frames-ppo", {"max_env_steps": 1000})
}  # fmt: skip
ABLATIONS = [name for name, style in STYLES.items() if style.kind == "ablation"]


QUICK = ("dropping", "reverb")
"""Those with parts of their own that no test below has in processes; tests/contracts/test_style.py
runs all ablations in one process."""
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ABLATIONS if name not in QUICK]


@pytest.mark.parametrize("style", [*QUICK, *SLOW])
def test_every_ablation_trains(style, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    preset, settings = PRESETS.get(style, ("cartpole-ppo", {}))
    config = make_config(
        preset, style=style, target_return=None, plan={"source": "rule"},
        observe={"display": "off", "tensorboard": False}, **{"max_env_steps": 6000, **settings},
    )  # fmt: skip
    summary = train_config(config)
    assert summary["stopped_because"] == "max_env_steps", summary.get("first_cause")
    assert summary["style"] == style
    assert summary["updates"] > 0
    assert summary["restarts"] == 0


@pytest.mark.parametrize("style", ["request-reply", "confirmed"])
@pytest.mark.parametrize("max_lag", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_where_actors_wait_every_item_arrives_once_in_order_and_whole(
    style, max_lag, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    summary = run(
        env="tianji.envs.worlds:Counting",
        env_kwargs={"length": 7, "spread": 5, "end": "truncated"},
        algorithm=AUDITOR, num_envs=4, num_actors=2, max_lag=max_lag, max_env_steps=10_000,
        style=style,
    )  # fmt: skip
    assert summary["stopped_because"] == "max_env_steps", summary.get("first_cause")
    assert (summary["restarts"], summary["discarded_items"]) == (0, 0)
    assert summary["lag_versions"]["max"] <= max_lag
    assert summary["ratio"]["actual"] == 1.0
    assert all(summary["waited_s"][actor]["replies"] > 0 for actor in ("actor-0", "actor-1"))


@pytest.mark.parametrize("style", ["request-reply", "confirmed"])
def test_in_one_process_nobody_waits_and_nothing_changes(style, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    algorithm = {"name": "ppo", "unroll_length": 16, "epochs": 2, "minibatch_size": 64}
    plain, other = (
        saved_state(
            run(engine="inline", max_lag=0, algorithm=algorithm, max_env_steps=2000, style=name)[
                "run_dir"
            ]
        )
        for name in ("tianji", style)
    )
    clocks = [key for key in plain if key.endswith(("row_ns", "wall_s"))]
    assert differences(plain, other, but=clocks) == []
    assert any(key.startswith(".weights") for key in plain)


@pytest.mark.parametrize(
    "style", ["request-reply", pytest.param("confirmed", marks=pytest.mark.slow)]
)
def test_a_run_whose_actors_wait_outlives_the_loss_of_either_side(style, tmp_path):
    command = train_told(
        tmp_path, "--num-actors", "2", "--max-lag", "2", "--json", "--style", style
    )  # fmt: skip
    command.wait_for_version(5)
    a_killed_actor_is_replaced(command)
    command.wait_for(lambda: latest_version(command) > 0, "checkpoint")
    command.workers()["learner"].send_signal(signal.SIGSTOP)  # actors wait for it from now on
    a_killed_learner_goes_on_from_its_checkpoint_and_the_actors_stay(command)
    goes_on(command)
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130, err
