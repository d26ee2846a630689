"""Config to plan: every derived number has its arithmetic here."""

import json
import math
import mmap

import pytest

from tests.fakes.scripted import SPACES, scripted_layout
from tests.unit.planning.plans import REPLAY, SCRIPTED, config, plan_for
from tianji.buffer.stores.ring_layout import RingLayout
from tianji.channels.layout import PLACE_FIELD, STANDARD_FIELDS, Layout
from tianji.channels.memory import to_pages
from tianji.channels.orders import Control
from tianji.channels.shm import lane_bytes
from tianji.config.plan import RunPlan
from tianji.devices.nvml import Gpu
from tianji.engines.assembly.wiring import bell_names
from tianji.errors import UsageError
from tianji.planning.resolve.places import check_gpu_replay
from tianji.programs.one_group import program_for
from tianji.types import Field


@pytest.mark.parametrize(
    ("cores", "num_envs", "num_actors"),
    [(1, 8, 1), (2, 8, 1), (3, 8, 2), (4, 8, 2), (4, 9, 3), (5, 8, 4), (8, 7, 7), (64, 8, 8)],
)
def test_actors_take_the_cores_that_the_learner_leaves_and_share_evenly(
    cores, num_envs, num_actors
):
    plan = plan_for(config(num_envs=num_envs), cores)
    assert plan.num_actors == num_actors
    assert plan.envs_per_actor * num_actors == num_envs


def test_actors_that_were_asked_for_are_not_limited_by_cores():
    plan = plan_for(config(num_actors=8), cores=2)
    assert (plan.num_actors, plan.envs_per_actor) == (8, 1)


@pytest.mark.parametrize(
    ("num_envs", "num_actors", "suggested"), [(8, 3, 9), (10, 4, 8), (2, 4, 4), (7, 2, 8)]
)
def test_environments_that_cannot_be_shared_evenly_are_refused_with_a_number_that_can(
    num_envs, num_actors, suggested
):
    with pytest.raises(UsageError) as told:
        plan_for(config(num_envs=num_envs, num_actors=num_actors))
    assert f"num_envs = {num_envs}" in str(told.value)
    assert f"num_actors = {num_actors}" in str(told.value)
    assert str(told.value).endswith(f"such as num_envs = {suggested}.")
    assert plan_for(config(num_envs=suggested, num_actors=num_actors))


@pytest.mark.parametrize(
    ("cores", "num_actors", "asked", "threads"),
    [(4, 2, "auto", 2), (2, 1, "auto", 1), (2, 8, "auto", 1), (4, 2, 3, 3)],
)
def test_the_learner_has_the_threads_that_actors_leave(cores, num_actors, asked, threads):
    plan = plan_for(config(num_actors=num_actors, learner_threads=asked), cores)
    assert plan.learner_threads == threads


def test_every_worker_is_pinned_to_cores_of_its_own():
    plan = plan_for(config(num_actors=2), cores=(1, 4, 5, 7))
    assert plan.cores == {"learner": (1, 4), "actor-0": (5,), "actor-1": (7,)}


@pytest.mark.parametrize(
    ("cores", "values"),
    [
        (2, {"num_actors": 2}),
        (4, {"num_actors": 2, "learner_threads": 3}),
        (4, {"num_actors": 2, "engine": "inline"}),
        (4, {"num_actors": 2, "engine": "virtual"}),
        (4, {"num_actors": 2, "evaluate": {"period_s": 1}}),
    ],
)
def test_nobody_is_pinned_where_two_would_share_a_core_or_all_are_one_process(cores, values):
    assert plan_for(config(**values), cores).cores == {}


def test_nobody_is_pinned_who_asks_not_to_be():
    assert plan_for(config(num_actors=2, plan={"pin": False}), cores=4).cores == {}


