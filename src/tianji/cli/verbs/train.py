"""`tianji train [PRESET] [--key value ...]` and `tianji resume RUN [--key value ...]`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tianji.cli.output import Outcome, people, process_started_ns
from tianji.cli.pages.closing import show_closing, take_seeds, train_with_seeds
from tianji.cli.pages.expected import expected
from tianji.cli.pages.settings import (
    asks_for_help,
    settings_page,
    train_settings_page,
    without_help,
)
from tianji.config import overrides
from tianji.config.files import load_config
from tianji.config.overrides import (
    is_changeable,
    preset_and_assignments,
    resume_changes,
    with_changes,
)
from tianji.config.schema import AlgorithmConfig
from tianji.config.settings import list_settings, value_at
from tianji.config.values import Assignment, split_tokens
from tianji.defaults.choose import resolve
from tianji.engines.agents.mpi.launcher import join_job, launched_rank
from tianji.errors import UsageError
from tianji.run_folder.paths import CONFIG_FILE, find_run

USAGE = "tianji train [PRESET] [--key value ...] [--seeds N]"
ABOUT = """\
Train a policy. Options override the settings of the preset. Write them as `--key value`, \
`--key=value`, `--flag` or `--no-flag`; the full name of a setting works too (--algorithm.gamma). \
Without arguments this trains PPO on CartPole-v1. With --env and no preset, rules try out the \
environment for a fraction of a second, choose the algorithm (unless you name one) and its \
numbers, and say why; what you set wins, and config.yaml of the run holds all values.

--seeds N trains N times, with the seeds --seed, --seed + 1 and so on. The runs share the cores of \
this machine. Each has a folder of its own in one common folder, and one picture shows them all.

Presets: {presets}. `tianji presets` describes them. The path of a YAML file works too.

These are the settings of {algorithm}. Name a preset or --algorithm to see those of another."""


RANKS_APART = (
    "Note: this is one of several ranks of an MPI job, and engine is '{engine}': each rank trains "
    "a run of its own. --engine mpi makes one run of them."
)


def train(*settings: str) -> Outcome:
    """Train a policy."""
    preset, asked = preset_and_assignments(without_help(settings))
    num_seeds, asked = take_seeds(asked)
    if asks_for_help(settings):
        return train_settings_page(overrides.resolve(preset, asked).config, USAGE, ABOUT)
    join_job(overrides.engine_of(preset, asked))
    resolved = resolve(preset, asked)
    for note in resolved.notes:
        people().print(f"Note: {note}", markup=False)
    expectation = expected(resolved.config)
    if launched_rank(os.environ) and resolved.config.engine != "mpi":
        people().print(RANKS_APART.format(engine=resolved.config.engine), markup=False)
    if num_seeds is not None:
        return train_with_seeds(resolved.config, num_seeds, [*resolved.reasons, expectation])
    from tianji.run import train_config

    summary = train_config(
        resolved.config,
        started_ns=process_started_ns(),
        reasons=resolved.reasons,
        expectation=expectation,
    )
    return show_closing(summary)


RESUME_USAGE = "tianji resume RUN [--key value ...]"
ABOUT_RESUME = """\
Continue a run from its last checkpoint. RUN is a name under runs/ or the path of a run folder.

Only the settings below may change; all others stay as they were. Schedules run over \
max_env_steps: a new limit stretches what is left of them. With RUN, --help shows the values of \
that run."""


def resume(*settings: str) -> Outcome:
    """Continue a run from its last checkpoint."""
    words, asked = split_tokens(without_help(settings))
    if asks_for_help(settings):
        return _resume_help(words, asked)
    if len(words) != 1:
        raise UsageError(f"Name one run to resume. Usage: {RESUME_USAGE}")
    run_dir = _find_run(words[0])
    changes = resume_changes(load_config(run_dir / CONFIG_FILE), asked)
    from tianji.run import resume_run

    return show_closing(resume_run(run_dir, changes, started_ns=process_started_ns()))


def _find_run(name: str) -> Path:
    """Return the folder of a run. A rank of an MPI job whose host does not have it serves the head,
    which has, and does not return."""
    try:
        return find_run(name)
    except UsageError:
        if launched_rank(os.environ):
            join_job("mpi")
        raise


def _resume_help(words: Sequence[str], asked: Sequence[Assignment]) -> Outcome:
    """The page of the run that is named, with what was asked for; else one with the defaults."""
    settings, values = list_settings(AlgorithmConfig), {}
    if words:
        config = load_config(find_run(words[0]) / CONFIG_FILE)
        config = with_changes(config, resume_changes(config, asked))
        settings = list_settings(type(config.algorithm))
        values = {setting.path: value_at(config, setting.path) for setting in settings}
    return settings_page(
        usage=RESUME_USAGE,
        about=ABOUT_RESUME,
        listed=[setting for setting in settings if is_changeable(setting)],
        all_settings=settings,
        values=values,
        titles={"": "Run"},
    )
