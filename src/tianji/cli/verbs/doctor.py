"""`tianji doctor [--env X]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from tianji.cli.output import Outcome, people
from tianji.config.files import parse_yaml

if TYPE_CHECKING:
    from tianji.envs.check import Finding

STYLES = {"ok": "green", "warn": "yellow", "error": "bold red"}


def doctor(
    *,
    env: Annotated[list[str] | None, Parameter(negative="")] = None,
    env_kwargs: dict[str, str] | None = None,
) -> Outcome:
    """Check this machine and, with --env, an environment.

    Parameters
    ----------
    env
        A Gymnasium id, or module:factory; repeat the option for every environment of a run.
    env_kwargs
        Keyword arguments of the environment, as --env-kwargs.KEY VALUE.
    """
    from tianji.display.stream import say, tell_while_slow
    from tianji.envs.check import check_environment, check_together
    from tianji.envs.find import full_id
    from tianji.observe.doctor import check_machine

    findings = check_machine()
    _show("This machine", findings)
    keywords = {
        key.replace("-", "_"): parse_yaml(text, f"the value of '--env-kwargs.{key}'")
        for key, text in (env_kwargs or {}).items()
    }
    names = [full_id(name) for name in env or ()]
    for name in names:
        with tell_while_slow(say, f"Checking {name}"):
            of_env = check_environment(name, keywords)
        _show(name, of_env)
        findings = [*findings, *of_env]
    if len(names) > 1:
        with tell_while_slow(say, f"Checking {', '.join(names)}"):
            together = check_together(tuple(names), keywords)
        _show("Together", together)
        findings = [*findings, *together]
    failed = any(finding.level == "error" for finding in findings)
    report = {"ok": not failed, "findings": [asdict(finding) for finding in findings]}
    return Outcome(report, exit_code=1 if failed else 0)


def _show(title: str, findings: Sequence[Finding]) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), title=title)
    table.title_justify = "left"
    for finding in findings:
        text = Text(finding.what)
        if finding.advice:
            text.append(f"\n{finding.advice}", style="dim")
        table.add_row(Text(finding.level, style=STYLES[finding.level]), text)
    people().print(table)
