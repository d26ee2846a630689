"""How many seeds a claim needs."""

ENOUGH_SEEDS = 5
"""With fewer seeds, a difference between returns or times to a target may be chance."""
