"""Which runs may have several groups, and each group's share of the machine."""

import pytest

from tests.fakes.scripted import SPACES
from tests.unit.planning.plans import config, plan_for
from tianji.config.machine import Machine
from tianji.config.plan import Prediction
from tianji.devices.nvml import Gpu
from tianji.envs.build import Probe
from tianji.errors import UsageError
from tianji.planning.groups import check_groups, divide, place_actors, plan_groups
from tianji.planning.planned import Planned
from tianji.planning.resolve import gpu_memory


def machine(cores, **values):
    return Machine(tuple(range(cores)), 64 << 30, **values)


def cores_of(made, num_groups):
    return [share.cores for share in divide(made, num_groups)]


def test_one_group_has_the_whole_machine():
    made = machine(4)
    assert divide(made, 1) == (made,)


def test_groups_have_equal_shares_and_the_rest_is_left_over():
    assert cores_of(machine(7), 3) == [(0, 1), (2, 3), (4, 5)]
    assert {share.memory_bytes for share in divide(machine(7), 2)} == {32 << 30}
    assert not any(share.is_shared for share in divide(machine(7), 3))


def test_hyper_threads_of_a_core_stay_together_while_there_are_enough_cores():
    made = machine(8, siblings=((0, 4), (1, 5), (2, 6), (3, 7)))
    assert cores_of(made, 2) == [(0, 4, 1, 5), (2, 6, 3, 7)]
    assert divide(made, 2)[0].siblings == ((0, 4), (1, 5))
    assert cores_of(made, 8) == [(core,) for core in range(8)]
    assert divide(made, 8)[0].siblings == ()


def test_a_group_lies_in_one_memory_node_if_it_can():
    made = machine(4, nodes=((0, 2), (1, 3)))
    assert cores_of(made, 2) == [(0, 2), (1, 3)]
    assert [share.nodes for share in divide(made, 2)] == [((0, 2),), ((1, 3),)]


def test_more_groups_than_cores_share_them_and_nothing_is_pinned():
    shares = divide(machine(2), 3)
    assert [share.cores for share in shares] == [(0,), (1,), (0,)]
    assert all(share.is_shared for share in shares)


@pytest.mark.parametrize(("num_groups", "each"), [(2, 1), (1, 2)])
def test_each_learner_has_the_same_plan_on_cores_of_its_own(num_groups, each):
    asked = config(num_groups=num_groups, learners_per_group=each, combine="average", num_actors=1)
    told = []

    def plan(one, share):
        told.append((one.num_learners, share.cores))
        probe = Probe(SPACES, False, "", offers_state=False, max_episode_steps=None)
        prediction = Prediction(
            produced=10, received=9, trained=8, lag_versions=1, bottleneck="training"
        )
        cores = {"learner": share.cores[:1], "actor-0": share.cores[1:]}
        made = plan_for(one).model_copy(update={"cores": cores, "prediction": prediction})
        return Planned(one, made, probe, "")

    groups = plan_groups(asked, machine(4), plan)
    assert told == [(1, (0, 1))], "one is planned, on its share"
    assert groups.planned.config == asked
    assert [plan.cores["learner"] for plan in groups.plans] == [(0,), (2,)]
    assert [plan.cores["actor-0"] for plan in groups.plans] == [(1,), (3,)]
    assert groups.for_run.prediction.received == 18
    assert groups.for_run.prediction.lag_versions == 1


