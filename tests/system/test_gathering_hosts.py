"""Gradients that are gathered from actors on other hosts, over encrypted links."""

import os
import threading
import time
from dataclasses import replace

import pytest

from tests.system.agents import use_agents_here
from tests.system.runs import differences, run
from tests.system.test_gathering_engines import SMALL, weights
from tianji.channels.gauges import Gauge
from tianji.channels.orders import Stop
from tianji.engines.agents import agent
from tianji.engines.local import LocalEngine

SWING, HELD = (f"tests.fakes.small_envs:{name}" for name in ("Swing", "HeldSwing"))
MAX_WALL_S = 200  # no run that passes takes as long
STEPS_PER_ROUND = 5 * SMALL["unroll_length"]


def actors(go):
    """One beside the learner, two on the first of the other hosts, and two on the last, which wait
    until the file `go` is there."""
    return {
        "envs": [SWING] * 3 + [HELD] * 2,
        "env_kwargs": {"go": str(go), "pid": os.getpid()},
        "num_envs": 5,
        "num_actors": 5,
    }


def spread(hosts, go, name="sync-nigt", **values):
    """A run over two other hosts."""
    hosts.machine = replace(hosts.machine, cores=(0, 1))
    counted = {"m": 8} if name.split("-")[0] in ("rennala", "malenia") else {}
    algorithm = {"name": name, **SMALL, **counted}
    settings = {
        **actors(go),
        "learner_threads": 1,
        "actor_hosts": 2,
        "max_wall_s": MAX_WALL_S,
        **values,
    }
    return run(engine="mpi", algorithm=algorithm, **settings)


class Loss:
    """Takes the first of the other hosts away in the first round, when all but those that are held
    have delivered; then lets these go."""

    def __init__(self, hosts, monkeypatch, go):
        self._hosts, self._go = hosts, go
        self._engines = {}
        loss = self

        class Engine(LocalEngine):
            def __init__(self, spec, program, *args, **kwargs):
                super().__init__(spec, program, *args, **kwargs)
                loss._engines.setdefault(program.here, []).append(self)

        monkeypatch.setattr(agent, "LocalEngine", Engine)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        self._wait_for(0, 0, lambda gauges: gauges.the("buffer")[Gauge.ITEMS] >= 3)
        self._engines[1][0]._gateway.close()
        self._go.touch()

    def _wait_for(self, host, number, is_true):
        """Wait for this of the number-th engine of a host."""
        deadline_s = time.monotonic() + MAX_WALL_S
        while time.monotonic() < deadline_s:
            engines = self._engines.get(host, [])
            if len(engines) > number and is_true(engines[number]._control.gauges):
                return
            time.sleep(0.002)


def test_a_barrier_gives_the_bits_of_one_process_although_a_host_is_lost_in_a_round(
    tmp_path, monkeypatch
):
    """What the lost host had added is made again, wherever its actors are then."""
    monkeypatch.chdir(tmp_path)
    hosts, go = use_agents_here(monkeypatch), tmp_path / "go"
    Loss(hosts, monkeypatch, go)
    summary = spread(hosts, go, max_env_steps=10 * STEPS_PER_ROUND)
    assert summary["stopped_because"] == "max_env_steps", summary.get("first_cause")
    assert summary["restarts"] == 1
    assert summary["discarded_items"] == 2
    version = summary["version"]
    assert summary["gather"]["counts"] == [version] * 5
    assert summary["env_steps"] == STEPS_PER_ROUND * version + 2 * SMALL["unroll_length"]
    algorithm = {"name": "sync-nigt", **SMALL}
    steps = version * STEPS_PER_ROUND
    inline = run(engine="inline", algorithm=algorithm, max_env_steps=steps, **actors(go))
    assert inline["version"] == version > 5
    assert differences(weights(inline), weights(summary)) == []


@pytest.mark.slow
@pytest.mark.parametrize("actor_hosts", [0, 2])
def test_a_barrier_gives_the_bits_of_one_process(actor_hosts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hosts, go = use_agents_here(monkeypatch), tmp_path / "go"
    go.touch()
    summary = spread(hosts, go, max_env_steps=2000, actor_hosts=actor_hosts)
    algorithm = {"name": "sync-nigt", **SMALL}
    inline = run(engine="inline", algorithm=algorithm, max_env_steps=2000, **actors(go))
    for key in ("env_steps", "updates", "version", "episodes", "mean_return_100"):
        assert inline[key] == summary[key], key
    assert summary["discarded_items"] == summary["restarts"] == 0
    assert len(summary["hosts"]) == 1 + actor_hosts
    assert differences(weights(inline), weights(summary)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rennala-nigt", "malenia-nigt"])
def test_gradients_of_all_hosts_are_counted_once(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hosts, go = use_agents_here(monkeypatch), tmp_path / "go"
    go.touch()
    summary = spread(hosts, go, name, max_env_steps=20_000)
    counts, version = summary["gather"]["counts"], summary["version"]
    assert summary["stopped_because"] == "max_env_steps"
    assert version > 5
    if name == "malenia-nigt":
        assert min(counts) >= version
    else:
        assert sum(counts) >= 8 * version
        assert min(counts) > 0
    made = summary["env_steps"] // SMALL["unroll_length"]
    assert sum(counts) <= made <= sum(counts) + summary["discarded_items"] + 2 * 5


class EndedLoss(Loss):
    """Ends the run too, when the actors of the lost host have worked again."""

    def _run(self):
        super()._run()
        self._wait_for(1, 1, lambda gauges: gauges.rows["actor-1"][Gauge.ITEMS] >= 3)
        self._hosts.agents[0][0].stop(Stop.FINISH)


@pytest.mark.slow
def test_rennala_goes_on_when_a_host_is_lost_and_its_actors_count_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hosts, go = use_agents_here(monkeypatch), tmp_path / "go"
    EndedLoss(hosts, monkeypatch, go)
    summary = spread(hosts, go, "rennala-nigt")
    assert summary["stopped_because"] == "interrupted"
    assert summary["version"] > 5
    assert sum(summary["gather"]["counts"]) >= 8 * summary["version"]
    assert summary["restarts"] == 1
