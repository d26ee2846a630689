"""The `tianji` command: verbs, exit codes, and what is printed when something goes wrong.

Verbs are imported when they are called: `--help` must not wait for torch. `--json` belongs to all
of them and is taken off here.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

from rich.console import Console

from tianji.cli.output import Outcome, only_json_on_stdout, people
from tianji.errors import TianjiError, UsageError
from tianji.raised import error_in_words
from tianji.version import VERSION

if TYPE_CHECKING:
    from cyclopts import App

INTERRUPTED = 130
STDERR = 2
JSON_FLAG = "--json"
FOLDER = "tianji.cli.verbs"

ABOUT = "Fast asynchronous reinforcement-learning training for Gymnasium environments."
EPILOGUE = (
    "Every command takes --json: it then prints one JSON object on one line to standard output, "
    "and everything else to standard error."
)
VERBS = {
    "train": ("train:train", "Train a policy; without arguments, PPO on CartPole."),
    "plan": ("plan:plan", "Measure a run on this machine and plan its shares of the cores."),
    "resume": ("train:resume", "Continue a run from its last checkpoint."),
    "compare": ("compare:compare", "Run styles side by side and say what each one costs."),
    "sweep": ("sweep:sweep", "Search for good settings, several runs at a time."),
    "simulate": ("simulate:simulate", "Predict how fast a run would be at another size."),
    "status": ("status:status", "Show what a run is doing or did, and what limits its speed."),
    "eval": ("evaluate:evaluate", "Evaluate a trained policy, and film it."),
    "export": ("evaluate:export", "Write a trained policy as ONNX."),
    "figure": ("figure:figure", "Draw a figure of the papers or of a run."),
    "bench": ("bench:bench", "Measure how fast experience moves on this machine."),
    "presets": ("presets:presets", "List the presets."),
    "zoo": ("zoo:zoo", "Show what the presets have reached."),
    "programs": ("programs:programs", "List the styles, or print the program of one."),
    "doctor": ("doctor:doctor", "Check this machine and, with --env, an environment."),
}
"""File and function of every verb, below cli/verbs, and what it does."""
OPEN_ENDED = ("train", "plan", "compare", "sweep", "simulate", "resume")
"""Verbs that take any `--key value` of the schema and show their own help."""


def build_app() -> App:
    """Build the parser with all verbs, none of them imported yet."""
    from cyclopts import App

    app = App(
        name="tianji",
        help=ABOUT,
        help_epilogue=EPILOGUE,
        help_format="plaintext",
        version_flags=[],
        suppress_keyboard_interrupt=False,
    )
    for order, (verb, (target, about)) in enumerate(VERBS.items()):
        flags: dict[str, Any] = {"help_flags": []} if verb in OPEN_ENDED else {}
        names: dict[str, Any] = {"name": verb, "help": about, "sort_key": order}
        app.command(f"{FOLDER}.{target}", **names, version_flags=[], **flags)
    app.command(show_version, name="--version", help_flags=[], version_flags=[])
    return app


def show_version() -> Outcome:
    """Print the version."""
    return Outcome({"version": VERSION}, shown=VERSION)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the return value is the exit code."""
    tokens = list(sys.argv[1:] if argv is None else argv)
    if not faulthandler.is_enabled():
        faulthandler.enable(STDERR)  # an environment may crash the interpreter itself
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # so that `module:name` finds modules in this folder
    if JSON_FLAG not in tokens:
        console = Console(highlight=False)
        outcome = run_safely(tokens, console)
        if outcome.shown is not None:
            console.print(outcome.shown)
        return outcome.exit_code
    with only_json_on_stdout() as emit:
        page = StringIO()
        others = [token for token in tokens if token != JSON_FLAG]
        outcome = run_safely(others, Console(file=page, width=100))
        emit(outcome.report or {"help": page.getvalue()})
        return outcome.exit_code


def run_safely(tokens: Sequence[str], console: Console) -> Outcome:
    """Run one command; turn every exception into words and an exit code."""
    try:
        return run_verb(tokens, console)
    except TianjiError as error:
        return _failure(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _failure("Interrupted.", INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the last one to see it: told in full, exit code 1
        cause = first_cause(error)
        details = "".join(traceback.format_exception(error))
        return _failure(error_in_words(cause), 1, details)


def run_verb(tokens: Sequence[str], console: Console) -> Outcome:
    """Parse and call; the library draws the help of most verbs on the console itself.

    Open-ended verbs read their words themselves and need no parser: importing it takes a tenth of
    a second, in which the person waits for the first step.
    """
    if tokens and tokens[0] in OPEN_ENDED:
        _refuse_seeds(*tokens)
        file, _, name = VERBS[tokens[0]][0].partition(":")
        verb: Callable[..., Outcome] = getattr(importlib.import_module(f"{FOLDER}.{file}"), name)
        return verb(*tokens[1:])
    from cyclopts.exceptions import CycloptsError

    try:
        outcome = build_app()(
            tokens,
            console=console,
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
    except CycloptsError as error:
        known = f"{tokens[0]} " if tokens and tokens[0] in VERBS else ""
        raise UsageError(f"{error} See `tianji {known}--help`.") from error
    return outcome if isinstance(outcome, Outcome) else Outcome({})


def _refuse_seeds(verb: str, *words: str) -> None:
    """Other commands are about one run, and `--seed` is no misspelling of `--seeds`."""
    is_asked = any(word.partition("=")[0] == "--seeds" for word in words)
    if is_asked and verb not in ("train", "compare"):
        raise UsageError(
            "--seeds is an option of `tianji train` and `tianji compare`. "
            f"`tianji {verb}` is about one run; see `tianji {verb} --help`."
        )


def first_cause(error: BaseException) -> BaseException:
    """Return the exception that caused the others."""
    while (earlier := error.__cause__ or error.__context__) is not None:
        error = earlier
    return error


def _failure(text: str, exit_code: int, details: str = "") -> Outcome:
    console = people()
    console.print(text, style="bold red", markup=False, soft_wrap=True)
    if details:
        console.print(details, markup=False, soft_wrap=True)
    return Outcome({"error": text, "exit_code": exit_code}, exit_code)
