"""Ray over hosts of their own: groups train together, hosts are cut off, lost, and join."""

import os
import time
from unittest import mock

import pytest

from benchmarks.namespaces import why_not
from benchmarks.ray_nodes import ray_nodes
from tests.system.commands import FOREVER, SMALL, Command, groups_that_work
from tests.system.runs import differences
from tests.system.test_joined_groups import newest, weights_of_groups

pytest.importorskip("ray", reason="needs Ray")
pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())
GROUPS = ["--engine", "ray", "--env", "CartPole-v1"]
AVERAGE = ["--num-groups", "2", "--combine", "average"]
GRADIENTS = ["--num-groups", "2", "--combine", "gradients"]


class Cluster:
    """Nodes of Ray, and commands on the head's host."""

    def __init__(self, nodes):
        self._nodes = nodes
        self.network = nodes.network
        self.join = nodes.join

    def train(self, *words):
        address = "--ray-address", self._nodes.address
        return self._command("train", *SMALL, *GROUPS, *address, *words)

    def resume(self, *words):
        return self._command("resume", "run", *words)

    def _command(self, *words):
        return Command(self._nodes.folder, *words, prefix=self._nodes.prefix)


@pytest.fixture
def cluster():
    with ray_nodes(4) as nodes:
        yield Cluster(nodes)


def test_groups_on_other_hosts_train_together_and_outlive_their_head(cluster):
    with mock.patch.dict(os.environ, RAY_AUTH_TOKEN="that of another cluster"):
        code, _, err = cluster.train().finish()
    assert (code, "asks for its token" in err) == (2, True), err
    assert err.count("gcs_client") <= 1, "Ray itself tries for 20 s, with a line each second"
    cluster.join(1)
    cluster.join(2)
    command = cluster.train(*AVERAGE, *FOREVER)
    command.wait_for(lambda: groups_that_work(command) == {0, 1}, "both groups")
    command.wait_for((command.run_dir / "checkpoints.json").exists, "a set of checkpoints")
    command.process.kill()
    command.process.wait()
    seen = command.records()
    command = cluster.resume()
    command.wait_for(
        lambda: len(command.records()) > len(seen) and groups_that_work(command) == {0, 1},
        "both groups again",
    )
    command.process.terminate()
    code, _, err = command.finish()
    assert code == 130, err
    summary = command.summary()
    assert [event for event in command.events() if event["kind"] == "restored"]
    assert [group["group"] for group in summary["groups"]] == [0, 1]
    assert all(group["env_steps"] > 0 for group in summary["groups"])
    hosts = {host["host"]: host["groups"] for host in summary["hosts"]}
    assert sorted(hosts) == cluster.network.addresses[1:3]
    assert sorted(hosts.values()) == [[0], [1]]


@pytest.mark.slow
def test_a_run_outlives_a_cut_cable_and_a_lost_host_and_reaches_its_target(cluster):
    cluster.join(1)
    command = cluster.train(*AVERAGE, *FOREVER)
    command.wait_for(lambda: groups_that_work(command) == {0, 1}, "both groups")
    cluster.network.set_cable(1, "down")
    time.sleep(5)
    cluster.network.set_cable(1, "up")
    seen = command.version()
    command.wait_for_version(seen + 20)
    assert command.events() and not [e for e in command.events() if e["kind"] == "restart"]
    cluster.network.kill(1)
    cluster.join(2)
    restarted = ("restart", "0/supervisor"), ("restart", "1/supervisor")
    command.wait_for(
        lambda: {(e["kind"], e["role"]) for e in command.events()}.issuperset(restarted), "losses"
    )
    steps = command.records()[-1]["env_steps"]
    command.wait_for(
        lambda: (
            command.records()[-1]["env_steps"] > steps + 2000
            and groups_that_work(command) == {0, 1}
        ),
        "groups on the other host",
    )
    command.process.terminate()
    code, _, err = command.finish()
    assert code == 130, err
    command = cluster.resume("--target-return", "60")
    code, _, err = command.finish()
    assert code == 0, err
    assert command.summary()["stopped_because"] == "target_reached"


@pytest.mark.slow
def test_learners_that_add_up_gradients_go_on_when_a_lost_host_was_replaced(cluster):
    cluster.join(1)
    cluster.join(2)
    command = cluster.train(*GRADIENTS, *FOREVER)
    command.wait_for(lambda: groups_that_work(command) == {0, 1}, "both groups")
    command.wait_for((command.run_dir / "checkpoints.json").exists, "a set of checkpoints")
    command.wait_for(lambda: min(newest(command)) > "v00000000", "checkpoints")
    cluster.network.set_cable(2, "down")  # nobody says farewell
    cluster.network.kill(2)
    lost = [("restart", "0/supervisor"), ("restart", "1/supervisor")]
    command.wait_for(
        lambda: any((e["kind"], e["role"]) in lost for e in command.events()), "loss of a host"
    )
    time.sleep(5)  # the learner that is left waits
    seen = command.version()
    cluster.network.set_cable(2, "up")
    cluster.join(2)
    command.wait_for_version(seen + 50)
    command.process.terminate()
    code, _, err = command.finish()
    assert code == 130, err
    one, other = weights_of_groups(command)
    assert one and differences(one, other) == []
    assert len(set(newest(command))) == 1


def host_of_actors(command):
    """The address of the host that was given actors last."""
    notes = [e["text"].split() for e in command.events() if " runs " in e["text"]]
    return notes[-1][0] if notes else ""


@pytest.mark.slow
def test_hosts_of_actors_are_cut_off_lost_and_replaced(cluster):
    cluster.join(1)
    command = cluster.train("--actor-hosts", "1", "--num-actors", "4", *FOREVER)
    command.wait_for_version(5)  # on the only host that is there
    cluster.join(2)
    first = command.wait_for(lambda: host_of_actors(command), "a host of actors")
    command.wait_for_version(20)
    host = cluster.network.addresses.index(first)
    cluster.network.set_cable(host, "down")
    time.sleep(5)
    cluster.network.set_cable(host, "up")
    command.wait_for_version(command.version() + 20)
    assert not [e for e in command.events() if e["kind"] == "restart"]

    cluster.network.kill(host)
    command.wait_for_version(command.version() + 20)  # the learner's host goes on alone
    command.wait_for(lambda: [e for e in command.events() if e["kind"] == "restart"], "its loss")
    command.wait_for_version(command.version() + 20)
    cluster.join(3)
    command.wait_for(lambda: host_of_actors(command) == cluster.network.addresses[3], "a new host")
    command.wait_for_version(command.version() + 20)
    command.process.terminate()
    code, _, err = command.finish()
    assert code == 130, err
    assert command.summary()["restarts"] == 1
