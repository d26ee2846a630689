"""The warm-up of a store that copies what it keeps: its unrolls need not wait in slots."""

from __future__ import annotations

from tianji.balance.set_point import SetPoint


class WarmUp:
    """Says which unrolls of the warm-up enter a store before the first version is due: slots are
    few, and a store that copies needs none.

    Serial training must not depend on which unroll arrives first: every actor's first ones enter,
    of each the same number.
    """

    def __init__(self, point: SetPoint, num_actors: int) -> None:
        self.most_in_slots = point.unrolls_per_version * (1 + point.lag_target) + num_actors
        """Unrolls that may be in work or wait in a slot at once."""
        self._is_serial = point.lag_target == 0
        self._num_unrolls = point.warmup_unrolls
        self._num_actors = num_actors
        self.starts_with(0)

    def starts_with(self, num_held: int) -> None:
        """Leave out what the store holds from before."""
        self._left = self._num_unrolls - num_held
        self._left_of = [self._left // self._num_actors] * self._num_actors

    def takes(self, actor: int) -> bool:
        """Count an unroll of this actor that has arrived; return whether it enters at once."""
        left = min(self._left, self._left_of[actor]) if self._is_serial else self._left
        if not left:
            return False
        self._left -= 1
        self._left_of[actor] -= 1
        return True

    def gave_up(self) -> None:
        """An actor is not replaced: others make up for it."""
        self._is_serial = False
