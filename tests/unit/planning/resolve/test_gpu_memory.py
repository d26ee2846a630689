"""The memory of a run on its GPU is planned, and a GPU that is too full is refused."""

import math

import pytest
from gymnasium.spaces import Box, Discrete

from tests.unit.devices.fake_nvml import GIB, FakeGpu, FakeNvml
from tests.unit.planning.plans import config
from tianji.algorithms.registry import load_algorithm
from tianji.config.machine import Machine
from tianji.devices import find, nvml
from tianji.envs.build import Probe
from tianji.envs.interface import Spaces
from tianji.envs.spaces import Frames
from tianji.errors import UsageError
from tianji.models.sizes import most_parameters, torso_outputs
from tianji.planning.resolve.gpu_memory import CONTEXT_BYTES
from tianji.planning.resolve.resolve import memory_of, resolve

MACHINE = Machine(tuple(range(16)), 256 * GIB)
GAMES = Probe(
    Spaces(Frames(4, (84, 84)), Discrete(6)), False, "in words", False, None, has_threads=True
)
PPO = {"name": "ppo", "unroll_length": 64, "minibatch_size": 1024}
DQN = {"name": "dqn", "replay_size": 1_000_000, "replay_on": "gpu"}


@pytest.fixture
def free(monkeypatch):
    """Set the free memory of the only GPU, in GiB."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(find, "torch_has_cuda", lambda: True)

    def set_free(gib):
        library = FakeNvml(FakeGpu("GPU-a", free=int(gib * GIB)))
        monkeypatch.setattr(nvml, "_library", lambda: library)

    return set_free


def plan(algorithm, **values):
    return resolve(config(algorithm, **{"num_envs": 64, **values}), MACHINE, GAMES)


def refused(algorithm, **values):
    with pytest.raises(UsageError) as told:
        plan(algorithm, **values)
    return str(told.value)


def test_frames_that_stay_on_the_gpu_and_a_batch_are_counted(free):
    free(100)
    found = plan(PPO, inference="learner")
    parts = found.gpu_bytes
    assert (found.device, found.inference) == ("cuda:0", "learner")
    frames = (64 + 4) * 32 * 84 * 84  # rows of an unroll with what it looks back, of 32 games
    assert parts["unrolls"] == found.num_slots * frames
    stacks = 4 * 84 * 84 * (2 * 64 * 64 + 1024)
    assert parts["batch"] == found.unrolls_per_version * found.slot_bytes + stacks
    assert parts["context"] == CONTEXT_BYTES
    assert parts["replay"] == 0
    numbers = torso_outputs((4, 84, 84), "nature")
    assert parts["activations"] > 1024 * 2 * sum(numbers)
    assert parts["evaluation"] > 64 * 64 * 2 * (numbers[0] + max(numbers[1:]))


def test_another_place_of_inference_needs_other_memory(free):
    free(100)
    found = plan(PPO, inference="actor-gpu").gpu_bytes
    assert (found["unrolls"], found["context"]) == (0, 2 * CONTEXT_BYTES)
    assert plan(PPO, inference="actor-cpu").gpu_bytes["context"] == CONTEXT_BYTES
    assert plan(PPO, device="cpu").gpu_bytes == {}


def test_float32_and_larger_updates_take_more(free):
    free(1000)
    half, whole = (
        plan({**PPO, "minibatch_size": 4096}, model={"precision": kind}).gpu_bytes["activations"]
        for kind in ("bfloat16", "float32")
    )
    assert whole == 2 * half
    small = plan({"name": "impala", "unroll_length": 64, "minibatches": 4}).gpu_bytes
    large = plan({"name": "impala", "unroll_length": 64, "minibatches": 1}).gpu_bytes
    assert large["activations"] == 4 * small["activations"]
    assert large["evaluation"] == 0
    residual = plan(PPO, model={"torso": "impala"}).gpu_bytes
    assert residual["activations"] > 3 * plan(PPO).gpu_bytes["activations"]


def test_replay_on_the_gpu_is_part_of_it(free):
    free(100)
    found = plan(DQN)
    assert found.gpu_bytes["replay"] >= 1_000_000 * 84 * 84
    assert plan({**DQN, "replay_on": "host"}).gpu_bytes["replay"] == 0


def test_replay_that_may_be_on_the_gpu_is_there_only_if_all_parts_fit(free):
    asked = {**DQN, "replay_on": "auto", "batch_size": 512}
    free(100)
    assert plan(asked).replay_on_gpu
    free(8.3)  # the store alone would fit
    found = plan(asked)
    assert not found.replay_on_gpu
    assert found.gpu_bytes["replay"] == 0
    main = memory_of(config(asked, num_envs=64), GAMES, found)
    assert main.shared.replay >= 1_000_000 * 84 * 84
    free(0.5)
    assert "does not fit on cuda:0" in refused(asked), "not without the store either"


def test_a_full_gpu_is_refused_with_the_setting_that_helps(free):
    free(0.5)
    text = refused(PPO)
    assert "does not fit on cuda:0 (NVIDIA H200)" in text
    assert "512 of 143,360 MiB are free" in text
    free(2)
    assert "Use fewer environments" in refused(PPO, num_envs=512)
    text = refused({**PPO, "minibatch_size": 16_384}, num_envs=256, inference="actor-cpu")
    assert "smaller --minibatch-size" in text
    large = {"name": "dqn", "batch_size": 65_536, "replay_size": 2000}
    assert "smaller --batch-size" in refused(large)
    free(8.3)  # the store alone would fit
    assert "smaller --replay-size" in refused({**DQN, "batch_size": 512})


def test_a_gpu_that_other_programs_fill_is_named_with_them(free):
    free(0.3)
    small = {"name": "ppo", "unroll_length": 4, "minibatch_size": 64}
    assert "`nvidia-smi` lists them" in refused(small, num_envs=2)


SAC = {"name": "sac", "replay_size": 100_000, "batch_size": 256, "replay_on": "gpu"}
ROBOT = Probe(
    Spaces(Box(-1.0, 1.0, (17,), "float32"), Box(-1.0, 1.0, (6,), "float32")),
    False, "in words", False, None,
)  # fmt: skip
CRITICS = 2 * ((17 + 6 + 1) * 256 + 257 * 256 + 257)
"""Two networks of an observation and an action, with two hidden layers of 256 and one output."""


def test_networks_that_sac_does_not_publish_are_counted_with_their_copies(free):
    free(100)
    asked = config(SAC, device="cuda", num_envs=8)
    parts = resolve(asked, MACHINE, ROBOT).gpu_bytes
    policy = most_parameters(ROBOT.spaces, asked)
    assert policy >= 18 * 256 + 257 * 256 + 257 * 12
    # Each number of policy, critics and temperature, in float32: itself, its gradient, two moments
    # of Adam, a target, and a copy for a checkpoint.
    assert parts["parameters"] == 6 * 4 * (policy + CRITICS + 1)
    assert parts["replay"] >= 100_000 * 17 * 4
    main = memory_of(asked, ROBOT, resolve(asked, MACHINE, ROBOT))
    assert main.learner > parts["parameters"], "and likewise in main memory"


def test_the_critics_are_as_large_as_they_are_counted():
    pytest.importorskip("torch")
    from tianji.algorithms.sac.model import build_model, build_networks

    asked = config(SAC, num_envs=8)
    networks = build_networks(build_model(ROBOT.spaces, asked), ROBOT.spaces, asked)
    apart = networks.critics, networks.temperature
    built = sum(p.numel() for module in apart for p in module.parameters())
    assert load_algorithm("sac").learner_size(ROBOT.spaces, asked).num_parameters == built
    assert built == CRITICS + 1


def test_sac_keeps_the_layers_of_three_passes_over_an_image_in_float32(free):
    free(100)
    seen = Probe(
        Spaces(GAMES.spaces.observation, ROBOT.spaces.action), False, "in words", False, None
    )
    found, less = (
        resolve(config(SAC, num_envs=8, model={"precision": kind}), MACHINE, seen).gpu_bytes
        for kind in ("auto", "bfloat16")
    )
    dqn = plan({**DQN, "batch_size": 256}).gpu_bytes
    assert less["activations"] == 3 * dqn["activations"] > 0
    assert found["activations"] == 2 * less["activations"]


@pytest.mark.parametrize(("torso", "layers"), [("nature", 4), ("impala", 19)])
def test_layers_of_a_torso_are_counted_as_they_are(torso, layers):
    torch = pytest.importorskip("torch")
    from tianji.models.networks.encoder import TORSOS

    built, found = TORSOS[torso]((4, 84, 84), 1.0), []
    for module in built.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.register_forward_hook(lambda _, __, out: found.append(math.prod(out.shape)))
    with torch.no_grad():
        built(torch.zeros(1, 4, 84, 84))
    counted = torso_outputs((4, 84, 84), torso)
    assert len(counted) == layers
    assert counted[0] == 4 * 84 * 84
    assert sum(counted[1:]) >= sum(found) and set(found) <= set(counted[1:])


def test_messages_of_a_buffer_with_its_own_worker_are_shared_memory():
    def bytes_of(algorithm, **values):
        asked = config(algorithm, num_envs=64, num_actors=2, device="cpu", **values)
        return resolve(asked, MACHINE, GAMES).shared_memory_bytes

    apart = {"plan": {"buffer_worker": "buffer"}}
    together, messages = bytes_of(PPO), bytes_of(PPO, **apart) - bytes_of(PPO)
    assert together > messages > 64 * 64 * 84 * 84, "a batch is sent"
    assert bytes_of(PPO, engine="inline", **apart) == bytes_of(PPO, engine="inline")
    dqn = {"name": "dqn", "replay_size": 100_000}
    never, always = (
        bytes_of(dqn, **apart, checkpoint={"replay": saves}) for saves in (False, True)
    )
    assert always - never >= 2 * 100_000 * 84 * 84, "the items go to a checkpoint and come back"
