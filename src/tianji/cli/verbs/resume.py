"""`tianji resume RUN [--key value ...]`."""

from __future__ import annotations

from collections.abc import Sequence

from tianji.cli.output import Outcome, process_started_ns
from tianji.cli.pages.closing import show_closing
from tianji.cli.pages.settings import asks_for_help, settings_page, without_help
from tianji.config.files import load_config
from tianji.config.overrides import is_changeable, resume_changes, with_changes
from tianji.config.schema import AlgorithmConfig
from tianji.config.settings import list_settings, value_at
from tianji.config.values import Assignment, split_tokens
from tianji.errors import UsageError
from tianji.run_folder.paths import CONFIG_FILE, find_run

USAGE = "tianji resume RUN [--key value ...]"
ABOUT = """\
Continue a run from its last checkpoint. RUN is a name under runs/ or the path of a run folder.

Only the settings below may change; all others stay as they were. Schedules run over \
max_env_steps: a new limit stretches what is left of them. With RUN, --help shows the values of \
that run."""


def resume(*settings: str) -> Outcome:
    """Continue a run from its last checkpoint."""
    words, asked = split_tokens(without_help(settings))
    if asks_for_help(settings):
        return _help(words, asked)
    if len(words) != 1:
        raise UsageError(f"Name one run to resume. Usage: {USAGE}")
    run_dir = find_run(words[0])
    changes = resume_changes(load_config(run_dir / CONFIG_FILE), asked)
    from tianji.run import resume_run

    return show_closing(resume_run(run_dir, changes, started_ns=process_started_ns()))


def _help(words: Sequence[str], asked: Sequence[Assignment]) -> Outcome:
    """The page of the run that is named, with what was asked for; else one with the defaults."""
    settings, values = list_settings(AlgorithmConfig), {}
    if words:
        config = load_config(find_run(words[0]) / CONFIG_FILE)
        config = with_changes(config, resume_changes(config, asked))
        settings = list_settings(type(config.algorithm))
        values = {setting.path: value_at(config, setting.path) for setting in settings}
    return settings_page(
        usage=USAGE,
        about=ABOUT,
        listed=[setting for setting in settings if is_changeable(setting)],
        all_settings=settings,
        values=values,
        titles={"": "Run"},
    )
