"""Balance: who may produce, who may consume. A pure function of counts; no clock, no I/O.

One version consumes what `unrolls_per_version` (B) unrolls produce: a queue takes them, a replay
store samples ratio times as many items. Counting unrolls from the start of the run (or of the
resume), with W unrolls of warm-up, version v may be made when

    kept >= W + B (v + 1)                                          consumption waits for production

and an unroll that is started now, as number s, is taken when version floor((s - W) / B) is the
learner's. It was begun under version v at the earliest, so its lag stays at the set-point when

    started < W + B (v + 1 + lag_target)                           production waits for consumption

Both sides then run at the pace of the slower one and items taken per item put is the serial ratio,
whatever the speeds. With lag_target 0 this is serial training. Nothing here can block an insert:
what is withheld is the permission to *start* an unroll.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SetPoint:
    """SetPoint(unrolls_per_version=2, warmup_unrolls=0, lag_target=1)"""

    unrolls_per_version: int
    warmup_unrolls: int
    lag_target: int


@dataclass(frozen=True, slots=True)
class Situation:
    """What has happened since the start or the resume; all in unrolls, version in versions."""

    versions_made: int
    kept: int
    """Arrived and not discarded."""
    outstanding: tuple[int, ...]
    """Per actor: granted and not yet arrived."""
    granted: tuple[int, ...]
    """Per actor: granted in all; breaks ties, so that actors take turns."""
    present: tuple[bool, ...]
    """Per actor: False when it was given up. One that is still starting is present: its share is
    kept for it, or serial training would depend on who comes first."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """Allowance(grants=(0, 1), may_take=True): actor 0, then actor 1, may start one unroll each."""

    grants: tuple[int, ...]
    """Actors to grant one unroll each, in order; an actor may stand here more than once."""
    may_take: bool


def balance(point: SetPoint, now: Situation) -> Allowance:
    ahead = point.warmup_unrolls + point.unrolls_per_version * (now.versions_made + 1)
    allowed = ahead + point.unrolls_per_version * point.lag_target
    started = now.kept + sum(now.outstanding)
    return Allowance(
        grants=_share(max(0, allowed - started), now, is_serial=point.lag_target == 0),
        may_take=now.kept >= ahead,
    )


def _share(budget: int, now: Situation, is_serial: bool) -> tuple[int, ...]:
    """Give the budget to the actors that hold least, in turns: a slow actor keeps what it has and
    takes nothing from the others. Serial training deals out rounds evenly instead, whoever is
    faster or attaches first: the same data in every engine."""
    outstanding, granted = list(now.outstanding), list(now.granted)
    able = [index for index, present in enumerate(now.present) if present]
    grants = []
    for _ in range(budget if able else 0):
        actor = min(
            able,
            key=lambda index: (0 if is_serial else outstanding[index], granted[index], index),
        )
        outstanding[actor] += 1
        granted[actor] += 1
        grants.append(actor)
    return tuple(grants)
