"""The disturbances, in order, and what is read off the tape of a run that went through them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.disturbances.stage import Phase
from benchmarks.disturbances.tape import Tape

SETTLE_S = 6.0
SETTLED_AFTER_S = 5.0
"""What must hold holds from so long after a disturbance."""
PHASE_S = 12.0
BURST_S = 0.5


class Disturbed(Protocol):
    """A run, real (disturbances/stage.py) or simulated, that a script can disturb."""

    speeds: Any

    def run_for(self, seconds: float) -> None: ...

    def kill(self, actor: int) -> None:
        """Kill an actor; it is started again."""
        ...


def bursts(run: Disturbed) -> None:
    """Environments are by turns twice as fast and four times as slow as usual."""
    for _ in range(round(PHASE_S / BURST_S / 2)):
        run.speeds.set(environments=0.5)
        run.run_for(BURST_S)
        run.speeds.set(environments=4.0)
        run.run_for(BURST_S)


PHASES = (
    Phase("learner 2 times slower", lambda run: run.speeds.set(learner=2.0), PHASE_S),
    Phase("learner as before", lambda run: run.speeds.set(), PHASE_S),
    Phase("environments 5 times slower", lambda run: run.speeds.set(environments=5.0), PHASE_S),
    Phase("environments as before", lambda run: run.speeds.set(), PHASE_S),
    Phase("an actor killed", lambda run: run.kill(0), PHASE_S),
    Phase("bursts of the environments", bursts, 0.0),
    Phase("steady again", lambda run: run.speeds.set(), PHASE_S),
)


def follow(run: Disturbed, phases: tuple[Phase, ...], now_s: Callable[[], float]) -> Marks:
    """Go through the phases; return when each began and ended."""
    marks = {}
    for phase in phases:
        began_s = now_s()
        phase.disturb(run)
        run.run_for(phase.seconds)
        marks[phase.name] = began_s, now_s()
    return marks


Marks = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Answer:
    """How a run answered to one disturbance. Rates are environment steps received per second."""

    rate: float
    """Over the whole phase."""
    settled_rate: float
    """From SETTLED_AFTER_S after the disturbance."""
    settled_lag_p95: int
    """The highest of any second from then on, in versions."""
    highest_lag: int
    """Of the whole phase."""
    blocked: int
    blocked_share: float
    """Of the time of the actors."""


def judge(tape: Tape, start_s: float, end_s: float, num_actors: int) -> Answer:
    settled_s = start_s + SETTLED_AFTER_S
    blocked, blocked_s = tape.blocked(start_s, end_s)
    return Answer(
        rate=tape.rate(start_s, end_s),
        settled_rate=tape.rate(settled_s, end_s),
        settled_lag_p95=max(lag for lag in by_second(tape, settled_s, end_s) if lag is not None),
        highest_lag=tape.highest_lag(start_s, end_s),
        blocked=blocked,
        blocked_share=blocked_s / (end_s - start_s) / num_actors,
    )


def by_second(tape: Tape, start_s: float, end_s: float) -> list[int | None]:
    """Return the p95 of the lag of each second."""
    return [tape.lag_p95(start_s + i, start_s + i + 1) for i in range(int(end_s - start_s))]


def series(tape: Tape, marks: Mapping[str, tuple[float, float]], num_actors: int) -> dict[str, Any]:
    """Return what is drawn: figures of each second, and when each phase began, from the start of
    the first second."""
    begins = [start_s for start_s, _ in marks.values()]
    first_s, last_s = begins[0] - 4.0, max(end_s for _, end_s in marks.values())
    seconds = [first_s + i for i in range(int(last_s - first_s))]
    return {
        "rate": [round(tape.rate(at_s, at_s + 1), 1) for at_s in seconds],
        "lag_p95": by_second(tape, first_s, last_s),
        "blocked_share": [
            round(tape.blocked(at_s, at_s + 1)[1] / num_actors, 4) for at_s in seconds
        ],
        "begins": {name: round(start_s - first_s, 3) for name, (start_s, _) in marks.items()},
    }
