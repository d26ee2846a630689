"""Hosts of agents that live in this process: real workers and links, without Ray or MPI."""

from contextlib import contextmanager

import tianji.run
from tianji.config.machine import read_machine
from tianji.engines.agents.mpi.hosts import OwnAgent


class AgentsHere:
    """Every agent is one of this process, and is reached over loopback."""

    agents_each = 1

    def __init__(self):
        self.machine = read_machine()
        self.places = {}
        self.agents = {}

    def start(self, number, is_wanted):
        agent = OwnAgent(f"host {number}")
        agent.address = "127.0.0.1"
        self.places[number] = agent.host
        self.agents.setdefault(number, []).append(agent)
        return agent


def use_agents_here(monkeypatch):
    """Let runs of the cluster engines use agents of this process."""
    hosts = AgentsHere()

    @contextmanager
    def open_them(config):
        yield hosts if config.engine in ("ray", "mpi") else None

    monkeypatch.setattr(tianji.run, "open_hosts", open_them)
    return hosts
