"""`tianji resume RUN [--key value ...]`."""

from __future__ import annotations

from tianji.cli.clock import process_started_ns
from tianji.cli.closing import show_closing
from tianji.cli.output import Outcome
from tianji.cli.settings_help import asks_for_help, settings_page
from tianji.config.changes import is_changeable, resume_changes
from tianji.config.files import load_config
from tianji.config.runs import CONFIG_FILE, find_run
from tianji.config.schema import AlgorithmConfig
from tianji.config.settings import list_settings
from tianji.config.tokens import split_tokens
from tianji.errors import UsageError

USAGE = "tianji resume RUN [--key value ...]"
ABOUT = """\
Continue a run from its last checkpoint. RUN is a name under runs/ or the path of a run folder.

Only the settings below may change; all others stay as they were. Schedules run over \
max_env_steps: a new limit stretches what is left of them. The defaults are those of the run."""


def resume(*settings: str) -> Outcome:
    """Continue a run from its last checkpoint."""
    if asks_for_help(settings):
        return _help()
    words, asked = split_tokens(settings)
    if len(words) != 1:
        raise UsageError(f"Name one run to resume. Usage: {USAGE}")
    run_dir = find_run(words[0])
    changes = resume_changes(load_config(run_dir / CONFIG_FILE), asked)
    from tianji.run import resume_run

    return show_closing(resume_run(run_dir, changes, started_ns=process_started_ns()))


def _help() -> Outcome:
    settings = list_settings(AlgorithmConfig)
    return settings_page(
        usage=USAGE,
        about=ABOUT,
        listed=[setting for setting in settings if is_changeable(setting)],
        all_settings=settings,
        values={},
        titles={"": "Run"},
    )
