"""The styles by name."""

from __future__ import annotations

from tianji.errors import UsageError, did_you_mean
from tianji.programs.ablations import (
    balance,
    lock_step,
    reverb,
    stacks,
    uncorrected,
    unplanned,
    waits,
)
from tianji.programs.style import Style
from tianji.programs.styles import (
    a3c,
    apex,
    gala,
    gorila,
    impala,
    sample_factory,
    seed,
    serial,
    tianji,
)

STYLES: dict[str, Style] = {
    style.name: style
    for style in (
        tianji.STYLE,
        serial.STYLE,
        impala.STYLE,
        seed.STYLE,
        apex.STYLE,
        a3c.STYLE,
        gorila.STYLE,
        gala.STYLE,
        sample_factory.STYLE,
        lock_step.STYLE,
        waits.REQUEST_REPLY,
        waits.CONFIRMED,
        balance.FREE,
        balance.DROPPING,
        balance.BLOCKING,
        unplanned.STYLE,
        uncorrected.STYLE,
        stacks.STYLE,
        reverb.STYLE,
    )
}
"""All styles, in the order in which they are listed."""


def find_style(name: str) -> Style:
    """Return the style of this name; UsageError with the closest names if there is none."""
    if name not in STYLES:
        raise UsageError(
            f"Unknown style '{name}'.{did_you_mean(name, STYLES)} Known: {', '.join(STYLES)}. "
            "`tianji programs` describes them."
        )
    return STYLES[name]
