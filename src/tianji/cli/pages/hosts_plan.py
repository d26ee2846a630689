"""The plan of a run on several hosts, as people and as scripts read it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tianji.cli.pages.memory import memory_text
from tianji.cli.pages.options import LINK_GBIT, LINK_MS, link_model, spelled
from tianji.cli.pages.tables import command_list, fact_list, figures_table, sentence_list
from tianji.config.schema import Count, Positive, Strict
from tianji.config.settings import canonical
from tianji.config.values import Assignment
from tianji.errors import UsageError
from tianji.planning.hosts.proposal import GroupShares, Proposal
from tianji.planning.hosts.propose import HostsRun
from tianji.planning.solve.demand import mib
from tianji.virtual.clock import NetworkModel
from tianji.virtual.simulate import Simulated
from tianji.wording import counted, to_count, to_percent, to_value

MOST_NODES = 4096


LinkSource = Literal["assumed", "given", "measured"]
LINK_SOURCES: dict[LinkSource, str] = {
    "assumed": "assumed, not measured: set --link-gbit and --link-ms, or name the cluster by "
    "--engine ray or mpi",
    "given": "as you set it; it was not measured",
    "measured": "measured between two hosts of the cluster",
}


class HostsOptions(Strict):
    """The hosts that a run shall have."""

    nodes: Count | None = None
    """Plan for this many hosts like this machine: groups, their places, and predicted rates."""
    link_gbit: Positive = LINK_GBIT
    """With --nodes: gigabits per second of each host's link, in each direction."""
    link_ms: float = Field(LINK_MS, ge=0.0)
    """With --nodes: milliseconds that a message takes between hosts."""

    def links(self) -> NetworkModel:
        return link_model(self.link_gbit, self.link_ms)

    def check(self) -> None:
        """Raise UsageError for values that make no sense together."""
        if self.nodes is None and self.model_fields_set:
            raise UsageError(f"{spelled(min(self.model_fields_set))} belongs to --nodes.")
        if self.nodes is not None and self.nodes > MOST_NODES:
            raise UsageError(
                f"--nodes {self.nodes}: at most {MOST_NODES:,}. All groups report to one head, "
                "which would not keep up with more."
            )

    @property
    def is_link_given(self) -> bool:
        return bool(self.model_fields_set & {"link_gbit", "link_ms"})

    def link_words(self, source: LinkSource) -> str:
        link = f"{to_value(self.link_gbit)} Gbit/s, {to_value(self.link_ms)} ms"
        return f"{link} ({LINK_SOURCES[source]})"


@dataclass(frozen=True, slots=True)
class HostsPlan:
    """What is shown. words: the preset and the settings, as they were written."""

    run: HostsRun
    proposal: Proposal
    options: HostsOptions
    preset: str | None
    written: Sequence[Assignment]
    link_source: LinkSource

    @property
    def num_hosts(self) -> int:
        return self.run.asked.num_hosts


def hosts_page(plan: HostsPlan) -> RenderableType:
    proposal, config = plan.proposal, plan.run.config
    hosts = f"{counted(plan.num_hosts, 'host')} of {counted(_num_cores(plan), 'core')}"
    title = " · ".join((config.env_name, config.algorithm.name, hosts))
    predicted = "Predicted by simulation, with costs measured on this machine; the other hosts "
    return Group(
        Text(title, style="bold"),
        "",
        fact_list(_facts(plan)),
        "",
        _table(proposal),
        Text("\nWhy", style="bold"),
        sentence_list(proposal.reasons),
        Text("\nTo run it", style="bold"),
        command_list({command: about for about, command in commands(plan).items()}),
        "",
        Text(f"{predicted}are taken to be like it.", style="dim"),
    )


def _num_cores(plan: HostsPlan) -> int:
    return len(plan.run.machine.cores)


def _facts(plan: HostsPlan) -> dict[str, str]:
    proposal, shares = plan.proposal, plan.proposal.shares
    groups = counted(proposal.num_groups, "group")
    many = shares.groups_per_host > 1 and plan.num_hosts > 1
    where = f", {shares.groups_per_host} on each host" if many else ""
    head = "; the head is on the first host" if plan.num_hosts > 1 else ""
    facts = {"groups": f"{groups}{where}{head}", "each group": _group_words(shares)}
    if proposal.num_groups > 1:
        count = proposal.combine_every
        every = f", every {counted(count, 'update')}" if count > 1 else ", every update"
        facts["combine"] = proposal.combine + ("" if proposal.combine == "gradients" else every)
    if plan.num_hosts > 1:
        facts["link"] = plan.options.link_words(plan.link_source)
        facts["between"] = _between_words(proposal.whole.simulated, plan.num_hosts)
    where = "each host" if shares.hosts_per_group == 1 else "a learner's host"
    own = f"{mib(shares.memory_per_host)} MiB on {where}"
    facts["memory"] = f"{own}; a group: {memory_text(shares.memory)}"
    return facts