def test_a_queue_needs_slots_for_what_is_used_waiting_and_being_made():
    plan = plan_for(config(num_actors=2, max_lag=1))
    assert plan.steps_per_unroll == 4 * 4
    assert plan.unrolls_per_version == 8 * 4 // 16 == 2
    assert (plan.warmup_unrolls, plan.replay_rows) == (0, 0)
    assert plan.num_slots == 2 * (1 + 2) + 2


def test_a_pool_of_several_batches_has_slots_for_all_of_them():
    one, four = (
        plan_for(config({"name": "ppo", "pool_batches": batches}, num_actors=2))
        for batches in (1, 4)
    )
    assert four.num_slots == one.num_slots + 3 * one.unrolls_per_version


@pytest.mark.parametrize(("max_lag", "lag_target"), [(0, 0), (1, 1), (5, 1)])
def test_pacing_aims_at_one_version_of_lag_or_at_none(max_lag, lag_target):
    plan = plan_for(config(num_actors=1, max_lag=max_lag))
    assert (plan.max_lag, plan.lag_target) == (max_lag, lag_target)
    assert plan.num_slots == plan.unrolls_per_version * (lag_target + 2) + 1


def test_replay_has_memory_of_its_own():
    plan = plan_for(config(REPLAY, num_envs=4, num_actors=2, max_lag=1))
    assert plan.num_rows == 4 + 3 - 1
    assert plan.steps_per_unroll == 4 * 2, "repeated rows are no steps of the unroll"
    assert plan.unrolls_per_version == 16 // 8
    assert plan.warmup_unrolls == 5, "33 steps are begun with the fifth unroll of 8"
    assert plan.replay_rows == 25, "of 4 environments: 100 steps"
    assert plan.num_slots == 2 * 3 + 2
    assert plan.ratio == 8.0


def test_a_warm_up_needs_no_slots():
    asked = {**REPLAY, "warmup_steps": 200}
    plan = plan_for(config(asked, num_envs=4, num_actors=2))
    assert plan.num_slots == 2 * 3 + 2


def test_bytes_are_those_of_the_layout_and_the_lanes():
    plan = plan_for(config(num_actors=2))
    layout = scripted_layout(4, 4, more=(PLACE_FIELD,))
    assert Layout.from_json(plan.layout) == layout
    assert plan.slot_bytes == layout.slot_bytes
    lanes = 2 * lane_bytes(plan.num_slots)
    parts = (layout.slot_bytes * plan.num_slots, lanes, 1)
    pages = sum(math.ceil(part / mmap.PAGESIZE) for part in parts)
    assert plan.shared_memory_bytes == pages * mmap.PAGESIZE, "slots, lanes, and control"


@pytest.mark.parametrize("num_actors", [1, 20, 100])
def test_the_control_segment_is_planned_as_large_as_it_is(num_actors):
    asked = config(num_envs=num_actors, num_actors=num_actors, evaluate={"period_s": 5})
    plan = plan_for(asked)
    streams = (
        plan.slot_bytes * plan.num_slots,
        plan.num_actors * lane_bytes(plan.num_slots),
    )
    program = program_for(asked, plan)
    built = Control.create(program.kinds(), bell_names(program)).segment.nbytes
    assert plan.shared_memory_bytes == sum(map(to_pages, (*streams, built)))


def test_final_observations_have_fields_where_the_world_keeps_them_apart():
    plan = plan_for(config(num_actors=2), keeps_final=True)
    assert plan.keeps_final
    assert Layout.from_json(plan.layout).fields == (
        Field("obs", "float32", (3,), "obs"), Field("final_obs", "float32", (3,)),
        Field("action", "int64"), Field("finished", "int64"), *STANDARD_FIELDS, PLACE_FIELD,
    )  # fmt: skip


def test_a_version_that_is_no_multiple_of_an_unroll_is_refused():
    asked = {**SCRIPTED, "steps_per_version": 20}
    with pytest.raises(UsageError) as told:
        plan_for(config(asked, num_actors=2))
    assert str(told.value) == (
        "A version takes 20 steps, which is not a multiple of the 16 steps of one unroll (unroll "
        "length 4 x 4 environments of an actor)."
    )


