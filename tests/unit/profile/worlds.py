"""Worlds with known costs."""

import time

from tianji.envs.worlds import Counting


class SlowResets(Counting):
    """Steps cost next to nothing, a new episode five milliseconds."""

    def begin(self, seeded):
        time.sleep(0.005)
        super().begin(seeded)
