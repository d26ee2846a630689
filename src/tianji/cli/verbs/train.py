"""`tianji train [PRESET] [--key value ...]`."""

from __future__ import annotations

from tianji.cli.output import Outcome, people, process_started_ns
from tianji.cli.pages.closing import show_closing
from tianji.cli.pages.seeds import take_seeds, train_with_seeds
from tianji.cli.pages.settings import asks_for_help, train_settings_page, without_help
from tianji.config.overrides import preset_and_assignments, resolve

USAGE = "tianji train [PRESET] [--key value ...] [--seeds N]"
ABOUT = """\
Train a policy. Options override the settings of the preset. Write them as `--key value`, \
`--key=value`, `--flag` or `--no-flag`; the full name of a setting works too (--algorithm.gamma). \
Without arguments this trains PPO on CartPole-v1.

--seeds N trains N times, with the seeds --seed, --seed + 1 and so on. The runs share the cores of \
this machine. Each has a folder of its own in one common folder, and one picture shows them all.

Presets: {presets}. `tianji presets` describes them. The path of a YAML file works too.

These are the settings of {algorithm}. Name a preset or --algorithm to see those of another."""


def train(*settings: str) -> Outcome:
    """Train a policy."""
    preset, asked = preset_and_assignments(without_help(settings))
    num_seeds, asked = take_seeds(asked)
    resolved = resolve(preset, asked)
    if asks_for_help(settings):
        return train_settings_page(resolved.config, USAGE, ABOUT)
    for note in resolved.notes:
        people().print(f"Note: {note}", markup=False)
    if num_seeds is not None:
        return train_with_seeds(resolved.config, num_seeds)
    from tianji.run import train_config

    return show_closing(train_config(resolved.config, started_ns=process_started_ns()))
