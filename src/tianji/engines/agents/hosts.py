"""The hosts of a run: where its groups may run, and the agents on them.

with open_hosts(config) as hosts:     # None where the run stays on this machine
    hosts.machine                     # what the run is planned for
    agent = hosts.start(group, is_wanted)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from tianji.config.machine import Machine
from tianji.config.run import RunConfig, adds_gradients
from tianji.engines.agents.modules import own_modules
from tianji.engines.agents.remote import AgentHandle
from tianji.records import HostFigures


class Hosts(Protocol):
    """Hosts that agents can be started on. Whoever opened them closes them."""

    @property
    def machine(self) -> Machine:
        """Return a host that agents run on; the others are taken to be like it."""
        ...

    @property
    def count(self) -> int:
        """Return the number of hosts."""
        ...

    @property
    def places(self) -> Mapping[int, str]:
        """Return the name of the host that each group was started on last."""
        ...

    def start(self, group: int, is_wanted: Callable[[], bool]) -> AgentHandle | None:
        """Start an agent for a group, when a host is free; return None if it is not wanted any more
        by then."""
        ...


@contextmanager
def open_hosts(config: RunConfig) -> Iterator[Hosts | None]:
    """Open the hosts of a run. Under MPI, ranks that are not the head serve it and never return."""
    if config.engine == "ray":
        from tianji.engines.agents.ray_hosts import RayHosts

        with RayHosts(config.ray_address, config.num_groups, own_modules(config)) as hosts:
            yield hosts
    elif config.engine == "mpi":
        from tianji.engines.agents.mpi_hosts import MpiHosts, begin

        begin()
        yield MpiHosts(config.num_groups, learners_meet=adds_gradients(config))
    else:
        yield None


def host_figures(hosts: Hosts) -> list[HostFigures]:
    """Return the figures of the hosts that groups were started on."""
    names, cores = dict.fromkeys(hosts.places.values()), len(hosts.machine.cores)
    return [
        HostFigures(
            host=name,
            groups=sorted(group for group, place in hosts.places.items() if place == name),
            usable_cores=cores,
        )
        for name in names
    ]
