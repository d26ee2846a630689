"""The set point of the balance: when to produce and when to consume. Counts only.

One version consumes what `unrolls_per_version` (B) unrolls produce: a queue takes them, a replay
store samples ratio times as many items. Counting unrolls from the start of the run (or of the
resume), with W unrolls of warm-up, version v may be made when

    kept >= W + B (v + 1)                        due: consumption waits for production

and an unroll that is started now, as number s, is taken when version floor((s - W) / B) is the
learner's. It was begun under version v at the earliest, so its lag stays at the set-point when

    started < W + B (v + 1 + lag_target)         allowed: production waits for consumption

`kept` counts what arrived and was not discarded, `started` adds what is granted and has not yet
arrived. Both sides then run at the pace of the slower one, and items taken per item put is the
serial ratio, whatever the speeds. With lag_target 0 this is serial training. Nothing here can block
an insert: only the permission to *start* an unroll is withheld. turns.py decides which actor gets
that permission, and how many may work at once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SetPoint:
    """SetPoint(unrolls_per_version=2, warmup_unrolls=0, lag_target=1)"""

    unrolls_per_version: int
    warmup_unrolls: int
    lag_target: int

    def due(self, versions_made: int) -> int:
        """Return how many unrolls must have been kept for the next version."""
        return self.warmup_unrolls + self.unrolls_per_version * (versions_made + 1)

    def allowed(self, versions_made: int) -> int:
        """Return how many unrolls may have been started before the next version is made."""
        return self.due(versions_made) + self.unrolls_per_version * self.lag_target
