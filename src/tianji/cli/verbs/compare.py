"""`tianji compare PRESET --styles A,B,... [--seeds N] [--key value ...]`."""

from __future__ import annotations

import shlex

from tianji.cli.output import Outcome, people
from tianji.cli.pages.closing import take_seeds
from tianji.cli.pages.options import take
from tianji.cli.pages.settings import asks_for_help, train_settings_page, without_help
from tianji.config.overrides import preset_and_assignments, resolve
from tianji.config.schema import Strict
from tianji.programs.registry import STYLES

USAGE = "tianji compare PRESET --styles A,B,... [--seeds N] [--run NAME] [--key value ...]"
ABOUT = """\
Run styles side by side: the same environment, network, optimiser and transport, and only the \
style changes. The first style is what the others are compared with.

Every style trains with every seed, one run at a time with all cores. The styles take turns within \
a seed, so that a machine whose speed changes disturbs all of them alike. At the end it says how \
fast each style was, what it cost, and why; comparison.json and comparison.png in the folder have \
everything. Ctrl-C stops and shows what is there; the same command continues.

--styles: {styles}. `tianji programs` describes them.
--seeds N: seeds of each style, from --seed on; default 5. Fewer cannot support a claim.

All settings of `tianji train` work here, for all runs alike. Presets: {{presets}}.

These are the settings of {{algorithm}}, in the style tianji. Some styles have an algorithm and \
settings of their own."""


class CompareOptions(Strict):
    """What is compared."""

    styles: str = ""
    """Styles to compare, separated by commas; the first one is the reference."""

    def names(self) -> list[str]:
        return [name.strip() for name in self.styles.split(",") if name.strip()]


def compare(*tokens: str) -> Outcome:
    """Run styles side by side and say what each one costs."""
    preset, assignments = preset_and_assignments(without_help(tokens))
    options, rest = take(CompareOptions, assignments, "tianji compare")
    num_seeds, asked = take_seeds(rest)
    if asks_for_help(tokens):
        about = ABOUT.format(styles=", ".join(STYLES))
        return train_settings_page(resolve(preset, asked).config, USAGE, about)
    from tianji.cli.pages.compare import show_comparison
    from tianji.comparison.compare import run_comparison
    from tianji.comparison.styles import NUM_SEEDS, style_contest
    from tianji.seeds.screen import make_screen

    command = shlex.join(("tianji", "compare", *tokens))
    found = style_contest(preset, options.names(), num_seeds or NUM_SEEDS, asked, command)
    for note in found.notes:
        people().print(f"Note: {note}", markup=False)
    screen = make_screen(found.contest.reference.config.observe.display)
    return show_comparison(run_comparison(found.contest, screen, found.run))
