"""`tianji plan [PRESET] [--key value ...] [--fresh]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tianji.cli.output import Outcome, people
from tianji.cli.settings_help import asks_for_help, train_settings_page, without_help
from tianji.config.machine import Machine, read_machine
from tianji.config.overrides import resolve_tokens

if TYPE_CHECKING:
    from tianji.planning.planner import Planned

USAGE = "tianji plan [PRESET] [--key value ...] [--fresh]"
ABOUT = """\
Measure a run on this machine and find the best shares of its cores. The page shows processes, \
cores, threads and environments of each role, the expected rates, the bottleneck, and the gain of \
one more core. It takes less than a minute, and longer if settings of the algorithm are `auto`. \
The measurement is saved: `tianji train` and `tianji plan` with the same settings use it. --fresh \
measures again.

All settings of `tianji train` work here. The plan keeps what you set and solves for the rest. \
Nothing is measured for algorithms that gather gradients (such as rennala-nigt): their page \
describes a round and its cost. Presets: {presets}.

These are the settings of {algorithm}. Name a preset or --algorithm to see those of another."""
FRESH_FLAG = "--fresh"


def plan(*tokens: str) -> Outcome:
    """Measure this machine for a run and share its cores."""
    resolved = resolve_tokens([t for t in without_help(tokens) if t != FRESH_FLAG])
    if asks_for_help(tokens):
        return train_settings_page(resolved.config, USAGE, ABOUT)
    for note in resolved.notes:
        people().print(f"Note: {note}", markup=False)
    from tianji.cli.plan_page import plan_page
    from tianji.display.waiting import tell_progress
    from tianji.planning.planner import measured_plan

    config, machine = resolved.config, read_machine()
    with tell_progress() as tell:
        env = config.envs or config.env
        planned = measured_plan(config, env, machine, tell, fresh=FRESH_FLAG in tokens)
    if planned.solved is None:
        from tianji.cli.gather_page import gather_page, gather_report

        people().print(gather_page(planned, machine))
        return Outcome(gather_report(planned, machine))
    people().print(plan_page(planned, machine))
    return Outcome(_report(planned, machine))


def _report(planned: Planned, machine: Machine) -> dict[str, Any]:
    """What scripts read."""
    from tianji.cli.plan_page import RATES
    from tianji.costs.work import largest_noise
    from tianji.planning.keep import key_of

    assert planned.solved is not None
    profile, solution = planned.solved.profile, planned.solved.solution
    chosen, demand = solution.chosen, solution.demand
    predicted = chosen.prediction
    return {
        "planning_s": planned.planning_s,
        "bottleneck": predicted.bottleneck,
        "predicted": {name: getattr(predicted, name) for name in RATES},
        "lag_versions": predicted.lag_versions,
        "ratio": demand.ratio,
        "staleness": demand.staleness,
        "roles": solution.roles(),
        "memory_bytes": chosen.memory.total,
        "memory": {**chosen.memory.parts, "total": chosen.memory.total, "gpu": 0},
        "reasons": list(solution.reasons),
        "advice": list(solution.advice),
        "warnings": list(profile.warnings),
        "noise": largest_noise(profile),
        "num_actors": chosen.num_actors,
        "envs_per_actor": chosen.envs_per_actor,
        "actor_threads": chosen.actor_threads,
        "learner_threads": chosen.learner_threads,
        "settings": dict(planned.solved.settings),
        "from_cache": planned.solved.from_cache,
        "profile_key": key_of(planned.config, machine),
    }
