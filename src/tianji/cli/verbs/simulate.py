"""`tianji simulate [PRESET] [--nodes N] [--actors-per-node M] ... [--key value ...]`."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tianji.algorithms.registry import load_algorithm
from tianji.cli.output import Outcome, people
from tianji.cli.pages.options import option_list
from tianji.cli.pages.settings import asks_for_help, train_settings_page, without_help
from tianji.cli.pages.simulate import (
    SimulateOptions,
    between_text,
    check_fits,
    gradients_table,
    rates_table,
    rounds_text,
    take_options,
)
from tianji.config import overrides
from tianji.config.machine import Machine, read_machine
from tianji.config.overrides import preset_and_assignments
from tianji.config.run import RunConfig
from tianji.defaults.choose import resolve
from tianji.errors import UsageError
from tianji.explain.rounds import round_in_words
from tianji.planning.groups import check_groups, divide

if TYPE_CHECKING:
    from tianji.algorithms.interface import Algorithm
    from tianji.config.plan import RunPlan
    from tianji.config.run import TimesConfig
    from tianji.costs.profile import Profile
    from tianji.virtual.simulate import Simulated
    from tianji.virtual.sizes import Size

USAGE = "tianji simulate [PRESET] [--nodes N] [--actors-per-node M] [OPTIONS] [--key value ...]"
ABOUT = """\
Predict how fast a run would be at another size: on more hosts, with more actors or more \
learners. The simulation uses the real balance and channels, but replaces the work of the roles by \
its measured cost on this machine, in simulated time: thousands of actors take seconds. The costs \
come from a profile that `tianji plan` saved, or are measured first. Without options this \
simulates the plan for this machine.

{options}

For algorithms that gather gradients, the simulation uses the times of the gradients: it shows \
when each round closes and which actors contribute.

The number of environments, batches and updates grows with the number of actors, so that every \
step is used as often as in the original run. All settings of `tianji train` work here too. \
Presets: {{presets}}.

