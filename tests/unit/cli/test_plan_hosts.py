"""`tianji plan --nodes`: what several hosts would bring."""

import json
import shlex

import pytest

from tests.unit.costs.profiles import actor, learner, profile
from tianji.cli.main import main
from tianji.config.machine import Machine
from tianji.costs.profile import Rehearsal
from tianji.engines.agents.network import NetworkSpeed

# The learner needs 50 ms for a version, the actors 4 ms; one thread is as good as two.
PROFILE = profile(
    actors=(actor(4, 0.002), actor(8, 0.004)),
    learners=(learner(1, 0.05), learner(2, 0.049)),
    steps_per_version=256,
    num_cores=2,
    rehearsals=(
        Rehearsal(
            num_actors=1, learner_threads=1, actor_threads=1, produced=5120.0, received=5120.0,
            trained=15360.0, lag_versions=1.0,
        ),
    ),
)  # fmt: skip


@pytest.fixture(autouse=True)
def measured(tmp_path, monkeypatch):
    """The configs that were measured, which takes no time here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked = []

    def measure(config, *_):
        asked.append(config)
        return PROFILE

    monkeypatch.setattr("tianji.planning.measure.measure.measure", measure)
    set_cores(monkeypatch, 2)
    return asked


def set_cores(monkeypatch, count):
    machine = Machine(tuple(range(count)), 64 << 30)
    monkeypatch.setattr("tianji.cli.verbs.plan.read_machine", lambda: machine)


def plan(capfd, *words):
    assert main(["plan", "--num-envs", "8", *words, "--json"]) == 0
    found = capfd.readouterr()
    (line,) = found.out.splitlines()
    return json.loads(line), " ".join(found.err.split())


def refusal(capfd, *words):
    assert main(["plan", "--num-envs", "8", *words, "--json"]) == 2
    return json.loads(capfd.readouterr().out)["error"]


def test_rates_are_predicted_for_one_host_up_to_all(capfd):
    found, said = plan(capfd, "--nodes", "4", "--combine", "gossip")
    assert [row["nodes"] for row in found["scale"]] == [1, 2, 4]
    assert [row["num_groups"] for row in found["scale"]] == [1, 2, 4]
    one, _, four = (row["received"] for row in found["scale"])
    assert one == pytest.approx(256 / 0.05, rel=0.02)
    assert four == pytest.approx(4 * one, rel=0.05)
    assert found["predicted"]["received"] == four
    assert found["scale"][-1]["share_of_proportional"] == pytest.approx(four / 4 / one)
    assert (found["num_groups"], found["groups_per_node"]) == (4, 1)
    assert found["bottleneck"] == "training"
    assert "the learner limits each group" in said


def test_the_first_host_has_the_head_and_all_have_groups(capfd):
    found, _ = plan(capfd, "--nodes", "3", "--combine", "gossip", "--num-groups", "6")
    assert [place["groups"] for place in found["placement"]] == [[0, 3], [1, 4], [2, 5]]
    assert [place["head"] for place in found["placement"]] == [True, False, False]
    assert found["groups_per_node"] == 2
    memory = found["memory_bytes_per_node"]
    assert memory == 2 * plan(capfd, "--nodes", "3")[0]["memory_bytes_per_node"]


def test_several_groups_on_a_host_are_proposed_where_they_are_faster(capfd, monkeypatch):
    set_cores(monkeypatch, 8)
    found, said = plan(capfd, "--nodes", "2", "--combine", "average")
    assert (found["groups_per_node"], found["num_groups"]) == (4, 8)
    assert [row["num_groups"] for row in found["scale"]] == [4, 8]
    assert "4 groups on each host:" in said and "faster there than one" in said
    assert found["placement"][0]["cores_per_group"] == 2


def test_the_link_is_assumed_unless_it_is_given(capfd):
    found, said = plan(capfd, "--nodes", "2")
    assert found["link"] == {"gbit": 10.0, "ms": 0.05, "source": "assumed"}
    assert "10 Gbit/s, 0.05 ms (assumed" in said and "not measured" in said
    found, said = plan(capfd, "--nodes", "2", "--link-gbit", "1", "--link-ms", "2")
    assert found["link"] == {"gbit": 1.0, "ms": 2.0, "source": "given"}
    assert "assumed" not in said


def test_the_link_of_a_cluster_is_measured_unless_it_was_set(capfd, monkeypatch):
    where = "tianji.engines.agents.hosts.measure_network"
    on_ray = "--nodes", "2", "--engine", "ray"
    monkeypatch.setattr(where, lambda config: NetworkSpeed(2.5, 0.125))
    found, said = plan(capfd, *on_ray)
    assert found["link"] == {"gbit": 2.5, "ms": 0.125, "source": "measured"}
    assert "measured between two hosts" in said
    found, _ = plan(capfd, *on_ray, "--link-gbit", "1")
    assert found["link"]["source"] == "given"
    monkeypatch.setattr(where, lambda config: None)
    found, said = plan(capfd, *on_ray)
    assert found["link"]["source"] == "assumed" and "the cluster has one host" in said


def test_what_crosses_is_told(capfd):
    found, said = plan(capfd, "--nodes", "2", "--combine", "gossip")
    # One group is away: its parameters of a MiB come in, and those of the other go out.
    assert found["bytes_per_s"]["parameters"] == pytest.approx(2 * 2**20 / 0.0501, rel=1e-3)
    assert "parameters 41.9 (MB/s" in said
    assert found["mix_period_s"] == pytest.approx(0.0501)


def test_an_average_of_many_groups_is_too_slow_to_cross(capfd):
    near, _ = plan(capfd, "--nodes", "2")
    far = "--link-ms", "20"  # too far for a sum in every update
    few, _ = plan(capfd, "--nodes", "2", *far)
    many, said = plan(capfd, "--nodes", "128", *far)
    assert near["combine"] == "gradients"
    assert few["combine"] == "average"
    assert many["combine"] == "gossip"
    assert set(many["by_combine"]) >= {"average", "gossip"}
    assert "An average of so many groups would reach them every" in said


def test_the_commands_are_those_to_type(capfd):
    found, _ = plan(capfd, "cartpole-ppo", "--nodes", "2", "--combine", "gossip", "--seed", "3")
    ray, mpi = (shlex.split(command) for command in found["commands"].values())
    words = "--num-envs 8 --seed 3 --num-groups 2 --combine gossip --num-actors 1"
    shares = "--learner-threads 1 --actor-threads 1"
    assert ray == f"tianji train cartpole-ppo {words} {shares} --engine ray".split()
    assert mpi[:5] == ["mpirun", "--bind-to", "none", "-n", "2"]
    assert mpi[5:] == [*ray[:-1], "mpi"]
    assert "--nodes" not in found["commands"]["Ray"]


def test_a_rank_runs_one_group(capfd, monkeypatch):
    set_cores(monkeypatch, 8)
    found, _ = plan(capfd, "--nodes", "2", "--combine", "average")
    ray, mpi = found["commands"].values()
    assert "--num-groups 8" in ray
    assert "-n 2" in mpi and "--num-groups 2" in mpi


def test_groups_with_actors_on_other_hosts(capfd):
    words = ("--nodes", "4", "--actor-hosts", "1", "--combine", "gossip", "--num-actors", "2")
    found, said = plan(capfd, *words)
    assert (found["num_groups"], found["nodes_per_group"], found["num_actors"]) == (2, 2, 2)
    assert [row["nodes"] for row in found["scale"]] == [2, 4]
    assert [place["groups"] for place in found["placement"]] == [[0], [0], [1], [1]]
    assert [place["learner"] for place in found["placement"]] == [True, False, True, False]
    assert found["bytes_per_s"]["items"] > 0 and found["bytes_per_s"]["policies"] > 0
    assert "--actor-hosts 1" in found["commands"]["Ray"]
    assert "of each of 2 hosts" in said


def test_one_machine_needs_no_cluster(capfd):
    found, _ = plan(capfd, "--nodes", "1")
    assert found["num_groups"] == 1
    assert [*found["commands"]] == ["on this machine"]
    assert "--engine" not in found["commands"]["on this machine"]


def test_gradients_are_refused_where_they_cannot_run(capfd, monkeypatch):
    from tianji.errors import UsageError
    from tianji.planning.hosts import propose

    def refuse(config, had_groups=False):
        if config.combine == "gradients":
            raise UsageError("not built")

    monkeypatch.setattr(propose, "check_groups", refuse)
    assert "not built" in refusal(capfd, "--nodes", "2", "--combine", "gradients")
    found, _ = plan(capfd, "--nodes", "2")
    assert set(found["by_combine"]) == {"average", "gossip"}


def test_an_algorithm_whose_groups_can_be_combined_in_no_way_is_refused(capfd):
    words = ["plan", "pendulum-sac", "--num-envs", "8", "--unroll-length", "32", "--json"]
    assert main([*words, "--nodes", "2"]) == 2
    told = json.loads(capfd.readouterr().out)["error"]
    assert "SAC publishes its policy without the critics" in told


def test_gradients_are_proposed_where_they_cost_little(capfd, monkeypatch):
    from tianji.planning.hosts import propose

    monkeypatch.setattr(propose, "check_groups", lambda config, had_groups=False: None)
    fast, _ = plan(capfd, "--nodes", "2", "--link-gbit", "100", "--link-ms", "0.001")
    slow, _ = plan(capfd, "--nodes", "2", "--link-gbit", "0.1", "--link-ms", "20")
    assert (fast["combine"], slow["combine"] != "gradients") == ("gradients", True)


def test_the_same_measurement_serves_any_number_of_hosts(capfd, measured):
    plan(capfd, "--nodes", "2")
    plan(capfd, "--nodes", "64")
    assert len(measured) == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--nodes 0", "--nodes = 0: must be greater than or equal to 1"),
        ("--nodes many", "--nodes = many"),
        ("--nodes 5000", "at most 4,096"),
        ("--nodes 4 --num-groups 2", "2 of the hosts would be idle"),
        ("--nodes 3 --actor-hosts 1", "Use a multiple of 2 hosts"),
        ("--nodes 2 --actor-hosts 1 --num-groups 2", "Use --nodes 4"),
        ("--nodes 2 --link-gbit 0", "--link-gbit = 0: must be greater than 0"),
        ("--link-ms 1", "--link-ms belongs to --nodes"),
        ("--nodes 2 --balance free --algorithm dqn", "--balance paced"),
        ("--nodes 2 --engine inline", "one process"),
        ("--nodes 2 --learners-per-group 2", "Leave out --learners-per-group"),
        ("--nodes 2 --algorithm rennala-nigt", "one learner for all actors"),
        ("--nodes 2 --inference served", "--inference actor-cpu"),
        ("--nodes 2 --inference learner", "--device cpu"),
    ],
)
def test_a_mistake_is_told_before_anything_is_measured(capfd, measured, words, text):
    assert text in refusal(capfd, *words.split())
    assert measured == []
