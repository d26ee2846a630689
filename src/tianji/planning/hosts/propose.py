"""What several hosts like this machine would bring: groups, their places, and predicted rates.

    planned = measured_plan(config, config.env, machine, tell)     # one group on one machine
    proposal = propose(HostsRun(planned, machine, Asked(num_hosts=4), network))

Everything is simulated from the profile that the plan was solved from (virtual/sizes.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from tianji.config.machine import Machine
from tianji.config.run import Combine, RunConfig
from tianji.errors import UsageError
from tianji.planning.groups import check_groups, divide
from tianji.planning.hosts.limits import limits_in_words
from tianji.planning.hosts.proposal import Asked, Forecast, GroupShares, Proposal
from tianji.planning.planned import Planned, Solved
from tianji.planning.resolve.resolve import demand_of
from tianji.planning.solve.candidates import candidates
from tianji.virtual.clock import NetworkModel
from tianji.virtual.groups.combining import EXCHANGE_S
from tianji.virtual.simulate import Simulated
from tianji.virtual.sizes import Size, doublings, simulate_size
from tianji.wording import counted, to_percent, to_value

CORES_OF_A_GROUP = 2
"""Fewest cores of a group, where a host has several: for the learner, and for its actors."""
WORTH_IT = 0.1
"""More groups on a host must be faster by this share: each makes the batches of all larger."""
GRADIENTS_SHARE = 0.8
"""`gradients` must reach this share of the fastest way: its updates are those of one learner."""
COMBINES: tuple[Combine, ...] = ("gradients", "average", "gossip")


@dataclass(frozen=True)
class HostsRun:
    """A run that was planned for one machine, and the hosts that it shall have.

    planned: has a solution; its config has one group.
    """

    planned: Planned
    machine: Machine
    asked: Asked
    network: NetworkModel

    @property
    def config(self) -> RunConfig:
        return self.planned.config

    @cached_property
    def solved(self) -> Solved:
        assert self.planned.solved is not None, "a plan that was measured has a solution"
        return self.planned.solved

    def shares(self, groups_per_host: int) -> GroupShares:
        """Return the best shares of a group on its part of a host, or on its hosts."""
        hosts = self.asked.hosts_per_group
        part = divide(self.machine, groups_per_host)[0]
        profile, demand = self.solved.profile, demand_of(self.config, self.planned.probe)
        if groups_per_host > 1 or hosts > 1:  # rehearsals had one whole machine
            profile = profile.model_copy(update={"rehearsals": ()})
        cores = range(hosts * len(part.cores))
        found = candidates(profile, replace(part, cores=tuple(cores)), demand)
        even = [c for c in found if not c.num_actors % hosts]
        if not even:
            raise UsageError(
                f"--actor-hosts {hosts - 1}: {self.config.num_envs} environments cannot be shared "
                f"evenly among actors on {hosts} hosts. Use --num-envs and --num-actors that "
                f"are multiples of {hosts}."
            )
        chosen = even[0]
        return GroupShares(
            groups_per_host=groups_per_host,
            hosts_per_group=hosts,
            cores=len(part.cores),
            num_actors=chosen.num_actors,
            envs_per_actor=chosen.envs_per_actor,
            learner_threads=chosen.learner_threads,
            actor_threads=chosen.actor_threads,
            memory=chosen.memory,
        )

    def simulated(self, shares: GroupShares, num_groups: int, combine: Combine) -> Simulated:
        size = Size(
            actors_per_node=shares.num_actors // shares.hosts_per_group,
            envs_per_actor=shares.envs_per_actor,
            cores_per_node=len(self.machine.cores),
            num_nodes=shares.hosts_per_group,
            learner_threads=shares.learner_threads,
            actor_threads=shares.actor_threads,
            num_groups=num_groups,
            groups_per_node=min(num_groups, shares.groups_per_host),
            combine=combine,
            network=self.network,
        )
        return simulate_size(self.config, self.solved.profile, size)


def propose(run: HostsRun) -> Proposal:
    """Return the best way found to use all hosts; UsageError if the run cannot use them."""
    shares, why_groups = _groups_per_host(run)
    room = run.asked.num_hosts // run.asked.hosts_per_group
    num_groups = run.asked.num_groups or room * shares.groups_per_host
    combine, rates, why_combine = _combine(run, shares, num_groups)
    scale = tuple(_scale(run, shares, num_groups, combine))
    return Proposal(
        shares=shares,
        num_groups=num_groups,
        combine=combine,
        combine_every=run.config.combine_every,
        scale=scale,
        by_combine=rates,
        reasons=(why_groups, *why_combine, *limits_in_words(scale, combine, run.network)),
    )


def _groups_per_host(run: HostsRun) -> tuple[GroupShares, str]:
    """Return the shares of a group, with as many groups on a host as are worth it, and why."""
    asked = run.asked
    if asked.hosts_per_group > 1:
        words = f"Each group has {asked.hosts_per_group} hosts: you set actor_hosts."
        return run.shares(1), words
    if asked.num_groups is not None:
        each = -(-asked.num_groups // asked.num_hosts)
        return run.shares(each), f"{counted(each, 'group')} on a host: you set num_groups."
    best = run.shares(1)
    rate = one = run.simulated(best, 1, "gossip").received
    most = max(1, len(run.machine.cores) // CORES_OF_A_GROUP)
    for count in (n for n in doublings(most) if n > 1):
        shares = run.shares(count)
        found = run.simulated(shares, count, "gossip").received
        if found > rate * (1 + WORTH_IT):
            best, rate = shares, found
    if best.groups_per_host == 1:
        return best, "One group on each host: more of them there would not be faster."
    count = best.groups_per_host
    gain = to_percent(rate / one - 1)
    return best, (
        f"{counted(count, 'group')} on each host: {gain} faster there than one. {count} "
        f"learners train on {count} times the environments."
    )


def _combine(
    run: HostsRun, shares: GroupShares, num_groups: int
) -> tuple[Combine, dict[Combine, float], list[str]]:
    """Return the way to combine, the rates of all ways that can run, and why."""
    if num_groups == 1:
        return run.config.combine, {}, []
    if run.asked.combine is not None:
        check_groups(_on_hosts(run, num_groups, run.asked.combine))
        rate = run.simulated(shares, num_groups, run.asked.combine).received
        return run.asked.combine, {run.asked.combine: rate}, ["combine: you set it."]
    found = {
        combine: run.simulated(shares, num_groups, combine)
        for combine in COMBINES
        if _can_run(_on_hosts(run, num_groups, combine))
    }
    if not found:
        check_groups(_on_hosts(run, num_groups, "average"))  # says why there can be no groups
    rates = {combine: simulated.received for combine, simulated in found.items()}
    best = max(rates.values())
    told = ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
    words = f"Received steps/s by the way to combine: {told}."
    if rates.get("gradients", 0.0) >= GRADIENTS_SHARE * best:
        why = (
            "gradients: each update is that of one learner with all batches, at "
            f"{to_percent(rates['gradients'] / best)} of the fastest way."
        )
        return "gradients", rates, [words, why]
    period_s = found["average"].mix_period_s or 0.0
    if period_s <= 2 * EXCHANGE_S:
        return "average", rates, [words, "average: nobody waits, and every group mixes with all."]
    why = (
        "gossip: nobody waits, and a group reads one other. An average of so many groups would "
        f"reach them every {to_value(period_s)} s."
    )
    return "gossip", rates, [words, why]


def _on_hosts(run: HostsRun, num_groups: int, combine: Combine) -> RunConfig:
    engine = "local" if run.asked.num_hosts == 1 else "ray"
    changes = {"engine": engine, "num_groups": num_groups, "combine": combine}
    return run.config.model_copy(update=changes)


def _can_run(config: RunConfig) -> bool:
    try:
        check_groups(config)
    except UsageError:
        return False
    return True


def _scale(run: HostsRun, shares: GroupShares, num_groups: int, combine: Combine) -> list[Forecast]:
    one = run.simulated(shares, min(num_groups, shares.groups_per_host), combine)
    found = []
    for times in doublings(run.asked.num_hosts // shares.hosts_per_group):
        count = min(num_groups, times * shares.groups_per_host)
        simulated = one if times == 1 else run.simulated(shares, count, combine)
        share = simulated.received / (times * one.received)
        found.append(Forecast(times * shares.hosts_per_group, count, simulated, share))
    return found
