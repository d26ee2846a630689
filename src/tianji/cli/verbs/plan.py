"""`tianji plan [PRESET] [--key value ...] [--fresh]`."""

from __future__ import annotations

from tianji.cli.output import Outcome, people
from tianji.cli.pages.settings import asks_for_help, train_settings_page, without_help
from tianji.config.machine import read_machine
from tianji.config.overrides import resolve_tokens

USAGE = "tianji plan [PRESET] [--key value ...] [--fresh]"
ABOUT = """\
Measure a run on this machine and find the best shares of its cores. The page shows processes, \
cores, threads and environments of each role, the expected rates, the bottleneck, and the gain of \
one more core. It takes less than a minute, and longer if settings of the algorithm are `auto`. \
On a GPU it makes a test run for each place where inference may run and takes the fastest; cores \
are shared by rule there. The measurement is saved: `tianji train` and `tianji plan` with the same \
settings use it. --fresh measures again.

All settings of `tianji train` work here. The plan keeps what you set and solves for the rest. \
Nothing is measured for algorithms that gather gradients (such as rennala-nigt): their page \
describes a round and its cost. Presets: {presets}.

These are the settings of {algorithm}. Name a preset or --algorithm to see those of another."""
FRESH_FLAG = "--fresh"
ONE_GROUP = (
    "This is the plan of one of {count} learners, on its share of the machine: {cores} cores."
)


def plan(*tokens: str) -> Outcome:
    """Measure this machine for a run and share its cores."""
    resolved = resolve_tokens([t for t in without_help(tokens) if t != FRESH_FLAG])
    if asks_for_help(tokens):
        return train_settings_page(resolved.config, USAGE, ABOUT)
    for note in resolved.notes:
        people().print(f"Note: {note}", markup=False)
    from tianji.cli.pages.plan import plan_page, plan_report
    from tianji.display.stream import tell_progress
    from tianji.planning.groups import check_groups, plan_groups
    from tianji.planning.planner import measured_plan

    check_groups(resolved.config)
    config, machine = resolved.config, read_machine()
    with tell_progress() as tell:
        env = config.envs or config.env
        fresh = FRESH_FLAG in tokens
        groups = plan_groups(
            config, machine, lambda one, share: measured_plan(one, env, share, tell, fresh=fresh)
        )
    planned, share = groups.planned, groups.shares[0]
    if config.num_learners > 1:
        people().print(ONE_GROUP.format(count=config.num_learners, cores=len(share.cores)))
    people().print(plan_page(planned, share))
    return Outcome(plan_report(planned, share))