These are the settings of {{algorithm}}. Name a preset or --algorithm to see those of another."""


def simulate(*tokens: str) -> Outcome:
    """Predict how fast a run would be at another size."""
    preset, assignments = preset_and_assignments(without_help(tokens))
    options, rest = take_options(assignments)
    if asks_for_help(tokens):
        about = ABOUT.format(options=option_list(SimulateOptions))
        return train_settings_page(overrides.resolve(preset, rest).config, USAGE, about)
    resolved = resolve(preset, rest)
    for note in (*resolved.notes, *resolved.reasons):
        people().print(f"Note: {note}", markup=False)
    algorithm = load_algorithm(resolved.config.algorithm.name)
    gathers = algorithm.build_estimator is not None
    check_fits(options, algorithm.name, gathers)
    if gathers:
        return _simulate_rounds(resolved.config, algorithm, options)
    if resolved.config.balance != "paced":
        raise UsageError(
            f"balance is '{resolved.config.balance}', and `tianji simulate` predicts runs that are "
            "paced. Use --balance paced; `tianji train --engine virtual` runs every balance in "
            "simulated time."
        )
    machine, layout = read_machine(), _layout(resolved.config, options)
    config, plan, profile = _costs(
        resolved.config, divide(machine, layout.groups_per_node)[0], options
    )
    size = _size(options, plan, machine, layout)
    size = replace(size, combine=config.combine)
    return _simulate_sizes(config, profile, size, options.output)


class Layout(NamedTuple):
    """Where the groups are: several on a host, or several hosts for each."""

    num_groups: int
    groups_per_node: int
    nodes_per_group: int


def _layout(config: RunConfig, options: SimulateOptions) -> Layout:
    """Return where the groups are. --groups multiplies hosts, --num-groups shares them."""
    count, nodes = config.num_groups, options.nodes
    if config.actor_hosts:
        return _with_actor_hosts(config, options)
    if count == 1:
        return Layout(options.groups, 1, nodes)
    if options.groups > 1:
        raise UsageError(
            "--groups and --num-groups exclude each other: --num-groups counts the groups on "
            "--nodes hosts, --groups those with as many hosts each."
        )
    check_groups(config.model_copy(update={"engine": "local"}))
    if count >= nodes:
        return Layout(count, -(-count // nodes), 1)
    if nodes % count:
        raise UsageError(
            f"--nodes {nodes} and --num-groups {count}: hosts cannot be shared evenly among "
            f"the groups. Use a multiple of {count} hosts."
        )
    return Layout(count, 1, nodes // count)


def _with_actor_hosts(config: RunConfig, options: SimulateOptions) -> Layout:
    """Return the layout of groups with actors on hosts of their own."""
    each = 1 + config.actor_hosts
    if {"nodes", "groups"} & options.model_fields_set:
        raise UsageError(
            f"--actor-hosts {config.actor_hosts}: each of the groups has {each} hosts, which "
            "says how many there are. Leave out --nodes and --groups."
        )
    return Layout(config.num_groups, 1, each)


def _costs(
    config: RunConfig, machine: Machine, options: SimulateOptions
) -> tuple[RunConfig, RunPlan, Profile]:
    """Return the run to simulate, its plan, and the costs of its parts."""
    if config.device not in ("auto", "cpu") or config.inference not in ("auto", "actor-cpu"):
        raise UsageError(
            "A simulation takes the costs of actors that infer by themselves and of a learner on "
            "the CPU. Use --device cpu and --inference actor-cpu, or leave both out."
        )
    if config.learners_per_group > 1:
        raise UsageError(
            "A simulation has one learner in each group. Leave out --learners-per-group, or use as "
            "many groups with --combine gradients."
        )
    local = {"engine": "local", "device": "cpu", "num_groups": 1, "actor_hosts": 0}
    config = config.model_copy(update=local)
    if options.times_actor_s is not None and options.times_learner_s is not None:
        plan, profile = _by_hand(config, machine, options.times_actor_s, options.times_learner_s)
        return config, plan, profile
    from tianji.display.stream import tell_progress
    from tianji.planning.planner import measured_plan

    with tell_progress() as tell:
        planned = measured_plan(config, config.env, machine, tell)
    assert planned.solved is not None, "a plan that was measured has a solution"
    return planned.config, planned.plan, planned.solved.profile


def _by_hand(
    config: RunConfig, machine: Machine, unroll_s: float, version_s: float
) -> tuple[RunPlan, Profile]:
    from tianji.envs.build import probe
    from tianji.models.tensors import Snapshot
    from tianji.planning.resolve.resolve import resolve as resolve_plan
    from tianji.virtual.costs import profile_by_hand

    found = probe(config.env, config.env_kwargs, action_mask=config.action_mask)
    plan = resolve_plan(config, machine, found)
    algorithm = load_algorithm(config.algorithm.name)
    policy_bytes = Snapshot(algorithm.build_model(found.spaces, config)).nbytes
    cadence = algorithm.cadence(config)
    return plan, profile_by_hand(plan, cadence, unroll_s, version_s, policy_bytes)


def _size(options: SimulateOptions, plan: RunPlan, machine: Machine, layout: Layout) -> Size:
    from tianji.virtual.sizes import Size, enough_cores

    size = Size(
        actors_per_node=options.actors_per_node or plan.num_actors,
        envs_per_actor=options.envs_per_actor or plan.envs_per_actor,
        cores_per_node=options.cores_per_node or len(machine.cores),
        learner_threads=plan.learner_threads,
        actor_threads=plan.actor_threads,
        num_nodes=layout.nodes_per_group,
        num_groups=layout.num_groups,
        groups_per_node=layout.groups_per_node,
        num_versions=options.versions,
        network=options.links(),
    )
    is_spread = layout.nodes_per_group > 1 and options.cores_per_node is None
    return enough_cores(size) if is_spread else size


def _simulate_sizes(
    config: RunConfig, profile: Profile, size: Size, output: Path | None
) -> Outcome:
    from tianji.virtual.sizes import scales, simulate_size

    sizes = [size] if output is None else scales(size)
    found = [simulate_size(config, profile, one) for one in sizes]
    people().print(rates_table(sizes, found))
    if told := between_text(found[-1]):
        people().print(told, markup=False, soft_wrap=True)
    rows = [_row(config, one, simulated) for one, simulated in zip(sizes, found, strict=True)]
    if output is None:
        return Outcome(rows[-1])
    from tianji.figures.style import save
    from tianji.figures.sweep import draw_scale

    save(draw_scale(f"{config.env}, {config.algorithm.name}", rows), output)
    people().print(f"Wrote {output}", markup=False)
    return Outcome({**rows[-1], "scale": rows, "picture": str(output)})


def _row(config: RunConfig, size: Size, simulated: Simulated) -> dict[str, Any]:
    same = (
        *("actors_per_node", "envs_per_actor", "cores_per_node", "learner_threads"),
        *("num_groups", "groups_per_node", "combine", "num_hosts"),
    )
    sizes = {
        "nodes": size.num_nodes,
        "groups": size.num_groups,
        "combine_every": config.combine_every,
    }
    return asdict(simulated) | sizes | {name: getattr(size, name) for name in same}


def _simulate_rounds(config: RunConfig, algorithm: Algorithm, options: SimulateOptions) -> Outcome:
    from tianji.algorithms.interface import Gather
    from tianji.balance.given_times import Times
    from tianji.virtual.rounds import simulate_rounds, total

    law = options.given_times(config.times)
    num_actors = options.actors or _num_actors(config, law)
    sized = config.model_copy(update={"num_actors": num_actors, "num_envs": num_actors})
    gather = algorithm.cadence(sized)
    assert isinstance(gather, Gather), "an algorithm with gradients has a gather rule"
    num_parameters = options.parameters or 0
    if law.network == "sqrt-size" and not num_parameters:
        from tianji.planning.planner import probe_tasks

        spaces = probe_tasks(config, config.envs or config.env).spaces
        model = algorithm.build_model(spaces, config)
        num_parameters = sum(parameter.numel() for parameter in model.parameters())
    times = Times(law, num_actors, num_parameters, config.seed)
    num_steps = gather.unroll_length
    rounds = simulate_rounds(gather, times, num_actors, num_steps, options.rounds)
    found = total(rounds, num_actors)
    round_text = f"A round of {algorithm.name}: {round_in_words(gather)}."
    people().print(round_text, markup=False, soft_wrap=True)
    people().print(gradients_table(found, times, num_steps))
    people().print(rounds_text(found), markup=False, soft_wrap=True)
    about = {
        "algorithm": algorithm.name,
        "rule": gather.rule,
        "m": gather.num_gradients,
        "m_init": gather.first_num_gradients,
        "law": law.law,
        "network": law.network,
        "actors": num_actors,
    }
    return Outcome({**about, **asdict(found)})


def _num_actors(config: RunConfig, law: TimesConfig) -> int:
    if law.law == "given":
        return len(law.compute)
    if law.network == "given":
        return len(law.communicate)
    return len(read_machine().cores) if config.num_actors == "auto" else config.num_actors
