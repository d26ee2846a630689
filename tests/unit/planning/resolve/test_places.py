"""Where a run trains and infers."""

import pytest
import torch
from gymnasium.spaces import Box, Discrete

from tests.unit.planning.plans import GIB, config
from tianji.channels.layout import Layout
from tianji.config.machine import Machine
from tianji.devices.nvml import Gpu
from tianji.engines.assembly import model
from tianji.engines.spec import RunSpec
from tianji.envs.build import Probe
from tianji.envs.interface import Spaces
from tianji.envs.spaces import Frames
from tianji.errors import UsageError
from tianji.models.sizes import most_parameters
from tianji.planning.resolve import places
from tianji.planning.resolve.places import choose_places, places_to_try
from tianji.planning.resolve.resolve import memory_of, resolve
from tianji.planning.resolve.slots import FLOAT_BYTES, WORKER_BYTES
from tianji.programs.one_group import program_for

MACHINE = Machine(tuple(range(16)), 64 * GIB)
GAMES = Spaces(Frames(4, (84, 84)), Discrete(6))
IMAGES = Spaces(Box(0, 255, (64, 64, 3), "uint8"), Discrete(6))
NUMBERS = Spaces(Box(-1.0, 1.0, (4,), "float32"), Discrete(2))
PPO = {"name": "ppo", "unroll_length": 32}


def probe(spaces, has_threads=False):
    return Probe(spaces, False, "in words", False, None, has_threads=has_threads)


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(
        places,
        "find_device",
        lambda asked, is_worthwhile: "cuda:0" if asked != "cpu" and is_worthwhile else "cpu",
    )


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(places, "find_device", lambda asked, is_worthwhile: "cpu")


@pytest.mark.parametrize(
    ("seen", "device", "inference", "threads"),
    [
        (probe(GAMES, has_threads=True), "cuda:0", "served", 1),
        (probe(IMAGES), "cuda:0", "served", 1),
        (probe(NUMBERS), "cpu", "actor-cpu", 1),
    ],
    ids=["games", "images", "numbers"],
)
def test_on_a_machine_with_a_gpu(seen, device, inference, threads, gpu):
    found = choose_places(config(PPO), MACHINE, seen)
    assert (found.device, found.inference, found.emulator_threads) == (device, inference, threads)
    assert bool(found.reason) == (device != "cpu")


def test_without_a_gpu_everything_is_on_the_cpu(no_gpu):
    found = choose_places(config(PPO), MACHINE, probe(GAMES, has_threads=True))
    assert (found.device, found.inference, found.is_together) == ("cpu", "actor-cpu", False)


@pytest.mark.parametrize("asked", ["actor-gpu", "learner"])
def test_inference_on_a_gpu_without_one_is_refused(asked, no_gpu):
    with pytest.raises(UsageError, match=f"inference is '{asked}', which needs a GPU"):
        choose_places(config(PPO, inference=asked), MACHINE, probe(GAMES, has_threads=True))


def test_what_a_person_sets_counts(gpu):
    asked = config(PPO, inference="actor-cpu", emulator_threads=3)
    found = choose_places(asked, MACHINE, probe(GAMES, has_threads=True))
    assert (found.device, found.inference, found.emulator_threads) == ("cuda:0", "actor-cpu", 3)


def test_games_on_a_gpu_are_two_actors_on_the_second_thread_of_the_learner(gpu):
    asked = config(PPO, num_envs=64, inference="learner")
    plan = resolve(asked, MACHINE, probe(GAMES, has_threads=True))
    assert (plan.num_actors, plan.actors_per_worker, plan.emulator_threads) == (2, 2, 16)
    program = program_for(asked, plan)
    places_of = {role.name: (role.worker, role.thread) for role in program.roles}
    assert places_of == {
        "actor-0": ("learner", 1),
        "actor-1": ("learner", 1),
        "buffer": ("learner", 0),
        "learner": ("learner", 0),
    }
    assert len(program.workers) == 1


