"""`tianji train [PRESET] [--key value ...]`."""

from __future__ import annotations

from collections.abc import Sequence

from tianji.cli.clock import process_started_ns
from tianji.cli.closing import show_closing
from tianji.cli.output import Outcome, people
from tianji.cli.settings_help import HELP_FLAGS, asks_for_help, settings_page
from tianji.config.overrides import asked_text, find_base, preset_and_assignments, resolve_tokens
from tianji.config.presets import list_presets
from tianji.config.schema import load_algorithm_config
from tianji.config.settings import ALGORITHM, ALGORITHM_NAME, list_settings

USAGE = "tianji train [PRESET] [--key value ...]"
ABOUT = """\
Train a policy. Settings come from the preset and then from the options; `--key value`, \
`--key=value`, `--flag` and `--no-flag` are understood, and any setting also has its full name \
(--algorithm.gamma). Without arguments this trains PPO on CartPole-v1.

Presets: {presets}; `tianji presets` tells what they learn. The path of a YAML file works too.

Below: the settings of {algorithm}. Name a preset or --algorithm to see those of another."""


def train(*settings: str) -> Outcome:
    """Train a policy."""
    if asks_for_help(settings):
        return _help([token for token in settings if token not in HELP_FLAGS])
    resolved = resolve_tokens(settings)
    for note in resolved.notes:
        people().print(f"Note: {note}", markup=False)
    from tianji.run import train_config

    return show_closing(train_config(resolved.config, started_ns=process_started_ns()))


def _help(tokens: Sequence[str]) -> Outcome:
    preset, asked = preset_and_assignments(tokens)
    base = find_base(preset, asked)
    algorithm = asked_text(ALGORITHM_NAME, asked) or base.algorithm
    settings = list_settings(load_algorithm_config(algorithm))
    defaults = base.values if algorithm == base.algorithm else {}
    return settings_page(
        usage=USAGE,
        about=ABOUT.format(presets=", ".join(list_presets()), algorithm=algorithm),
        listed=settings,
        all_settings=settings,
        defaults={**defaults, ALGORITHM_NAME: algorithm},
        titles={"": "Run", ALGORITHM: f"Algorithm ({algorithm})"},
    )
