"""Parking: how many actors may be at work at once, where there are more of them than cores.

After every version all actors get new grants. With more workers than cores they would all wake up
and push the learner off its core, although the learner is what the run waits for. While production
is ahead, one actor after the other is therefore parked: it sleeps until its turn comes round.

    production was ahead when a version was finished, several times in a row    one fewer
    the learner had to wait for unrolls                                         twice as many

What turned out to be one too few is tried again only after twice as many versions as before, so
that it does not swing to and fro. A pure function of its own last state and of what happened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

FIRST_PATIENCE = 4
MOST_PATIENCE = 256


@dataclass(frozen=True, slots=True)
class ParkingState:
    """ParkingState(num_actors=8, active=8)"""

    num_actors: int
    active: int
    calm: int = 0
    """Versions in a row for which production was ahead."""
    patience: int = FIRST_PATIENCE
    """Calm versions before the next actor is parked."""


def after_version(state: ParkingState, is_ahead: bool) -> ParkingState:
    """A version is finished. is_ahead: all that was allowed before it had arrived already."""
    calm = state.calm + 1 if is_ahead else 0
    if calm < state.patience or state.active == 1:
        return replace(state, calm=min(calm, MOST_PATIENCE))
    return replace(state, active=state.active - 1, calm=0)


def after_wait(state: ParkingState) -> ParkingState:
    """The learner waits for unrolls."""
    if state.active == state.num_actors:
        return replace(state, calm=0)
    return replace(
        state,
        active=min(state.num_actors, 2 * state.active),
        calm=0,
        patience=min(2 * state.patience, MOST_PATIENCE),
    )
