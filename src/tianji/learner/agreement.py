"""Agreement: the learners of all groups decide together, before each version, what happens next.

    wishes = exchange(peers, wish)      # one reduction: everybody has the wishes of all
    agreed = agree(wishes)              # the same on every rank, because it only looks at those

With `combine: gradients` every update of a version is made by all learners at once. A version is
therefore begun by all or by none, ended early by all or by none, and saved by all or by none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, get_args

from tianji.channels.peers.interface import Peers, gathered
from tianji.errors import ReduceBroken
from tianji.records import StoppedBecause

REASONS: tuple[StoppedBecause, ...] = get_args(StoppedBecause)


class Wish(NamedTuple):
    """What one learner has and wants.

    >>> Wish(updates=80, is_ready=True, because=None, is_save_due=False, env_steps=4096,
    ...      run_steps=0, updates_per_look=50)
    """

    updates: int
    """Updates that it has made, in the whole run."""
    is_ready: bool
    """It has a batch."""
    because: StoppedBecause | None
    """Why it wants to end the run; None: it goes on."""
    is_save_due: bool
    env_steps: int
    """Environment steps that it counts."""
    run_steps: int
    """Environment steps of the whole run, as far as the head has told it; 0 where all learners of
    the run agree, and count them together."""
    updates_per_look: int
    """Updates after which it wants to hear whether somebody cuts the version short."""


class Agreed(NamedTuple):
    """What all learners do next.

    begins:           they make a version, each from the batch that it has
    because:          why they end the run instead; None: it goes on
    is_save_due:      they save a checkpoint after this version
    env_steps:        environment steps of the run
    updates_per_look: updates between two looks at who cuts the version short
    awaited:          ranks that have no batch yet
    """

    begins: bool
    because: StoppedBecause | None
    is_save_due: bool
    env_steps: int
    updates_per_look: int
    awaited: tuple[int, ...]


def agree(wishes: Sequence[Wish]) -> Agreed:
    """Return what follows from the wishes of all ranks, in the order of the ranks.

    One is enough to end the run, or to have a checkpoint. ReduceBroken: they are not in step.
    """
    if len({wish.updates for wish in wishes}) > 1:
        made = ", ".join(str(wish.updates) for wish in wishes)
        raise ReduceBroken(
            f"The learners of the groups are not in step: they have made {made} updates. All of "
            "them must begin from checkpoints of one set."
        )
    reasons = [REASONS.index(wish.because) for wish in wishes if wish.because is not None]
    awaited = tuple(rank for rank, wish in enumerate(wishes) if not wish.is_ready)
    return Agreed(
        begins=not reasons and not awaited,
        because=REASONS[min(reasons)] if reasons else None,
        is_save_due=any(wish.is_save_due for wish in wishes),
        env_steps=max(sum(wish.env_steps for wish in wishes), *(wish.run_steps for wish in wishes)),
        updates_per_look=min(wish.updates_per_look for wish in wishes),
        awaited=awaited,
    )


def exchange(peers: Peers, wish: Wish) -> list[Wish]:
    """Return the wishes of all ranks, in the order of the ranks."""
    return [_from_numbers(numbers) for numbers in gathered(peers, _to_numbers(wish))]


def _to_numbers(wish: Wish) -> list[float]:
    return [
        wish.updates,
        wish.is_ready,
        -1 if wish.because is None else REASONS.index(wish.because),
        wish.is_save_due,
        wish.env_steps,
        wish.run_steps,
        wish.updates_per_look,
    ]


def _from_numbers(numbers: Sequence[float]) -> Wish:
    updates, is_ready, because, is_save_due, env_steps, run_steps, updates_per_look = numbers
    return Wish(
        updates=int(updates),
        is_ready=bool(is_ready),
        because=None if because < 0 else REASONS[int(because)],
        is_save_due=bool(is_save_due),
        env_steps=int(env_steps),
        run_steps=int(run_steps),
        updates_per_look=int(updates_per_look),
    )
