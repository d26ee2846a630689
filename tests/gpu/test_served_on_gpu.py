"""A server's inference and PPO's learner in one process: frames cross once, and few calls do all.

The server evaluates rows on a stream of its own; the learner then reads their twins.
"""

import numpy as np
import pytest
import torch

from tests.fakes.graphs import Calls
from tests.gpu.test_learner import ACTIONS, ENVS, ROWS, SPACES, make
from tianji.algorithms.accelerators.inference import HostRows, Network, build_inference
from tianji.algorithms.accelerators.lanes import GpuLanes
from tianji.algorithms.actor_critic.model import POLICY
from tianji.devices.joining import Joined
from tianji.devices.twins import TWINS
from tianji.devices.waits import WAITS
from tianji.models.tensors import Snapshot, flatten
from tianji.types import Batch, Parts, Stamp

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

LANES = 4
EACH = ENVS // LANES
SETTINGS = {"epochs": 3, "minibatch_size": ROWS * ENVS // 2}


@pytest.fixture(autouse=True)
def exact():
    """Products in full float32."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


def make_slots(seed, num_slots=2 * LANES):
    rng = np.random.default_rng(seed)
    shape = (num_slots, ROWS, EACH)
    valid = rng.random(shape) > 0.05
    terminated = (rng.random(shape) < 0.05) & valid
    return {
        "obs": rng.integers(256, size=(num_slots, ROWS + 4, EACH, 84, 84), dtype=np.uint8),
        "age": rng.integers(20, size=(num_slots, ROWS + 1, EACH), dtype=np.uint8),
        "action": rng.integers(ACTIONS, size=shape),
        "log_prob": np.full(shape, -np.log(ACTIONS), np.float32),
        "reward": rng.standard_normal(shape).astype(np.float32),
        "terminated": terminated,
        "truncated": (rng.random(shape) < 0.02) & valid & ~terminated,
        "valid": valid,
    }


def make_batch(slots, chosen, is_whole=False):
    """Lay unrolls side by side; their frames stay in their slots, unless is_whole."""
    arrays = {name: np.concatenate([x[slot] for slot in chosen], 1) for name, x in slots.items()}
    if not is_whole:
        arrays["obs"] = Parts(tuple(slots["obs"][slot] for slot in chosen), 1)
    stamps = tuple(Stamp(actor, 0, 0, 0, ROWS * EACH, 0, 0) for actor in range(len(chosen)))
    return Batch(arrays, stamps, len(chosen), ROWS * ENVS)


def serve(lanes, chosen):
    """Evaluate all rows of one slot for each lane, some lanes at a time."""
    out_LNA = np.zeros((LANES, EACH, ACTIONS), np.float32)
    stream = torch.cuda.Stream(priority=-1)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        lanes._stream = None
        for row in range(ROWS):
            asked = [(lane, slot, row) for lane, slot in enumerate(chosen)]
            some = 1 + row % LANES
            for requests in (asked[:some], asked[some:]):
                if requests:
                    lanes.evaluate(requests, out_LNA)
            yield row, out_LNA


def make_lanes(model, slots):
    network = Network(model.net, POLICY, ACTIONS)
    return GpuLanes(network, SPACES.observation, slots, LANES, torch.device("cuda"))


def test_the_server_computes_what_actors_would():
    slots, chosen = make_slots(0), [5, 0, 3, 6]
    on_cpu, on_gpu = make("ppo", "cpu")[0], make("ppo", "cuda")[0]
    lanes = make_lanes(on_gpu, slots)
    rows = HostRows(build_inference(on_cpu.net, POLICY), SPACES.observation)
    expected = np.empty((EACH, ACTIONS), np.float32)
    for row, out_LNA in serve(lanes, chosen):
        for lane, slot in enumerate(chosen):
            unroll = {name: x[slot] for name, x in slots.items()}
            rows.begin(unroll)
            rows.submit(unroll, row)
            rows.collect(expected)
            np.testing.assert_allclose(out_LNA[lane], expected, rtol=1e-3, atol=1e-5)


def test_an_evaluation_is_a_copy_a_graph_and_a_copy():
    slots = make_slots(0)
    lanes = make_lanes(make("ppo", "cuda")[0], slots)
    out_LNA = np.zeros((LANES, EACH, ACTIONS), np.float32)
    for row in range(2):
        lanes.evaluate([(lane, lane, row) for lane in range(3)], out_LNA)
    with Calls() as calls:
        lanes.evaluate([(lane, lane, 2) for lane in range(3)], out_LNA)
    assert calls.count == 2, "a graph is no call of torch"


def test_the_learner_finds_what_the_server_has_uploaded():
    """Rows are changed on the host after they have crossed: only the last crosses again."""
    slots, chosen = make_slots(1), [4, 1, 7, 2]
    lanes = make_lanes(make("ppo", "cuda")[0], slots)
    for _ in serve(lanes, chosen):
        pass
    given = Parts(tuple(slots["obs"][slot] for slot in chosen), 1)
    expected = np.concatenate(given.arrays, 1)
    slots["obs"][:, :-1] = 0
    joined = Joined(given, torch.device("cuda"))
    for _ in range(2):
        joined.tensor.zero_()
        joined.fill(given)
        np.testing.assert_array_equal(joined.tensor.cpu().numpy(), expected)


def test_versions_from_twins_are_those_from_uploads_and_wait_once():
    slots = make_slots(2)
    served, uploaded = (make("ppo", "cuda", **SETTINGS) for _ in range(2))
    lanes = make_lanes(served[0], slots)
    model, update = served
    snapshot = Snapshot(model)
    buffer = np.empty(snapshot.nbytes, np.uint8)
    for version, chosen in enumerate(([5, 0, 3, 6], [4, 1, 7, 2], [0, 2, 3, 1])):
        for _ in serve(lanes, chosen):
            pass
        assert TWINS.find_all([slots["obs"][slot] for slot in chosen], ROWS + 3) is not None
        before = WAITS.count
        torch.cuda.set_sync_debug_mode("error" if version else "default")  # the first one records
        try:
            train(update, make_batch(slots, chosen))
            snapshot.write_to(buffer)
            found = update.metrics()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert WAITS.count == before + 1 or not version
        train(uploaded[1], make_batch(slots, chosen, is_whole=True))
        assert found == pytest.approx(uploaded[1].metrics(), rel=0.02, abs=2e-3)
    parameters = (flatten(one[0]).vector_P for one in (served, uploaded))
    torch.testing.assert_close(*parameters, rtol=1e-2, atol=1e-3)


def test_a_version_is_a_few_calls_beside_its_graphs():
    slots, chosen = make_slots(3), [0, 1, 2, 3]
    model, update = make("ppo", "cuda", **SETTINGS)
    lanes = make_lanes(model, slots)
    for _ in serve(lanes, chosen):
        pass
    for _ in range(2):
        train(update, make_batch(slots, chosen))
        update.metrics()
    with Calls() as calls:
        train(update, make_batch(slots, chosen))
        update.metrics()
    assert calls.count < 30


def train(update, batch):
    for minibatch in update.minibatches(batch, 0.0):
        minibatch.gradient()
        minibatch.step()