@pytest.mark.parametrize("seen", [probe(GAMES, has_threads=True), probe(IMAGES)])
def test_a_server_has_a_core_and_two_actors_for_each_core_share_the_others(seen, gpu):
    asked = config(PPO, num_envs=64)
    plan = resolve(asked, MACHINE, seen)
    assert (plan.num_actors, plan.actors_per_worker, plan.emulator_threads) == (32, 1, 1)
    program = program_for(asked, plan)
    workers = [role.worker for role in program.of_kind("actor")]
    assert workers == [f"actor-{index}" for index in range(32)]
    (server,) = program.of_kind("inference")
    assert (server.worker, server.thread) == ("learner", 1)
    cores = {worker.name: worker.cores for worker in program.workers}
    assert cores["learner"] == (0,)
    assert all(cores[worker] == tuple(range(1, 16)) for worker in workers)


def test_with_few_cores_no_core_is_for_a_server_alone(gpu):
    machine = Machine((0, 1), 64 * GIB)
    games, images = probe(GAMES, has_threads=True), probe(IMAGES)
    assert choose_places(config(PPO), machine, games).inference == "learner"
    assert choose_places(config(PPO), machine, images).inference == "actor-gpu"


def test_a_server_on_the_cpu_has_a_process_of_its_own(no_gpu):
    asked = config(PPO, num_envs=64, inference="served")
    program = program_for(asked, resolve(asked, MACHINE, probe(NUMBERS)))
    (server,) = program.of_kind("inference")
    assert (server.worker, server.thread) == ("inference", 0)
    assert program.has_wire("rows")


def test_actors_that_infer_on_the_gpu_share_a_process(gpu):
    asked = config(PPO, num_envs=64, inference="actor-gpu")
    program = program_for(asked, resolve(asked, MACHINE, probe(GAMES, has_threads=True)))
    assert [role.worker for role in program.of_kind("actor")] == ["actors-0", "actors-0"]


def test_actors_that_compute_gradients_do_so_on_the_cpu(gpu):
    gathers = {"name": "sync-nigt"}
    found = choose_places(config(gathers), MACHINE, probe(IMAGES))
    assert (found.device, found.inference) == ("cpu", "actor-cpu")
    for asked in ({"device": "cuda"}, {"inference": "actor-gpu"}):
        with pytest.raises(UsageError, match="sync-nigt"):
            choose_places(config(gathers, **asked), MACHINE, probe(IMAGES))


def test_training_on_images_on_the_cpu_gets_all_cores(no_gpu):
    plans = {n: resolve(config(PPO, num_actors=1), Machine(tuple(range(n)), 64 * GIB), seen)
             for n, seen in ((2, probe(GAMES)), (16, probe(IMAGES)))}  # fmt: skip
    assert {n: plan.learner_threads for n, plan in plans.items()} == {2: 2, 16: 16}
    numbers = resolve(config(PPO, num_actors=1), MACHINE, probe(NUMBERS))
    assert numbers.learner_threads == 4


def test_the_learner_is_a_place_to_try_where_environments_step_on_threads(gpu):
    asked, games = config(PPO), probe(GAMES, has_threads=True)
    assert places_to_try(asked, MACHINE, games) == ("served", "learner", "actor-gpu", "actor-cpu")
    assert places_to_try(asked, MACHINE, probe(IMAGES)) == ("served", "actor-gpu", "actor-cpu")
    assert places_to_try(config(PPO, inference="learner"), MACHINE, games) == ("learner",)
    assert places_to_try(config(PPO, device="cpu"), MACHINE, games) == ("actor-cpu",)


DQN = {
    "name": "dqn", "replay_size": 10_000, "replay_on": "host", "unroll_length": 4,
    "warmup_steps": 100,
}  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "free_bytes", "is_there"),
    [("host", 10**9, False), ("auto", 10**9, True), ("auto", 10**7, False)],
)
def test_replay_goes_to_the_gpu_if_it_fits(asked, free_bytes, is_there, gpu, monkeypatch):
    one = Gpu(0, "one", 2 * 10**9, free_bytes)
    monkeypatch.setattr(places, "list_gpus", lambda: [one])
    wanted = config(num_envs=16, algorithm={**DQN, "replay_on": asked})
    plan = resolve(wanted, MACHINE, probe(GAMES, has_threads=True))
    assert plan.replay_on_gpu is is_there


def actors_bytes(asked, seen):
    plan = resolve(asked, MACHINE, seen)
    return memory_of(asked, seen, plan).actors, len(program_for(asked, plan).workers) - 1


