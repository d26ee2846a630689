"""Reverb's rate limiter: a window around a number of samples per insert. Counts only, no clock.

With I items inserted, S sampled and D deleted, k samples per insert, and m items that the store
must hold before anything is sampled, q items may be

    sampled if    I - D >= m        and  k I - S - q   >= min_diff
    inserted if   I + q - D <= m    or   k (I + q) - S <= max_diff

The side that may not proceed waits. A single error buffer e means the bounds k m - e and k m + e.
The formulas, and which settings are refused, are those of Cassirer et al. 2021 and of the published
code (`SampleToInsertRatio` and `Queue`).

Reverb inserts and samples items one at a time. Here an actor inserts a whole unroll and the learner
samples a whole batch, so that the window must have room for these.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tianji.config.plan import LimiterPlan
from tianji.errors import UsageError

ERROR_SHARE = 0.1
"""The error buffer that Acme uses, as a share of k m."""
_ROUNDING = 1e-6  # of an item: ratios are seldom exact in binary, and nobody must wait for that


@dataclass(frozen=True, slots=True)
class Groups:
    """The items that are inserted at once, and those that are sampled at once."""

    inserted: int = 1
    sampled: int = 1


ONE_BY_ONE = Groups()


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits(samples_per_insert=4.0, min_size=1000, min_diff=3600.0, max_diff=4400.0)"""

    samples_per_insert: float
    min_size: int
    min_diff: float
    max_diff: float

    @property
    def center(self) -> float:
        """Return k m, what is inserted and not sampled when the store holds its minimum."""
        return self.samples_per_insert * self.min_size


def limits_of(plan: LimiterPlan) -> Limits:
    """Return the limits of a plan."""
    return Limits(plan.samples_per_insert, plan.min_size, plan.min_diff, plan.max_diff)


def limits_around(samples_per_insert: float, min_size: int, error_buffer: float) -> Limits:
    """Return the limits with this error buffer on both sides of k m.

    >>> limits_around(4.0, 1000, 400.0)
    Limits(samples_per_insert=4.0, min_size=1000, min_diff=3600.0, max_diff=4400.0)
    """
    center = samples_per_insert * min_size
    return Limits(samples_per_insert, min_size, center - error_buffer, center + error_buffer)


def least_error_buffer(samples_per_insert: float, groups: Groups = ONE_BY_ONE) -> float:
    """Return the smallest error buffer that is not refused."""
    return max(float(groups.sampled), samples_per_insert * groups.inserted)


def usual_error_buffer(
    samples_per_insert: float, min_size: int, groups: Groups = ONE_BY_ONE
) -> float:
    """Return Acme's error buffer, or the smallest that is not refused if that is larger."""
    return max(
        ERROR_SHARE * samples_per_insert * min_size, least_error_buffer(samples_per_insert, groups)
    )


def check_limits(limits: Limits, groups: Groups = ONE_BY_ONE) -> str | None:
    """Raise UsageError for limits under which both sides may wait for each other; return a warning
    for limits under which the learner must sample while actors insert."""
    k, m = limits.samples_per_insert, limits.min_size
    if k <= 0:
        raise UsageError(
            f"limiter.samples_per_insert is {k:g}: it must be above 0, the items that are sampled "
            "for each that is inserted."
        )
    if m < 1:
        raise UsageError(
            f"limiter.min_size is {m}: it must be 1 or more, the items in the store before "
            "anything is sampled."
        )
    bounds = f"[{limits.min_diff:g}, {limits.max_diff:g}]"
    width, least = limits.max_diff - limits.min_diff, 2 * least_error_buffer(k, groups)
    if width < least - _ROUNDING:
        raise UsageError(
            f"The limiter's window {bounds} is {width:g} wide, and it must be at least {least:g}: "
            f"2 x the larger of the {groups.sampled} items of a batch and {k:g} samples per insert "
            f"x the {groups.inserted} items of an insert. Both sides could wait for each other. "
            f"Use --limiter.error-buffer {least / 2:g} or more."
        )
    if limits.min_diff > limits.center:
        raise UsageError(
            f"The limiter's window {bounds} begins above samples_per_insert x min_size = "
            f"{k:g} x {m} = {limits.center:g}: actors would wait as soon as the store holds its "
            "minimum, and nothing may be sampled then. Use a window that holds this number."
        )
    if limits.max_diff < limits.center:
        return (
            f"The limiter's window {bounds} ends below samples_per_insert x min_size = "
            f"{limits.center:g}: actors wait as soon as the store holds its minimum, until the "
            "learner has sampled."
        )
    return None


@dataclass(slots=True)
class SamplesPerInsert:
    """Counts what is inserted, sampled and deleted, and says what may be next.

    limiter = SamplesPerInsert(limits_around(1.0, 2, 2.0))
    if limiter.can_insert(): limiter.insert()
    """

    limits: Limits
    inserts: int = field(default=0, init=False)
    samples: int = field(default=0, init=False)
    deletes: int = field(default=0, init=False)

    @property
    def size(self) -> int:
        """Return the items in the store."""
        return self.inserts - self.deletes

    @property
    def ahead(self) -> float:
        """Return k I - S, which the window bounds: samples that are due to what was inserted."""
        return self.limits.samples_per_insert * self.inserts - self.samples

    def can_sample(self, count: int = 1) -> bool:
        limits = self.limits
        return self.size >= limits.min_size and self.ahead - count >= limits.min_diff - _ROUNDING

    def can_insert(self, count: int = 1) -> bool:
        limits = self.limits
        if self.size + count <= limits.min_size:
            return True
        return self.ahead + limits.samples_per_insert * count <= limits.max_diff + _ROUNDING

    def insert(self, count: int = 1) -> None:
        self.inserts += count

    def sample(self, count: int = 1) -> None:
        self.samples += count

    def delete(self, count: int = 1) -> None:
        self.deletes += count

    def starts_with(self, count: int) -> None:
        """Count items that are in the store from before as inserted, and as sampled as often as
        keeps k I - S at k m or below: how often they really were is not known."""
        self.inserts, self.samples, self.deletes = count, 0, 0
        self.samples = round(max(0.0, self.ahead - self.limits.center))
