"""Plans and records of metrics to explain."""

from __future__ import annotations

from typing import Any

from tianji.config.plan import Prediction, RunPlan
from tianji.records import NO_METRICS, NO_RATES


def make_plan(
    promised: float | None = None, bottleneck: Any = "training", **changes: Any
) -> RunPlan:
    """promised: steps per second that the plan predicts."""
    prediction = None
    if promised is not None:
        prediction = Prediction(
            produced=promised, received=promised, trained=3 * promised, lag_versions=1.0,
            bottleneck=bottleneck,
        )  # fmt: skip
    values: dict[str, Any] = {
        "num_actors": 1, "envs_per_actor": 8, "learner_threads": 1, "cores": {},
        "unroll_length": 16, "lookahead": 1, "num_rows": 16, "keeps_final": False, "layout": {},
        "slot_bytes": 1, "num_slots": 4, "replay_rows": 0, "unrolls_per_version": 1,
        "warmup_unrolls": 0, "lag_target": 1, "max_lag": 1, "ratio": 1.0,
        "shared_memory_bytes": 4, "notes": (), "prediction": prediction,
        "source": "rule" if prediction is None else "measured",
    }  # fmt: skip
    return RunPlan(**{**values, **changes})


def make_record(
    actors: float = 0.25,
    learner: float = 0.97,
    num_actors: int = 1,
    environment: float = 0.6,
    no_core: float = 0.0,
    cores: int = 2,
    **changes: Any,
) -> dict[str, Any]:
    """Ten seconds of a run whose sides are busy for these shares of the time.

    environment: its share of an actor's work. no_core: share of the time that the learner has none.
    """
    busy_s, learner_s = 10 * actors, 10 * learner
    names = [f"actor-{i}" for i in range(num_actors)]
    of_actor = {"environment": environment * busy_s, "inference": (1 - environment) * busy_s}
    of_learner = {"updates": 0.9, "publishing": 0.04, "buffer": 0.06}
    values: dict[str, Any] = {
        "span_s": 10.0,
        "usable_cores": cores,
        "kind": {**dict.fromkeys(names, "actor"), "learner": "learner"},
        "rates_per_s": {
            **NO_RATES, "produced": 40_000.0, "received": 40_000.0, "trained": 120_000.0
        },
        "worked_s": {
            **{name: dict(of_actor) for name in names},
            "learner": {part: share * learner_s for part, share in of_learner.items()},
        },
        "waited_s": {
            **{name: {"grant": 10 - busy_s, "parked": 0.0, "core": 0.0} for name in names},
            "learner": {
                "unrolls": 10 - learner_s, "late_unrolls": 0.0, "saving": 0.0,
                "core": 10 * no_core,
            },
        },
        "core_s": {**dict.fromkeys(names, busy_s), "learner": learner_s - 10 * no_core},
    }  # fmt: skip
    return {**NO_METRICS, **values, **changes}


def make_gather(**changes: Any) -> dict[str, Any]:
    """Rounds of the first 20 gradients of two actors."""
    values = {
        "rule": "first", "num_gradients": 20, "times": "none", "network": "none",
        "counts": [10, 30], "discarded_steps": 0, "own_steps": 0, "absent": [], "closing_s": 0.0,
        "waiting_for": [], "open_s": 0.1, "rounds_per_s": 1.25, "gradients_per_s": 25.4,
        "discarded_share": 0.1, "discarded_step_share": 0.04, "overdue_share": 0.0,
    }  # fmt: skip
    return {**values, **changes}