def test_groups_that_do_not_fit_on_a_gpu_together_are_refused(monkeypatch):
    gpu = Gpu(0, "H200", total_bytes=10 << 30, free_bytes=10 << 30)
    monkeypatch.setattr(gpu_memory, "list_gpus", lambda: [gpu])
    update = {"device": "cuda:0", "gpu_bytes": {"context": 4 << 30}}
    plan = plan_for(config()).model_copy(update=update)
    gpu_memory.check_groups_fit(plan, 2)
    with pytest.raises(UsageError, match="12,288 MiB in all"):
        gpu_memory.check_groups_fit(plan, 3)
    gpu_memory.check_groups_fit(plan.model_copy(update={"device": "cpu"}), 3)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"engine": "virtual", "combine": "average"}, "virtual engine runs one learner"),
        (
            {"algorithm": "tests.fakes.scripted:ALGORITHM"},
            "cannot join others .* --combine average",
        ),
        ({"combine": "gossip", "algorithm": "rennala-nigt"}, "gathers gradients"),
        (
            {"combine": "average", "algorithm": "sac"},
            "combine is 'average': groups mix what they publish, .* Use --num-groups 1",
        ),
        ({"combine_max_age": 5, "algorithm": "ppo"}, "never behind each other. .*--combine gossip"),
    ],
)
def test_runs_that_cannot_have_groups_are_refused_with_a_way_out(values, words):
    with pytest.raises(UsageError, match=words):
        check_groups(config(num_groups=2, **values))
    check_groups(config(num_groups=1, **values))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"engine": "virtual"}, "learners_per_group = 2: the virtual engine runs one learner"),
        ({"algorithm": "tests.fakes.scripted:ALGORITHM"}, "cannot join others .* and --learners"),
        ({"algorithm": "rennala-nigt"}, "gathers gradients"),
    ],
)
def test_runs_that_cannot_have_several_learners_in_a_group_are_refused(values, words):
    asked = {"num_groups": 2, "combine": "average", **values}
    with pytest.raises(UsageError, match=words):
        check_groups(config(learners_per_group=2, **asked))


@pytest.mark.parametrize("engine", ["local", "inline"])
@pytest.mark.parametrize("combine", ["average", "gossip", "gradients"])
def test_other_runs_may_have_groups(engine, combine):
    check_groups(config(num_groups=4, engine=engine, combine=combine, algorithm="ppo"))


def test_a_run_that_was_saved_with_groups_needs_an_engine_that_has_them():
    with pytest.raises(UsageError, match="saved with groups"):
        check_groups(config(engine="virtual"), had_groups=True)
    check_groups(config(), had_groups=True)


@pytest.mark.parametrize(
    ("num_actors", "actor_hosts", "num_cores", "threads", "counts"),
    [
        (7, 1, 4, 1, [3, 4]),
        (4, 1, 2, 1, [1, 3]),
        (4, 2, 2, 2, [0, 2, 2]),
        (2, 2, 2, 1, [0, 1, 1]),
        (12, 3, 16, 4, [2, 3, 3, 4]),
    ],
)
def test_actors_go_where_cores_are_free(num_actors, actor_hosts, num_cores, threads, counts):
    places = place_actors(num_actors, actor_hosts, num_cores, threads)
    assert [places.count(host) for host in range(1 + actor_hosts)] == counts
    assert list(places) == sorted(places)


def test_a_host_without_an_actor_is_refused():
    with pytest.raises(UsageError, match="actor_hosts = 2, and the run has 1 actor: not enough"):
        place_actors(1, 2, num_cores=4, learner_threads=1)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "local engine runs on one machine"),
        ({"engine": "ray", "algorithm": "afedpg"}, "makes a version of its own"),
        (
            {"engine": "mpi", "algorithm": {"name": "sync-nigt", "realisation": "all-reduce"}},
            "--algorithm.realisation server",
        ),
        ({"engine": "mpi", "inference": "served"}, "infer by themselves"),
    ],
)
def test_runs_whose_actors_cannot_be_elsewhere_are_refused(values, words):
    with pytest.raises(UsageError, match=words):
        check_groups(config(actor_hosts=1, **values))
    check_groups(config(actor_hosts=1, engine="ray", inference="actor-cpu"))
    for algorithm in ("rennala-nigt", "malenia-nigt", "sync-nigt", "rennala-pg"):
        check_groups(config(actor_hosts=1, engine="ray", algorithm=algorithm))


def test_a_group_on_several_hosts_is_planned_with_the_cores_of_all():
    asked = config(actor_hosts=1, engine="ray", num_actors=4, num_envs=8, learner_threads=4)
    told = []

    def plan(one, share):
        told.append((one.inference, len(share.cores), share.is_shared))
        probe = Probe(SPACES, False, "", offers_state=False, max_episode_steps=None)
        return Planned(one, plan_for(one), probe, "")

    groups = plan_groups(asked, machine(2), plan, agents_each=1)
    assert told == [("actor-cpu", 4, True)]
    made = groups.plans[0]
    assert (made.num_hosts, made.actor_places, made.learner_threads) == (2, (1, 1, 1, 1), 2)
    assert "hosts, the learner's first: 0, 4." in made.notes[-1]