def _group_words(shares: GroupShares) -> str:
    actors = f"{counted(shares.num_actors, 'actor')} with {shares.envs_per_actor} environments each"
    learner = f"a learner with the buffer, {counted(shares.learner_threads, 'thread')}"
    where = counted(shares.cores, "core")
    if shares.hosts_per_group > 1:
        where = f"{where} of each of {shares.hosts_per_group} hosts"
    return f"{learner}; {actors}; on {where}"


def _between_words(found: Simulated, num_hosts: int) -> str:
    parts = [f"{kind} {to_value(rate / 1e6)}" for kind, rate in found.bytes_per_s.items() if rate]
    return f"{', '.join(parts) or 'nothing'} (MB/s, all {num_hosts} hosts together)"


def _table(proposal: Proposal) -> Table:
    names = (
        "hosts",
        "groups",
        "received\nsteps/s",
        "trained\nsteps/s",
        "lag",
        "of\nproportional",
    )
    table = figures_table(names)
    table.add_column("limit", no_wrap=True)
    for forecast in proposal.scale:
        found = forecast.simulated
        table.add_row(
            str(forecast.num_hosts),
            str(forecast.num_groups),
            to_count(found.received),
            to_count(found.trained),
            f"{found.lag_versions:.2f}",
            to_percent(forecast.share),
            found.bottleneck,
        )
    return table


def commands(plan: HostsPlan) -> dict[str, str]:
    """Return the commands to type, by the engine that they use."""
    proposal, num_hosts = plan.proposal, plan.num_hosts
    if num_hosts == 1:
        return {"on this machine": _command(plan, proposal.num_groups, proposal.shares)}
    ray = f"{_command(plan, proposal.num_groups, proposal.shares)} --engine ray"
    one_each, groups = proposal.shares, proposal.num_groups
    if one_each.groups_per_host > 1:  # a rank runs one group
        one_each, groups = plan.run.shares(1), num_hosts
    mpi = f"mpirun --bind-to none -n {num_hosts} {_command(plan, groups, one_each)} --engine mpi"
    return {"Ray": ray, "MPI, one rank for each host": mpi}


_CHOSEN = ("num_groups", "combine", "num_actors", "learner_threads", "actor_threads", "engine")


def _command(plan: HostsPlan, num_groups: int, shares: GroupShares) -> str:
    words = ["tianji", "train", *([plan.preset] if plan.preset else [])]
    for assignment in plan.written:
        if canonical(assignment.written) not in _CHOSEN:
            value = [] if assignment.value is None else [str(assignment.value)]
            words += [assignment.written, *value]
    if num_groups > 1:
        words += ["--num-groups", str(num_groups), "--combine", plan.proposal.combine]
    for name in ("num_actors", "learner_threads", "actor_threads"):
        words += [spelled(name), str(getattr(shares, name))]
    return shlex.join(words)


def hosts_report(plan: HostsPlan) -> dict[str, Any]:
    """Return what scripts read."""
    proposal, shares, whole = plan.proposal, plan.proposal.shares, plan.proposal.whole.simulated
    return {
        "nodes": plan.num_hosts,
        "cores_per_node": _num_cores(plan),
        "num_groups": proposal.num_groups,
        "groups_per_node": shares.groups_per_host,
        "nodes_per_group": shares.hosts_per_group,
        "combine": proposal.combine,
        "combine_every": proposal.combine_every,
        "num_actors": shares.num_actors,
        "envs_per_actor": shares.envs_per_actor,
        "learner_threads": shares.learner_threads,
        "actor_threads": shares.actor_threads,
        "placement": _placement(plan),
        "predicted": {name: getattr(whole, name) for name in ("produced", "received", "trained")},
        "bottleneck": whole.bottleneck,
        "bytes_per_s": whole.bytes_per_s,
        "mix_period_s": whole.mix_period_s,
        "by_combine": proposal.by_combine,
        "scale": [
            {
                "nodes": forecast.num_hosts,
                "num_groups": forecast.num_groups,
                "produced": forecast.simulated.produced,
                "received": forecast.simulated.received,
                "trained": forecast.simulated.trained,
                "lag_versions": forecast.simulated.lag_versions,
                "bottleneck": forecast.simulated.bottleneck,
                "share_of_proportional": forecast.share,
            }
            for forecast in proposal.scale
        ],
        "memory_bytes_per_node": shares.memory_per_host,
        "link": {
            "gbit": plan.options.link_gbit,
            "ms": plan.options.link_ms,
            "source": plan.link_source,
        },
        "reasons": list(proposal.reasons),
        "commands": commands(plan),
        "profile_from_cache": plan.run.solved.from_cache,
    }


def _placement(plan: HostsPlan) -> list[dict[str, Any]]:
    """Return the groups of each host; the head places them, so that others may be swapped."""
    shares = plan.proposal.shares
    groups = range(plan.proposal.num_groups)
    return [
        {
            "host": host,
            "head": host == 0,
            "learner": host % shares.hosts_per_group == 0,
            "groups": list(groups[host // shares.hosts_per_group :: _stride(plan)]),
            "cores_per_group": shares.cores,
        }
        for host in range(plan.num_hosts)
    ]


def _stride(plan: HostsPlan) -> int:
    return plan.num_hosts // plan.proposal.shares.hosts_per_group
