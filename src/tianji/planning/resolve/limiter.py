"""The rate limiter of a run: its numbers, from what was asked and from the algorithm."""

from __future__ import annotations

from tianji.algorithms.interface import QueueCadence, ReplayCadence
from tianji.balance.samples_per_insert import (
    Groups,
    Limits,
    check_limits,
    limits_around,
    limits_of,
    usual_error_buffer,
)
from tianji.buffer.rate_limited import SLOTS_AT_HAND
from tianji.config.plan import LimiterPlan
from tianji.config.run import LimiterConfig
from tianji.errors import UsageError


def plan_limiter(
    asked: LimiterConfig,
    cadence: QueueCadence | ReplayCadence,
    steps_per_unroll: int,
    unrolls_per_version: int,
    warmup_unrolls: int,
) -> LimiterPlan:
    """Return the limiter; raise UsageError for settings under which a run would come to a stand."""
    is_replay = isinstance(cadence, ReplayCadence)
    per_unroll = steps_per_unroll if is_replay else 1
    per_batch = cadence.trained_steps_per_version if is_replay else unrolls_per_version
    ratio = cadence.ratio if asked.samples_per_insert == "auto" else asked.samples_per_insert
    if not is_replay and ratio != 1:
        raise UsageError(
            f"limiter.samples_per_insert is {ratio:g}, and the run has a queue, which hands out "
            "every unroll once. Leave limiter.samples_per_insert out, or use dqn or apex."
        )
    min_size = (warmup_unrolls + unrolls_per_version) * per_unroll
    if asked.min_size != "auto":
        min_size = asked.min_size
    _check_size(min_size, unrolls_per_version * per_unroll, cadence)
    groups = Groups(per_unroll, per_batch)
    limits = _limits(asked, ratio, min_size, groups)
    check_limits(limits, groups)
    return LimiterPlan(
        samples_per_insert=limits.samples_per_insert,
        min_size=limits.min_size,
        min_diff=limits.min_diff,
        max_diff=limits.max_diff,
        items_per_batch=per_batch,
        items_per_unroll=per_unroll,
        is_replay=is_replay,
    )


def _limits(asked: LimiterConfig, ratio: float, min_size: int, groups: Groups) -> Limits:
    if not asked.bounds:
        error_buffer = asked.error_buffer
        if error_buffer == "auto":
            error_buffer = usual_error_buffer(ratio, min_size, groups)
        return limits_around(ratio, min_size, error_buffer)
    if len(asked.bounds) != 2 or asked.error_buffer != "auto":
        raise UsageError(
            f"limiter.bounds has {len(asked.bounds)} numbers and limiter.error_buffer is "
            f"{asked.error_buffer}: give either two bounds, such as --limiter.bounds 0,64, or an "
            "error buffer."
        )
    return Limits(ratio, min_size, *asked.bounds)


def _check_size(min_size: int, version_size: int, cadence: QueueCadence | ReplayCadence) -> None:
    if min_size < version_size:
        raise UsageError(
            f"limiter.min_size is {min_size}, and one version takes {version_size} items: the "
            f"first batch must be in the store. Use --limiter.min-size {version_size} or more."
        )
    if isinstance(cadence, ReplayCadence) and min_size > cadence.capacity_steps:
        raise UsageError(
            f"limiter.min_size is {min_size}, and the replay store keeps {cadence.capacity_steps} "
            "steps: the learner would wait forever. Use a smaller --limiter.min-size or a larger "
            "replay store."
        )


def limiter_warning(plan: LimiterPlan) -> str | None:
    """Return what a person should know about these limits."""
    return check_limits(limits_of(plan), Groups(plan.items_per_unroll, plan.items_per_batch))


def unrolls_ahead(plan: LimiterPlan, num_actors: int) -> int:
    """Return the unrolls that can be in work, blocked, or in a queue at once."""
    in_queue = 0 if plan.is_replay else max(plan.min_size, int(plan.max_diff))
    return in_queue + SLOTS_AT_HAND * num_actors


def limiter_slots(plan: LimiterPlan, num_actors: int) -> int:
    """Return the slots that a run with this limiter uses at most."""
    # In a queue, beside these, the batch that is in use. With replay, what was blocked and may
    # enter stays in its slot until the next batch.
    more = SLOTS_AT_HAND * num_actors if plan.is_replay else plan.items_per_batch
    return unrolls_ahead(plan, num_actors) + more
