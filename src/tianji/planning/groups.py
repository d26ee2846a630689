"""Groups on one machine: which runs may have several, and each group's share of the cores.

    check_groups(config)                                        # before anything else
    groups = plan_groups(config, read_machine(), plan_one)      # plan_one plans a single group

All groups have equal shares: what is planned for one holds for all. Cores that remain are left to
the supervisor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tianji.algorithms.interface import Gather
from tianji.algorithms.registry import load_algorithm
from tianji.config.advice import advise
from tianji.config.machine import Machine
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig, adds_gradients, mixes_groups
from tianji.config.settings import ALGORITHM_NAME
from tianji.errors import UsageError
from tianji.planning.planned import Planned
from tianji.planning.resolve.gpu_memory import check_groups_fit

ENGINES_WITH_GROUPS = ("local", "inline", "ray", "mpi")
ONE_LEARNER = {"num_groups": 1, "learners_per_group": 1}
NO_HOSTS = "leave actor_hosts out"


def check_groups(config: RunConfig, had_groups: bool = False) -> None:
    """Raise UsageError if this run cannot have as many groups as it asks for.

    had_groups: the run is resumed and was saved with several."""
    if had_groups and config.engine not in ENGINES_WITH_GROUPS:
        raise UsageError(
            f"This run was saved with groups, which the {config.engine} engine cannot continue. "
            f"{advise(config, *({'engine': name} for name in ENGINES_WITH_GROUPS))}"
        )
    if config.actor_hosts:
        _check_actor_hosts(config)
    if config.num_learners == 1:
        return
    asked = f"num_groups = {config.num_groups}"
    if config.learners_per_group > 1:
        asked += f", learners_per_group = {config.learners_per_group}"
    if config.engine not in ENGINES_WITH_GROUPS:
        raise UsageError(
            f"{asked}: the {config.engine} engine runs one learner. "
            f"{advise(config, {'engine': 'local'}, ONE_LEARNER)}"
        )
    if isinstance(load_algorithm(config.algorithm.name).cadence(config), Gather):
        raise UsageError(
            f"{asked}: {config.algorithm.name} gathers gradients, and one learner gathers those of "
            "all actors. Use --num-groups 1 and more actors (--num-actors)."
        )
    if mixes_groups(config) and (why := load_algorithm(config.algorithm.name).not_mixed):
        raise UsageError(
            f"{asked}, and combine is '{config.combine}': {why} {advise(config, {'num_groups': 1})}"
        )
    if adds_gradients(config):
        _check_gradients(config, asked)
    if config.num_groups > 1 and config.combine == "gradients" and config.combine_max_age:
        ways = {"combine": "average"}, {"combine": "gossip"}, {"combine_max_age": 0}
        raise UsageError(
            f"combine_max_age = {config.combine_max_age}, and combine is 'gradients': groups that "
            f"add up gradients are never behind each other. {advise(config, *ways)}"
        )


def _check_actor_hosts(config: RunConfig) -> None:
    asked = f"actor_hosts = {config.actor_hosts}"
    if config.engine not in ("ray", "mpi"):
        raise UsageError(
            f"{asked}: the {config.engine} engine runs on one machine. "
            f"{advise(config, {'engine': 'ray'}, {'engine': 'mpi'}, or_else=NO_HOSTS)}"
        )
    gather = load_algorithm(config.algorithm.name).cadence(config)
    if isinstance(gather, Gather) and gather.rule == "every":
        others = [{ALGORITHM_NAME: name} for name in ("rennala-nigt", "ppo", "impala")]
        raise UsageError(
            f"{asked}: every gradient of {config.algorithm.name} makes a version of its own, so "
            "that nothing can be added up on the actors' hosts. "
            f"{advise(config, *others, or_else=NO_HOSTS)}"
        )
    if isinstance(gather, Gather) and gather.realisation == "all-reduce":
        raise UsageError(
            f"{asked}: an all-reduce of actors and learner runs on one host. Use "
            "--algorithm.realisation server, or leave --actor-hosts out."
        )
    if config.inference not in ("auto", "actor-cpu"):
        raise UsageError(
            f"{asked}: actors on other hosts infer by themselves, and inference is "
            f"'{config.inference}'. "
            f"{advise(config, {'inference': 'actor-cpu'}, or_else=NO_HOSTS)}"
        )


def _check_gradients(config: RunConfig, asked: str) -> None:
    algorithm = load_algorithm(config.algorithm.name)
    if not algorithm.adds_gradients:
        ways = () if algorithm.not_mixed else ("average", "gossip")
        mixing = ({"combine": how, "learners_per_group": 1} for how in ways)
        raise UsageError(
            f"{asked}: learners of {config.algorithm.name} cannot add up their gradients: its "
            "update cannot join others (Algorithm.adds_gradients). "
            f"{advise(config, *mixing, ONE_LEARNER)}"
        )


def divide(machine: Machine, num_groups: int) -> tuple[Machine, ...]:
    """Return an equal share of the machine for each group, with whole cores where there are enough.

    Groups that outnumber the usable cores share them, so that nothing can be pinned.
    """
    if num_groups == 1:
        return (machine,)
    units = _whole_cores(machine)
    if len(units) < num_groups:
        units = [(core,) for core in machine.cores]
    each = len(units) // num_groups
    if each:
        parts = [units[g * each : (g + 1) * each] for g in range(num_groups)]
    else:
        parts = [[units[g % len(units)]] for g in range(num_groups)]
    memory_bytes = machine.memory_bytes // num_groups
    return tuple(
        _share(machine, [core for unit in part for core in unit], memory_bytes, crowded=not each)
        for part in parts
    )


def _whole_cores(machine: Machine) -> list[tuple[int, ...]]:
    """Return the hyper-threads of each core, node by node."""
    threads = {group[0]: group for group in machine.siblings}
    later = {core for group in machine.siblings for core in group[1:]}
    nodes = machine.nodes or (machine.cores,)
    return [threads.get(core, (core,)) for node in nodes for core in node if core not in later]


def _share(machine: Machine, cores: Sequence[int], memory_bytes: int, crowded: bool) -> Machine:
    held = set(cores)
    nodes = (tuple(core for core in node if core in held) for node in machine.nodes)
    return replace(
        machine,
        cores=tuple(cores),
        memory_bytes=memory_bytes,
        is_shared=machine.is_shared or crowded,
        nodes=tuple(node for node in nodes if node),
        siblings=tuple(group for group in machine.siblings if held.issuperset(group)),
    )


@dataclass(frozen=True, slots=True)
class PlannedGroups:
    """The plan of one group, the same on the cores of each group, and their shares."""

    planned: Planned
    plans: tuple[RunPlan, ...]
    shares: tuple[Machine, ...]

    @property
    def for_run(self) -> RunPlan:
        """The plan with the prediction of the whole run."""
        plan, num_groups = self.planned.plan, len(self.plans)
        if plan.prediction is None or num_groups == 1:
            return plan
        one = plan.prediction
        rates = {
            name: num_groups * getattr(one, name) for name in ("produced", "received", "trained")
        }
        return plan.model_copy(update={"prediction": one.model_copy(update=rates)})


def plan_groups(
    config: RunConfig,
    machine: Machine,
    plan: Callable[[RunConfig, Machine], Planned],
    agents_each: int | None = None,
) -> PlannedGroups:
    """Plan a run: one learner with its actors on its share of a machine, and the others alike.

    plan: plans a run of one learner on a machine. agents_each: agents that share a host, where the
    run is on several hosts like this one; None: all learners are on this one."""
    count = config.num_learners
    dealt = divide(machine, agents_each or count)
    if agents_each is not None and agents_each > 1:  # which agents meet on a host is not known
        dealt = tuple(replace(share, is_shared=True) for share in dealt)
    shares = tuple(dealt[number % len(dealt)] for number in range(count))
    alone = {"num_groups": 1, "learners_per_group": 1}
    planned = _plan_one(config.model_copy(update=alone), shares[0], plan)
    check_groups_fit(planned.plan, count)
    whole = planned.config.model_copy(update={name: getattr(config, name) for name in alone})
    plans = tuple(_moved(planned.plan, shares[0].cores, share.cores) for share in shares)
    return PlannedGroups(replace(planned, config=whole), plans, shares)


def _plan_one(
    config: RunConfig, share: Machine, plan: Callable[[RunConfig, Machine], Planned]
) -> Planned:
    """Plan one group: on one machine, or on several as if they were one."""
    if not config.actor_hosts:
        return plan(config, share)
    num_cores = len(share.cores)
    cores = tuple(range(num_cores * (1 + config.actor_hosts)))
    whole = Machine(cores, share.memory_bytes, is_shared=True)
    planned = plan(config.model_copy(update={"inference": "actor-cpu"}), whole)
    threads = min(planned.plan.learner_threads, num_cores)
    places = place_actors(planned.plan.num_actors, config.actor_hosts, num_cores, threads)
    counts = ", ".join(str(places.count(host)) for host in range(1 + config.actor_hosts))
    note = f"Actors on each of the group's hosts, the learner's first: {counts}."
    update = {
        "actor_places": places,
        "learner_threads": threads,
        "notes": (*planned.plan.notes, note),
    }
    return replace(planned, plan=planned.plan.model_copy(update=update))


def place_actors(
    num_actors: int, actor_hosts: int, num_cores: int, learner_threads: int
) -> tuple[int, ...]:
    """Return the host of each actor: by the cores that are free for actors on each.

    num_cores: of each host."""
    room = [max(0, num_cores - learner_threads), *[num_cores] * actor_hosts]
    counts = [0] * len(room)
    for _ in range(num_actors):
        # Other hosts come first where there is a choice: they have no learner.
        share = [(counts[h] + 1) / room[h] if room[h] else num_actors + 1 for h in range(len(room))]
        counts[min(range(len(room)), key=lambda h: (share[h], -h))] += 1
    if not all(counts[1:]):
        raise UsageError(
            f"actor_hosts = {actor_hosts}, and the run has {num_actors} "
            f"{'actor' if num_actors == 1 else 'actors'}: not enough for a host each. Use more "
            "(--num-actors, with --num-envs a multiple of it), or fewer --actor-hosts."
        )
    return tuple(host for host, count in enumerate(counts) for _ in range(count))


def _moved(plan: RunPlan, before: Sequence[int], after: Sequence[int]) -> RunPlan:
    to = dict(zip(before, after, strict=True))
    cores = {name: tuple(to[core] for core in its) for name, its in plan.cores.items()}
    return plan.model_copy(update={"cores": cores})
