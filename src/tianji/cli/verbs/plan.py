"""`tianji plan [PRESET] [--nodes N ...] [--key value ...] [--fresh]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tianji.cli.output import Outcome, people
from tianji.cli.pages.options import option_list
from tianji.cli.pages.settings import asks_for_help, train_settings_page, without_help
from tianji.config import overrides
from tianji.config.machine import read_machine
from tianji.config.overrides import Resolved, preset_and_assignments
from tianji.config.settings import canonical
from tianji.config.values import Assignment
from tianji.defaults.choose import resolve
from tianji.errors import TianjiError, UsageError
from tianji.wording import counted

if TYPE_CHECKING:
    from tianji.cli.pages.hosts_plan import HostsOptions, LinkSource
    from tianji.config.run import RunConfig

USAGE = "tianji plan [PRESET] [--nodes N] [--key value ...] [--fresh]"
ABOUT = """\
Measure a run on this machine and find the best shares of its cores. The page shows processes, \
cores, threads and environments of each role, the expected rates, the bottleneck, and the gain of \
one more core. It takes less than a minute, and longer if settings of the algorithm are `auto`. \
On a GPU it makes a test run for each place where inference may run and takes the fastest; cores \
are shared by rule there. The measurement is saved: `tianji train` and `tianji plan` with the same \
settings use it. --fresh measures again.

With --nodes it says what several hosts like this machine would bring.

{options}

All settings of `tianji train` work here. The plan keeps what you set and solves for the rest. \
Nothing is measured for algorithms that gather gradients (such as rennala-nigt): their page \
describes a round and its cost. Presets: {{presets}}.

These are the settings of {{algorithm}}. Name a preset or --algorithm to see those of another."""
FRESH_FLAG = "--fresh"
NO_COSTS = (
    "--nodes: a simulation takes the costs of actors that infer by themselves and of a learner on "
    "the CPU. Use --device cpu and --inference actor-cpu."
)
ONE_GROUP = "This is the plan of one of {count} learners, on its share of the machine: {cores}."
CROWDED = (
    "This is the plan of one of {count} learners. They are more than the usable cores ({cores}), "
    "and share them: fewer would be as fast."
)


def plan(*tokens: str) -> Outcome:
    """Measure this machine for a run and share its cores; or say what several would bring."""
    from tianji.cli.pages.hosts_plan import HostsOptions
    from tianji.cli.pages.options import take

    words = [token for token in without_help(tokens) if token != FRESH_FLAG]
    preset, assignments = preset_and_assignments(words)
    options, rest = take(HostsOptions, assignments, "tianji plan")
    if asks_for_help(tokens):
        about = ABOUT.format(options=option_list(HostsOptions))
        return train_settings_page(overrides.resolve(preset, rest).config, USAGE, about)
    options.check()
    resolved = resolve(preset, rest)
    for note in resolved.notes:
        people().print(f"Note: {note}", markup=False)
    fresh = FRESH_FLAG in tokens
    if options.nodes is not None:
        return _plan_hosts(resolved.config, preset, rest, options, fresh)
    return _plan_machine(resolved, fresh)


def _plan_machine(resolved: Resolved, fresh: bool) -> Outcome:
    from tianji.cli.pages.plan import plan_page, plan_report
    from tianji.display.stream import tell_progress
    from tianji.planning.groups import check_groups, plan_groups
    from tianji.planning.planner import measured_plan

    config = resolved.config
    check_groups(config)
    machine = read_machine()
    with tell_progress() as tell:
        env = config.envs or config.env
        groups = plan_groups(
            config, machine, lambda one, share: measured_plan(one, env, share, tell, fresh=fresh)
        )
    planned, share = groups.planned, groups.shares[0]
    if (count := config.num_learners) > 1:
        is_crowded = count > len(machine.cores)
        words, cores = (CROWDED, machine.cores) if is_crowded else (ONE_GROUP, share.cores)
        people().print(words.format(count=count, cores=counted(len(cores), "core")))
    people().print(plan_page(planned, share, resolved.reasons))
    return Outcome(plan_report(planned, share, resolved.reasons))


def _plan_hosts(
    config: RunConfig,
    preset: str | None,
    written: Sequence[Assignment],
    options: HostsOptions,
    fresh: bool,
) -> Outcome:
    from tianji.cli.pages.hosts_plan import HostsPlan, hosts_page, hosts_report
    from tianji.display.stream import tell_progress
    from tianji.planning.hosts.proposal import Asked
    from tianji.planning.hosts.propose import HostsRun, propose
    from tianji.planning.planner import measured_plan, probe_tasks
    from tianji.planning.resolve.places import choose_places

    assert options.nodes is not None
    _check_simulated(config)
    named = {canonical(assignment.written) for assignment in written}
    asked = Asked(
        options.nodes,
        config.num_groups if "num_groups" in named or config.num_groups > 1 else None,
        config.combine if "combine" in named or config.combine != "gradients" else None,
        1 + config.actor_hosts,
    )
    asked.check()
    options, source = _with_link(config, options)  # first: other ranks of MPI do nothing else
    machine = read_machine()
    local = {"engine": "local", "num_groups": 1, "actor_hosts": 0}
    one = config.model_copy(update=local)
    if not choose_places(one, machine, probe_tasks(one, one.env)).has_costs:
        raise UsageError(NO_COSTS)
    with tell_progress() as tell:
        planned = measured_plan(one, one.env, machine, tell, fresh=fresh)
    run = HostsRun(planned, machine, asked, options.links())
    found = HostsPlan(run, propose(run), options, preset, written, source)
    people().print(hosts_page(found))
    return Outcome(hosts_report(found))


def _with_link(config: RunConfig, options: HostsOptions) -> tuple[HostsOptions, LinkSource]:
    """Measure the link, where a cluster is named and the person has not set it."""
    from tianji.engines.agents.hosts import measure_network

    if options.is_link_given:
        return options, "given"
    if config.engine not in ("ray", "mpi"):
        return options, "assumed"
    try:
        speed = measure_network(config)
    except TianjiError as error:
        people().print(f"Note: the network was not measured. {error}", markup=False)
        return options, "assumed"
    if speed is None:
        people().print("Note: the network was not measured: the cluster has one host.")
        return options, "assumed"
    found = {"link_gbit": speed.gbit_per_s, "link_ms": speed.way_ms}
    return options.model_copy(update=found), "measured"


def _check_simulated(config: RunConfig) -> None:
    """Raise UsageError for runs whose speed on other hosts cannot be predicted."""
    from tianji.planning.planner import gathers

    if gathers(config):
        raise UsageError(
            f"--nodes: {config.algorithm.name} gathers gradients, and has one learner for all "
            "actors. `tianji simulate` shows its rounds."
        )
    if config.learners_per_group > 1:
        raise UsageError(
            f"--nodes: groups of {config.learners_per_group} learners cannot be simulated. Leave "
            "out --learners-per-group, or use as many groups with --combine gradients."
        )
    if config.balance != "paced":
        raise UsageError(
            f"--nodes: balance is '{config.balance}', and only runs that are paced can be "
            "simulated. Use --balance paced."
        )
    if config.engine in ("inline", "virtual"):
        raise UsageError(
            f"--nodes: the {config.engine} engine runs in one process. Use --engine ray or mpi, or "
            "leave --engine out."
        )
    if config.inference not in ("auto", "actor-cpu"):
        raise UsageError(NO_COSTS)
