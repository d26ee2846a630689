"""Absence: the actors that a gather rule waits for, and when the run continues without them."""

from __future__ import annotations

from tianji.buffer.gather.rules import GatherRule
from tianji.errors import WorkerLost
from tianji.types import Clock

TELL_AFTER_S = 5.0
"""Silence of an awaited actor that is reported, if it is also twice as long as the one before its
last gradient. It is reported again after each doubling."""
STARTS_S = 20.0
"""Silence that is normal before the first gradient, while processes start."""


class Absence:
    """Knows when each actor last delivered a gradient."""

    def __init__(
        self, rule: GatherRule, absent_after_s: float | None, num_actors: int, now_ns: Clock
    ) -> None:
        self._rule = rule
        self._after_s = absent_after_s
        self._now_ns = now_ns
        self._heard_ns = [now_ns()] * num_actors
        self._opened_ns = now_ns()
        self._coming = set(range(num_actors))
        """Actors whose processes still start; the run waits for them."""
        self._given_up: set[int] = set()
        self._late_after_s = [STARTS_S] * num_actors
        self._tell_after_s = [STARTS_S] * num_actors
        self.absent: set[int] = set()
        """Actors that the run continues without."""
        self._news: list[str] = []

    def begin(self) -> None:
        """Begin a round. Time spent waiting for it does not count as silence."""
        self._opened_ns = self._now_ns()

    def came(self, actor: int) -> None:
        """Note that the actor has started, for the first time or again."""
        self._coming.discard(actor)
        self._heard_ns[actor] = self._now_ns()

    def heard_of(self, actor: int) -> None:
        late_after_s = max(TELL_AFTER_S, 2 * self._silent_s(actor))
        self._late_after_s[actor] = self._tell_after_s[actor] = late_after_s
        self._heard_ns[actor] = self._now_ns()
        if actor in self.absent:
            self.absent.discard(actor)
            self._news.append(f"actor-{actor} is back: its gradients count again.")

    def gave_up(self, actor: int) -> None:
        """Note that the supervisor will not start the actor again."""
        if not self._rule.needs_everybody:
            return
        if self._after_s is None:
            raise WorkerLost(
                f"actor-{actor} was given up, and this algorithm needs gradients of every actor. "
                "With algorithm.absent_after_s (seconds) it goes on without those that are silent."
            )
        self._given_up.add(actor)

    def closes(self) -> bool:
        """Leave out actors that were silent for too long; return whether that closes the round."""
        if self._after_s is None:
            return False
        limit_ns = self._now_ns() - round(self._after_s * 1e9)
        if not self._given_up and self._opened_ns > limit_ns:
            return False
        return any(
            [
                self._leave(actor)
                for actor in self._rule.waiting_for()
                if actor in self._given_up or self._is_silent(actor, limit_ns)
            ]
        )

    @property
    def due_ns(self) -> int:
        """Time at which the next awaited actor will have been silent for too long; 0: never."""
        if self._after_s is None:
            return 0
        awaited = [actor for actor in self._rule.waiting_for() if actor not in self._coming]
        since_ns = min((self._silent_since_ns(actor) for actor in awaited), default=None)
        return 0 if since_ns is None else since_ns + round(self._after_s * 1e9)

    def _leave(self, actor: int) -> bool:
        self.absent.add(actor)
        self._news.append(
            f"actor-{actor} was given up: the run goes on without it."
            if actor in self._given_up
            else f"actor-{actor} has delivered nothing for {self._after_s:g} s: the run goes on "
            "without it, and with it again when it delivers."
        )
        return self._rule.leave(actor)

    def _is_silent(self, actor: int, limit_ns: int) -> bool:
        return actor not in self._coming and self._silent_since_ns(actor) <= limit_ns

    def _silent_since_ns(self, actor: int) -> int:
        return max(self._heard_ns[actor], self._opened_ns)

    def _silent_s(self, actor: int) -> float:
        return (self._now_ns() - self._silent_since_ns(actor)) / 1e9

    def late(self) -> list[int]:
        """Return awaited actors that are silent for longer than usual."""
        return [
            actor
            for actor in self._rule.waiting_for()
            if self._silent_s(actor) >= self._late_after_s[actor]
        ]

    def news(self) -> list[str]:
        """Return what a person should know, each thing once."""
        for actor in self._rule.waiting_for():
            silent_s = self._silent_s(actor)
            if silent_s >= self._tell_after_s[actor]:
                self._tell_after_s[actor] = 2 * silent_s
                self._news.append(self._waiting_in_words(actor, silent_s))
        news, self._news = self._news, []
        return news

    def _waiting_in_words(self, actor: int, silent_s: float) -> str:
        waiting = f"Waiting for actor-{actor}: it has sent no gradient for {silent_s:.0f} s."
        if self._after_s is not None:
            return f"{waiting} After {self._after_s:g} s the run goes on without it."
        return f"{waiting} With algorithm.absent_after_s (seconds) the run goes on without it."
