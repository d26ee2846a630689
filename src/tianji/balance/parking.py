"""Decide how many actors may work at once if there are more of them than cores.

After every version all actors get new grants. With more workers than cores they would all wake up
and push the learner off its core, although the run waits for the learner. So while production is
ahead, one actor after the other is parked: it sleeps until its turn comes.

    production was ahead when a version was finished, several times in a row    one fewer
    the learner had to wait for unrolls                                         twice as many

A number that turned out to be too small is tried again only after twice as many versions as
before, so that it does not oscillate. Pure functions of the last state and of what happened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

FIRST_PATIENCE = 4
MOST_PATIENCE = 256


@dataclass(frozen=True, slots=True)
class ParkingState:
    """ParkingState(num_actors=8, active=8)

    calm: versions in a row for which production was ahead.
    patience: calm versions before the next actor is parked.
    """

    num_actors: int
    active: int
    calm: int = 0
    patience: int = FIRST_PATIENCE


def after_version(state: ParkingState, is_ahead: bool) -> ParkingState:
    """Return the state after a version. is_ahead: all that was allowed before it had arrived."""
    calm = state.calm + 1 if is_ahead else 0
    if calm < state.patience or state.active == 1:
        return replace(state, calm=min(calm, MOST_PATIENCE))
    return replace(state, active=state.active - 1, calm=0)


def after_wait(state: ParkingState) -> ParkingState:
    """Return the state after the learner had to wait for unrolls."""
    if state.active == state.num_actors:
        return replace(state, calm=0)
    return replace(
        state,
        active=min(state.num_actors, 2 * state.active),
        calm=0,
        patience=min(2 * state.patience, MOST_PATIENCE),
    )
