"""The hosts of a run: where its groups may run, and the agents on them.

with open_hosts(config) as hosts:     # None where the run stays on this machine
    hosts.machine                     # what the run is planned for
    agent = hosts.start(number, is_wanted)
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from tianji.config.machine import Machine
from tianji.config.run import RunConfig, adds_gradients
from tianji.engines.agents.interface import AgentHandle
from tianji.engines.agents.modules import own_modules
from tianji.engines.agents.network import SECRET_BYTES, NetworkSpeed
from tianji.records import HostFigures, LinkFigures

PLACE_S = 30.0
"""Longest time to wait for places on two hosts, to measure the network between them."""


class Hosts(Protocol):
    """Hosts that agents can be started on. Whoever opened them closes them."""

    @property
    def machine(self) -> Machine:
        """Return a host that agents run on; the others are taken to be like it."""
        ...

    @property
    def agents_each(self) -> int:
        """Return how many agents share a host."""
        ...

    @property
    def places(self) -> Mapping[int, str]:
        """Return the name of the host that each agent was started on last, by its number."""
        ...

    def start(self, number: int, is_wanted: Callable[[], bool]) -> AgentHandle | None:
        """Start the agent with this number, when a host is free; return None if it is not wanted
        any more by then."""
        ...


@contextmanager
def open_hosts(config: RunConfig) -> Iterator[Hosts | None]:
    """Open the hosts of a run. Under MPI, ranks that are not the head serve it and never return."""
    if config.engine == "ray":
        from tianji.engines.agents.ray_hosts import RayHosts

        sizes = config.num_learners, 1 + config.actor_hosts
        with RayHosts(config.ray_address, *sizes, own_modules(config)) as hosts:
            yield hosts
    elif config.engine == "mpi":
        from tianji.engines.agents.mpi.hosts import MpiHosts, begin

        yield MpiHosts(begin(), num_agents(config), learners_meet=adds_gradients(config))
    else:
        yield None


def measure_network(config: RunConfig) -> NetworkSpeed | None:
    """Measure the way between two hosts of the cluster of config.engine; None where it has one."""
    two = {"num_groups": 2, "learners_per_group": 1, "actor_hosts": 0, "combine": "average"}
    with open_hosts(config.model_copy(update=two)) as hosts:
        assert hosts is not None, "only a cluster has a network"
        until_s = time.monotonic() + PLACE_S
        agents = [hosts.start(number, lambda: time.monotonic() < until_s) for number in range(2)]
        try:
            one, other = agents
            if one is None or other is None or one.host == other.host:
                return None
            return one.measure_from(other, secrets.token_bytes(SECRET_BYTES))
        finally:
            for agent in agents:
                if agent is not None:
                    agent.close()


def num_agents(config: RunConfig) -> int:
    """Return how many agents a run has: those of each learner follow each other."""
    return config.num_learners * (1 + config.actor_hosts)


def host_figures(
    hosts: Hosts, config: RunConfig, links: Mapping[int, LinkFigures]
) -> list[HostFigures]:
    """Return the figures of the hosts that agents were started on.

    links: what has crossed to agents, by their numbers."""
    of_host: dict[str, list[int]] = {}
    for number, name in sorted(hosts.places.items()):
        of_host.setdefault(name, []).append(number)
    figures, each = [], config.learners_per_group * (1 + config.actor_hosts)
    for name, numbers in of_host.items():
        crossed = [links[number] for number in numbers if number in links]
        figures.append(
            HostFigures(
                host=name,
                groups=sorted({number // each for number in numbers}),
                usable_cores=len(hosts.machine.cores),
                from_learner_bytes=sum(link.sent_bytes for link in crossed),
                to_learner_bytes=sum(link.received_bytes for link in crossed),
                policies=sum(link.policies for link in crossed),
            )
        )
    return figures
