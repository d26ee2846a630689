"""The program is data: roles, workers, wires."""

from dataclasses import replace

from tests.unit.planning.plans import config, plan_for
from tianji.programs.groups import group_program
from tianji.programs.one_group import program_for
from tianji.programs.program import GATEWAY, SUPERVISOR


def program(**values):
    asked = config(num_actors=2, **values)
    plan = plan_for(asked)
    return program_for(asked, plan), plan


def test_each_actor_is_a_worker_and_the_buffer_lives_with_the_learner():
    made, _ = program()
    assert [worker.name for worker in made.workers] == ["actor-0", "actor-1", "learner"]
    assert {role.name: role.worker for role in made.roles} == {
        "actor-0": "actor-0", "actor-1": "actor-1", "buffer": "learner", "learner": "learner"
    }  # fmt: skip
    assert [(role.name, role.index) for role in made.of_kind("actor")] == [
        ("actor-0", 0), ("actor-1", 1)
    ]  # fmt: skip


def test_an_evaluator_exists_only_when_it_is_asked_for():
    without, _ = program()
    assert without.of_kind("evaluator") == ()
    made, _ = program(evaluate={"period_s": 5})
    (evaluator,) = made.of_kind("evaluator")
    assert evaluator.worker == "evaluator"
    assert made.workers[-1].name == "evaluator"


def test_wires_follow_the_data_and_name_only_roles_that_exist():
    made, plan = program(evaluate={"period_s": 5})
    everybody = tuple(role.name for role in made.roles)
    ends = [(w.name, w.channel, w.sources, w.targets, w.capacity) for w in made.wires]
    actors = ("actor-0", "actor-1")
    assert ends == [
        ("experience", "stream", actors, ("buffer",), plan.num_slots),
        ("batches", "stream", ("buffer",), ("learner",), 1),
        ("feedback", "stream", ("learner",), ("buffer",), 4),
        ("answers", "stream", ("buffer",), ("learner",), 1),
        ("policy", "board", ("learner",), (*actors, "evaluator"), 1),
        ("orders", "board", ("buffer",), actors, 1),
        ("gauges", "board", everybody, ("buffer", SUPERVISOR), 1),
        ("reports", "stream", everybody, (SUPERVISOR,), 1),
        ("supervision", "board", (SUPERVISOR,), everybody, 1),
    ]
    named = {end for wire in made.wires for end in (*wire.sources, *wire.targets)}
    assert named <= {*everybody, SUPERVISOR}


def test_where_sums_are_reduced_actors_and_learner_have_one_more_wire():
    def channels(realisation):
        asked = config(
            algorithm={"name": "sync-nigt", "realisation": realisation}, num_actors=2, num_envs=2
        )
        made = program_for(asked, plan_for(asked))
        return {wire.name: (wire.channel, wire.sources) for wire in made.wires}

    ranks = ("learner", "actor-0", "actor-1")
    assert channels("all-reduce") == {**channels("server"), "total": ("reduce", ranks)}


def test_sums_of_other_hosts_come_through_the_gateway():
    asked = config(algorithm="sync-nigt", num_actors=3, num_envs=3)
    plan = plan_for(asked).model_copy(update={"actor_places": (0, 1, 2)})
    made = program_for(asked, plan)
    wires = {wire.name: (wire.sources, wire.targets) for wire in made.wires}
    assert made.other_hosts() == (1, 2)
    for host in (1, 2):
        assert wires[f"wanted-{host}"] == (("buffer",), (GATEWAY,))
        assert wires[f"total-{host}"] == ((GATEWAY,), ("buffer",))
    assert not made.has_wire("wanted-0")


def test_a_worker_has_one_bell_unless_its_roles_run_on_threads():
    made, _ = program()
    assert made.bells() == {role.name: role.worker for role in made.roles}
    apart = tuple(replace(role, thread=i) for i, role in enumerate(made.roles))
    assert len(set(replace(made, roles=apart).bells().values())) == len(made.roles)


def test_workers_have_the_threads_and_cores_of_the_plan():
    asked = config(num_actors=2)
    cores = {"learner": (0, 1), "actor-0": (2,)}
    plan = plan_for(asked).model_copy(update={"learner_threads": 2, "cores": cores})
    workers = {worker.name: worker for worker in program_for(asked, plan).workers}
    assert (workers["learner"].threads, workers["learner"].cores) == (2, (0, 1))
    assert (workers["actor-0"].threads, workers["actor-0"].cores) == (1, (2,))
    assert workers["actor-1"].cores == ()


def peer_wires(group, **values):
    asked = config(num_actors=1, num_groups=3, **values)
    made = group_program(asked, plan_for(asked), group)
    assert {role.group for role in made.roles} == {group}
    return {w.name: (w.sources, w.targets) for w in made.wires if w.name.startswith("peer")}


def test_groups_that_are_averaged_read_the_boards_of_all_others():
    assert peer_wires(1, combine="average") == {
        "peer-0": (("0/learner",), ("learner", "2/learner")),
        "peer-1": (("learner",), ("0/learner", "2/learner")),
        "peer-2": (("2/learner",), ("0/learner", "learner")),
    }


def test_groups_that_gossip_have_two_boards_each():
    assert peer_wires(0, combine="gossip") == {
        "peer-0": (("learner",), ("1/learner",)),
        "peer-2": (("2/learner",), ("learner",)),
    }


def test_one_group_has_no_peer_lane():
    asked = config(combine="average", num_actors=2)
    made = group_program(asked, plan_for(asked), 0)
    assert not any(wire.name.startswith("peer") for wire in made.wires)


def test_a_host_runs_its_own_workers_and_wakes_the_others_through_its_gateway():
    asked = config(num_actors=3, num_envs=6)
    plan = plan_for(asked).model_copy(update={"actor_places": (0, 1, 1)})
    home = program_for(asked, plan)
    away = replace(home, here=1)
    assert [worker.name for worker in home.workers_here()] == ["actor-0", "learner"]
    assert [worker.name for worker in away.workers_here()] == ["actor-1", "actor-2"]
    assert home.bells() == {
        "actor-0": "actor-0", "actor-1": GATEWAY, "actor-2": GATEWAY,
        "buffer": "learner", "learner": "learner",
    }  # fmt: skip
    assert away.bells() == {
        "actor-0": GATEWAY, "actor-1": "actor-1", "actor-2": "actor-2",
        "buffer": GATEWAY, "learner": GATEWAY,
    }  # fmt: skip
    assert [role.name for role in away.actors_on(1)] == ["actor-1", "actor-2"]
    alone, _ = program()
    assert GATEWAY not in alone.bells().values()
