"""`tianji train [PRESET] [--key value ...]`."""

from __future__ import annotations

from tianji.cli.clock import process_started_ns
from tianji.cli.closing import show_closing
from tianji.cli.output import Outcome, people
from tianji.cli.settings_help import asks_for_help, train_settings_page
from tianji.config.overrides import resolve_tokens

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
        return train_settings_page(settings, USAGE, ABOUT)
    resolved = resolve_tokens(settings)
    for note in resolved.notes:
        people().print(f"Note: {note}", markup=False)
    from tianji.run import train_config

    return show_closing(train_config(resolved.config, started_ns=process_started_ns()))
