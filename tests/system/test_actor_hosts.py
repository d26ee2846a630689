"""Groups whose actors live on other hosts than their learner, over encrypted links."""

from pathlib import Path

import pytest

from tests.integrity.test_nothing_is_lost import AUDITOR
from tests.system.agents import use_agents_here
from tests.system.runs import DQN, PPO, differences, resume, run, saved_state
from tests.system.test_bit_equality import ACTORS, CLOCK
from tianji.checkpoint.load import latest, read_checkpoint
from tianji.config.machine import read_machine
from tianji.observe.run_log import last_metrics


def policy_bytes(summary):
    """Of one version: four bytes for each parameter."""
    weights = read_checkpoint(latest(Path(summary["run_dir"])).path).weights
    return 4 * sum(tensor.numel() for tensor in weights.values())


SPREAD = {"engine": "mpi", "num_envs": 8, "num_actors": 4, "learner_threads": 1}


@pytest.mark.parametrize("algorithm", [PPO, pytest.param(DQN, marks=pytest.mark.slow)])
def test_without_lag_actors_on_other_hosts_give_what_one_process_gives(
    algorithm, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    shared = {"algorithm": algorithm, "num_actors": 4, "max_lag": 0, "max_env_steps": 3000}
    inline = run(engine="inline", **shared)
    use_agents_here(monkeypatch)
    spread = run(**{**SPREAD, **shared, "actor_hosts": 2})
    home, *others = spread["hosts"]
    assert [host["host"] for host in spread["hosts"]] == ["host 0", "host 1", "host 2"]
    assert (home["policies"], home["to_learner_bytes"]) == (0, 0)
    for host in others:  # a policy crosses once, and two actors read it there
        assert 0 < host["policies"] <= spread["version"] + 1
        assert host["from_learner_bytes"] > host["policies"] * policy_bytes(spread)
        assert host["from_learner_bytes"] < 1.5 * host["policies"] * policy_bytes(spread)
    one, other = (saved_state(summary["run_dir"]) for summary in (inline, spread))
    one = {k: v for k, v in one.items() if not k.startswith(ACTORS)}
    other = {k: v for k, v in other.items() if not k.startswith(ACTORS)}
    clock = [name for name in one if name.endswith("row_ns")]
    assert differences(one, other, but=(*CLOCK, *clock)) == []


# With lag, an unroll of a host that has just come may be too old when it arrives and is discarded:
# the auditor makes versions faster than messages cross.
@pytest.mark.parametrize("max_lag", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_every_item_arrives_once_in_order_and_whole(max_lag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    use_agents_here(monkeypatch)
    summary = run(
        **SPREAD,
        actor_hosts=2,
        env="tianji.envs.worlds:Counting",
        env_kwargs={"length": 7, "spread": 5, "end": "terminated"},
        algorithm={**AUDITOR, "may_skip": max_lag > 0},
        max_lag=max_lag,
        max_env_steps=10_000,
    )
    assert summary["stopped_because"] == "max_env_steps", summary.get("first_cause")
    assert summary["restarts"] == 0
    assert summary["lag_versions"]["max"] <= max_lag
    assert summary["ratio"]["actual"] == 1.0
    last = last_metrics(Path(summary["run_dir"]))
    assert last["learner"]["skipped"] <= summary["discarded_items"], "nothing else is missing"
    assert summary["discarded_items"] == 0 or max_lag
    assert last["usable_cores"] == 3 * len(read_machine().cores), "those of all hosts"
    assert last["core_s"].keys() == {"learner", *(f"actor-{n}" for n in range(4))}


@pytest.mark.slow
def test_groups_may_each_live_on_several_hosts_and_be_resumed_on_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    use_agents_here(monkeypatch)
    groups = {"num_groups": 2, "combine": "average", "actor_hosts": 1}
    summary = run(**SPREAD, **groups, algorithm=PPO, max_env_steps=6000)
    assert [host["groups"] for host in summary["hosts"]] == [[0], [0], [1], [1]]
    summary = resume(summary["run_dir"], actor_hosts=2, max_env_steps=9000)
    assert len(summary["hosts"]) == 6
    summary = resume(summary["run_dir"], actor_hosts=0, engine="local", max_env_steps=12_000)
    assert summary["stopped_because"] == "max_env_steps"
    assert summary["env_steps"] >= 12_000