def test_memory_is_counted_for_processes_and_not_for_actors(gpu):
    games = probe(GAMES, has_threads=True)
    found = {
        place: actors_bytes(config(PPO, num_envs=64, num_actors=16, inference=place), games)
        for place in ("learner", "actor-gpu", "served", "actor-cpu")
    }
    assert [workers for _, workers in found.values()] == [0, 1, 16, 16]
    alone, _ = found["learner"]
    assert [size - alone for size, _ in found.values()] == [
        workers * WORKER_BYTES for _, workers in found.values()
    ]


def test_a_server_on_the_cpu_takes_the_memory_of_a_process(no_gpu):
    served, own = (
        actors_bytes(config(PPO, num_envs=64, num_actors=16, inference=place), probe(NUMBERS))
        for place in ("served", "actor-cpu")
    )
    assert (served[1], own[1]) == (16 + 1, 16)
    network = 2 * FLOAT_BYTES * most_parameters(NUMBERS, config(PPO))
    assert served[0] - own[0] == WORKER_BYTES + network


def test_without_a_gpu_replay_that_may_be_there_is_in_main_memory(no_gpu):
    wanted = config(num_envs=16, algorithm={**DQN, "replay_on": "auto"})
    assert not resolve(wanted, MACHINE, probe(GAMES)).replay_on_gpu


def test_actors_that_never_wait_keep_their_cores(no_gpu):
    """A learner of images has all cores while the actors wait for it."""
    threads = [
        resolve(
            config(num_envs=16, num_actors=4, balance=balance, algorithm=DQN),
            MACHINE,
            probe(IMAGES),
        ).learner_threads
        for balance in ("paced", "free")
    ]
    assert threads == [16, 4]


@pytest.mark.parametrize(("algorithm", "num_twins"), [(DQN, 0), (PPO, 1)])
def test_only_unrolls_that_the_learner_reads_in_place_have_twins(
    algorithm, num_twins, gpu, monkeypatch, tmp_path
):
    """A replay store copies the rows from the slots."""
    wanted = config(num_envs=16, inference="learner", algorithm=algorithm)
    plan = resolve(wanted, MACHINE, probe(GAMES, has_threads=True))
    made = []
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(model, "pin", lambda memory: None)
    monkeypatch.setattr(model.TWINS, "add", lambda slots, device: made.append(device))
    spec = RunSpec(wanted, plan, GAMES, wanted.env, tmp_path)
    arrays = Layout.from_json(plan.layout).arrays(bytearray(plan.slot_bytes), 1)
    model.prepare_device(spec, arrays, arrays["reward"])
    assert len(made) == num_twins


def test_the_learner_beside_a_server_has_a_core_for_each_of_its_threads(gpu):
    asked = config(PPO, num_envs=64, num_actors=4, learner_threads=3)
    plan = resolve(asked, MACHINE, probe(GAMES, has_threads=True))
    assert plan.cores["learner"] == (0, 1, 2)
    assert plan.cores["actor-0"] == tuple(range(3, 16))
    by_rule = resolve(config(PPO, num_envs=64, num_actors=4), MACHINE, probe(IMAGES))
    assert (by_rule.learner_threads, by_rule.cores["learner"]) == (1, (0,))


@pytest.mark.parametrize("asked", ["served", "learner"])
def test_a_policy_with_a_memory_infers_in_the_actors(asked, gpu):
    remembering = config(PPO, model={"memory": "gru"})
    found = choose_places(remembering, MACHINE, probe(GAMES, has_threads=True))
    assert found.inference == "actor-gpu"
    assert places_to_try(remembering, MACHINE, probe(GAMES)) == ("actor-gpu", "actor-cpu")
    with pytest.raises(UsageError, match=f"inference is '{asked}', and model.memory is 'gru'"):
        choose_places(config(PPO, model={"memory": "gru"}, inference=asked), MACHINE, probe(GAMES))


@pytest.mark.parametrize("name", ["dqn", "apex", "rennala-nigt", "a3c"])
def test_algorithms_without_sequences_refuse_a_memory(name):
    with pytest.raises(UsageError, match=f"model.memory is 'lstm', and {name} does not learn from"):
        resolve(config({"name": name}, model={"memory": "lstm"}), MACHINE, probe(NUMBERS))