def test_what_the_algorithm_cannot_do_is_refused_first(monkeypatch):
    def refuse(spaces, asked):
        assert spaces is SPACES
        raise UsageError(f"not with {asked.num_envs} environments")

    from tests.fakes import scripted

    record = scripted.ALGORITHM.__class__(**{**vars(scripted.ALGORITHM), "check": refuse})
    monkeypatch.setattr(scripted, "ALGORITHM", record)
    with pytest.raises(UsageError, match="not with 8 environments"):
        plan_for(config())


def test_the_notes_say_who_got_what():
    notes = plan_for(config(num_actors=2), cores=4).notes
    assert notes == (
        "4 usable cores: 2 actors with 4 environments each, 1 learner with 2 threads, which "
        "also holds the buffer.",
        "Environments: in words.",
    )


@pytest.mark.parametrize(
    ("values", "is_told"),
    [
        ({"max_lag": 2}, True),
        ({"max_lag": 1}, False),
        ({"max_lag": 2, "lag_target": 0}, False),
        ({"max_lag": 2, "balance": "free"}, False),
        ({"max_lag": 2, "algorithm": SCRIPTED}, False),
    ],
)
def test_the_notes_say_what_is_stored_ahead(values, is_told):
    plan = plan_for(config(**{"algorithm": {**REPLAY, "warmup_steps": 144}, **values}))
    # A fifth of the 9 unrolls of the warm-up and the one of the first version, each of 16 steps.
    note = "While production is uneven, actors store up to 2 unrolls ahead in the replay store."
    assert (note in plan.notes) is is_told


def test_a_plan_survives_json_and_cannot_be_changed():
    plan = plan_for(config(REPLAY, num_envs=4))
    other = RunPlan.model_validate(json.loads(json.dumps(plan.model_dump(mode="json"))))
    assert other == plan
    assert other.steps_per_unroll == plan.steps_per_unroll
    with pytest.raises(ValueError, match="frozen"):
        plan.num_slots = 3
    with pytest.raises(ValueError, match="num_slot"):
        RunPlan.model_validate({**plan.model_dump(), "num_slot": 3})


def test_cores_that_others_use_too_are_not_pinned():
    from tianji.config.machine import Machine
    from tianji.envs.build import probe
    from tianji.planning.resolve.resolve import resolve

    chosen = config()
    found = probe(chosen.env, chosen.env_kwargs)
    own = resolve(chosen, Machine((0, 1), 1 << 33), found)
    shared = resolve(chosen, Machine((0, 1), 1 << 33, is_shared=True), found)
    wide = resolve(
        chosen.model_copy(update={"num_actors": 1, "learner_threads": 1}),
        Machine((0, 1, 2, 3), 1 << 33),
        found,
    )
    assert own.cores and not shared.cores and not wide.cores


def test_replay_on_a_gpu_must_fit_there(monkeypatch):
    gpu = Gpu(0, "one", 10 * 2**30, free_bytes=10**9)
    monkeypatch.setattr("tianji.planning.resolve.places.list_gpus", lambda: [gpu])
    check_gpu_replay(config(), "cuda:0", 7 * 10**8)
    with pytest.raises(UsageError, match=r"its observations take 0.8 GiB.*smaller replay_size"):
        check_gpu_replay(config(), "cuda:0", 9 * 10**8)
    with pytest.raises(UsageError, match=r"on the CPU.*--replay-on host"):
        check_gpu_replay(config(), "cpu", 1)
    with pytest.raises(UsageError, match="a process of its own"):
        check_gpu_replay(config(plan={"buffer_worker": "buffer"}), "cuda:0", 1)


def test_observations_on_a_gpu_take_no_main_memory():
    here, there = (
        RingLayout(scripted_layout(4, 2), 2, 1000, 1, has_observations=has) for has in (True, False)
    )
    assert here.nbytes - there.nbytes == pytest.approx(here.observation_bytes, abs=64)
