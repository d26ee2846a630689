"""`tianji programs [NAME]`."""

from __future__ import annotations

from dataclasses import asdict

from tianji.cli.output import Outcome, people
from tianji.cli.pages.program import example_preset, program_page, styles_page
from tianji.config.overrides import make_config
from tianji.config.run import RunConfig
from tianji.programs.program import Program
from tianji.programs.registry import STYLES, find_style


def programs(name: str | None = None, /, *, preset: str | None = None) -> Outcome:
    """List the styles of training; with a name, print the program of one for this machine.

    Parameters
    ----------
    name
        The style, such as tianji or impala.
    preset
        The run whose program is printed; default: cartpole-ppo or cartpole-dqn, whichever fits.
    """
    if name is None:
        return _list()
    style = find_style(name)
    chosen = preset or example_preset(name)
    config = make_config(chosen, style=name, plan={"source": "rule"})
    program = _program_of(config)
    people().print(program_page(style, chosen, program, config))
    described = {"name": name, "about": style.about, "differences": list(style.differences)}
    learner = {"learner": 0, "num_learners": config.num_learners}
    return Outcome({**described, "preset": chosen, **learner, "program": asdict(program)})


def _list() -> Outcome:
    people().print(styles_page(STYLES.values()))
    return Outcome(
        {
            "styles": [
                {
                    "name": name,
                    "about": style.about,
                    "kind": style.kind,
                    "differences": list(style.differences),
                }
                for name, style in STYLES.items()
            ]
        }
    )


def _program_of(config: RunConfig) -> Program:
    """Return the program of the first learner of a run, planned by rule."""
    from tianji.config.machine import read_machine
    from tianji.display.stream import tell_progress
    from tianji.planning.groups import check_groups, plan_groups
    from tianji.planning.planner import plan_run
    from tianji.programs.groups import group_program

    check_groups(config)
    with tell_progress() as tell:
        env = config.envs or config.env
        groups = plan_groups(
            config, read_machine(), lambda one, share: plan_run(one, env, share, tell)
        )
    return group_program(groups.planned.config, groups.plans[0], group=0)
