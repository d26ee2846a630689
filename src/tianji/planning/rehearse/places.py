"""Rehearse the places where inference may run, to find the fastest.

    trials = try_places(config, config.env, machine, probe, ("served", "actor-gpu"), print)
    trials.best.inference

The number of actors in each place follows from a rule. A place that cannot run is left out, with
the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tianji.config.machine import Machine
from tianji.config.plan import Inference
from tianji.config.run import RunConfig
from tianji.costs.places import PlaceTrial, PlaceTrials
from tianji.engines.spec import RunSpec
from tianji.envs.build import EnvSources, Probe
from tianji.errors import TianjiError
from tianji.planning.rehearse.rehearsal import rehearse
from tianji.planning.resolve.resolve import resolve

REHEARSAL_S = 5.0
LIMIT_S = 120.0  # making 128 Atari environments and recording graphs takes up to 30 s of it


def try_places(
    config: RunConfig,
    env: EnvSources,
    machine: Machine,
    probe: Probe,
    places: Sequence[Inference],
    tell: Callable[[str], None],
) -> PlaceTrials:
    """Return the speed of the run with inference in each of these places; `tell` gets the results.

    Raises the first error if no place works, and KeyboardInterrupt if a person stops it.
    """
    began_s = time.monotonic()
    trials: list[PlaceTrial] = []
    errors: list[TianjiError] = []
    for number, inference in enumerate(places, 1):
        tell(f"Trying inference {inference}, place {number} of {len(places)}.")
        asked = config.model_copy(update={"inference": inference})
        try:
            plan = resolve(asked, machine, probe)
            found = rehearse(RunSpec(asked, plan, probe.spaces, env, Path()), REHEARSAL_S, LIMIT_S)
        except TianjiError as error:
            errors.append(error)
            trials.append(PlaceTrial(inference=inference, failure=str(error)))
            tell(f"Inference {inference} is left out: {error}")
        else:
            trials.append(PlaceTrial(inference=inference, rehearsal=found))
            tell(f"Inference {inference}: {found.received:,.0f} steps/s.")
    if len(errors) == len(trials):
        raise errors[0]
    took_s = time.monotonic() - began_s
    return PlaceTrials(balance=config.balance, trials=tuple(trials), measuring_s=took_s)
