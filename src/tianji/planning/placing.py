"""Put inference in the fastest place, as test runs showed: made now, or kept from earlier plans."""

from __future__ import annotations

from tianji.config.machine import Machine
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.envs.build import EnvSources, Probe
from tianji.planning.keep import Tell, kept_places, places_key, save
from tianji.planning.planned import Placed
from tianji.planning.resolve.places import choose_places, describe, places_to_try
from tianji.planning.resolve.resolve import resolve

NOT_TRIED = (
    "Inference is where a rule puts it. `tianji plan` with the same settings measures the places "
    "for this and later runs."
)

NOT_KEPT = (
    "These results are not kept for later runs, because a test run failed. Set --inference to use "
    "a place without measuring again."
)


def known_places(
    config: RunConfig, env: EnvSources, machine: Machine, probe: Probe
) -> Placed | None:
    """Return the kept test runs of such a run on this machine, if there are any."""
    device = choose_places(config, machine, probe).device
    trials = kept_places(config, env, machine, device)
    return None if trials is None else Placed(trials, from_cache=True)


def try_all(
    config: RunConfig, env: EnvSources, machine: Machine, probe: Probe, tell: Tell
) -> Placed:
    """Make a test run for every place that makes sense, and keep the results if none failed: the
    reason, such as a GPU that another program fills, may be gone the next time."""
    from tianji.planning.rehearse.places import try_places

    trials = try_places(config, env, machine, probe, places_to_try(config, machine, probe), tell)
    if any(trial.rehearsal is None for trial in trials.trials):
        tell(NOT_KEPT)
    elif env == config.env:  # a callable has no name to keep it under
        device = choose_places(config, machine, probe).device
        save(places_key(config, machine, device), trials)
    return Placed(trials, from_cache=False)


def place(config: RunConfig, machine: Machine, probe: Probe, placed: Placed) -> RunPlan:
    """Return the plan with inference in the fastest place, with the reasons among its notes."""
    best = placed.trials.best.inference
    plan = resolve(config.model_copy(update={"inference": best}), machine, probe)
    reasons = *placed.trials.reasons, describe(best, plan.device)
    return plan.model_copy(update={"notes": (*plan.notes, *reasons)})
