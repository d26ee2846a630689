"""The hosts of the Ray engine: an agent on a host runs the group, and this process is its head.

It uses the cluster at `ray_address`, or one that was started on this machine before, or starts a
Ray of its own. Ray carries orders, reports and gauges; experience and policies stay in the shared
memory of the agent's host.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tianji.config.machine import Machine, read_machine
from tianji.engines.agents.agent import Agent
from tianji.engines.agents.interface import AgentHandle, Call, HostLost
from tianji.engines.agents.modules import copy_modules
from tianji.errors import UsageError

AUTO, LOCAL = "auto", "local"
CURRENT_CLUSTER = Path(tempfile.gettempdir()) / "ray" / "ray_current_cluster"
"""Where `ray start` notes the address of the cluster on this machine; it may be out of date."""
LOOPBACK = "127.0.0.1"
"""The address of a Ray that was started for one run. Its ports are open on all interfaces, as
those of every Ray."""
PLACE_S = 60.0
"""Longest time to wait for a place on the cluster."""
LOOK_S = 0.5
"""Time after which whoever waits asks whether it is still wanted."""
SILENCE_S = 30.0
"""An agent that does not answer for this long is given up; a cable may be out for some seconds."""
ANSWERS_S = 5.0
"""A cluster is there if its port answers within this time; Ray itself tries for minutes."""
NO_CLUSTER = (
    "There is no Ray cluster at ray_address '{}' ({}). Start one there with `ray start --head`, or "
    "leave --ray-address out: a Ray is then started on this machine."
)
NO_TOKEN = (
    "The Ray cluster at '{}' asks for its token, which this command does not have. Set "
    "RAY_AUTH_TOKEN to it, or RAY_AUTH_TOKEN_PATH to a file that holds it, with "
    "RAY_AUTH_MODE=token, as on the hosts of the cluster."
)


class RayHosts:
    """The hosts of a Ray cluster, which is ended if it was started here. Ray calls them nodes.

    Where groups outnumber the hosts, those of a host share its cores. Agents with actors alone wait
    for hosts that are free, and run on those that join later; only a Ray that was started here,
    which has no other hosts, runs all agents on its own."""

    def __init__(
        self,
        address: str,
        num_learners: int = 1,
        hosts_each: int = 1,
        modules: Sequence[Path] = (),
    ) -> None:
        """hosts_each: agents of each learner. modules: the person's own, which every host gets a
        copy of."""
        self._address = address
        self._num_learners, self._hosts_each = num_learners, hosts_each
        self._is_ours = False
        self._modules = modules
        self._shipped = contextlib.ExitStack()
        self._ray = import_ray()
        self._placed = threading.Condition()
        """Guards the places, and tells of new ones."""
        self._first: RayAgent | None = None
        """Started to look at its host; it is the first one that start() returns."""
        self._machine: Machine | None = None
        self.places: dict[int, str] = {}

    def __enter__(self) -> Self:
        with _signals_kept():
            self._connect()
        return self

    def _connect(self) -> None:
        ray = self._ray
        quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
        if self._modules:
            folder = self._shipped.enter_context(tempfile.TemporaryDirectory(prefix="tianji-"))
            copy_modules(self._modules, Path(folder))
            quiet["runtime_env"] = {"working_dir": folder}
        is_found = self._address == AUTO
        if not is_found:
            _check_address(self._address)
        elif not (running := _answering_cluster()):
            cores = len(read_machine().cores)
            own = {"num_cpus": cores, "include_dashboard": False, "_node_ip_address": LOOPBACK}
            self._is_ours = True
            ray.init(address=LOCAL, **own, **quiet)
            return
        else:
            self._address = running
        try:
            _check_token(ray, self._address, is_found)
            ray.init(address=self._address, **quiet)
        except ray.exceptions.AuthenticationError as error:
            raise UsageError(NO_TOKEN.format(self._address)) from error
        except (ConnectionError, ray.exceptions.RpcError) as error:  # its port answers
            raise UsageError(NO_CLUSTER.format(self._address, error)) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ray.shutdown()
        self._shipped.close()

    @property
    def machine(self) -> Machine:
        if self._machine is not None:
            return self._machine
        until_s = time.monotonic() + PLACE_S
        self._first = self._place(lambda: time.monotonic() < until_s)
        if self._first is None:
            raise UsageError(
                f"No host of the Ray cluster had enough free CPUs for {PLACE_S:g} s. `ray status` "
                f"shows what uses them; free ones now: {self._ray.available_resources()}."
            )
        self._machine = self._first.machine()
        return self._machine

    @property
    def agents_each(self) -> int:
        num_agents = self._num_learners * (self._hosts_each if self._is_ours else 1)
        return -(-num_agents // max(1, len(self._cpus())))

    def _cpus(self) -> list[float]:
        """Return the CPUs of each node that has some."""
        alive = [node["Resources"].get("CPU", 0.0) for node in self._ray.nodes() if node["Alive"]]
        return [cpus for cpus in alive if cpus]

    def start(self, number: int, is_wanted: Callable[[], bool]) -> RayAgent | None:
        if not self._is_first(number):
            self._wait_for_learners(is_wanted)
        with self._placed:
            first, self._first = self._first, None
        agent = first or self._place(is_wanted)
        if agent is not None:
            with self._placed:
                self.places[number] = agent.host
                self._placed.notify_all()
        return agent

    def _is_first(self, number: int) -> bool:
        """Return whether the agent is that of a group's learner."""
        return number % self._hosts_each == 0

    def _wait_for_learners(self, is_wanted: Callable[[], bool]) -> None:
        """Wait until all learners have places: actors are of no use without them."""
        with self._placed:
            while not self._placed.wait_for(self._have_all_learners, LOOK_S) and is_wanted():
                pass  # the next wait

    def _have_all_learners(self) -> bool:
        return sum(map(self._is_first, self.places)) == self._num_learners

    def _place(self, is_wanted: Callable[[], bool]) -> RayAgent | None:
        """Wait for a free place and start an agent there, as long as it is wanted."""
        ray, nodes = self._ray, self._cpus()
        if not nodes:
            raise UsageError("The Ray cluster has no host with CPUs. `ray status` shows its hosts.")
        cpus = max(nodes) / self.agents_each
        group = ray.util.placement_group([{"CPU": cpus}])
        while not group.wait(LOOK_S):
            if not is_wanted():
                ray.util.remove_placement_group(group)
                return None
        return RayAgent(ray, group, cpus)


class RayAgent(AgentHandle):
    """An agent on a host."""

    def __init__(self, ray: Any, group: Any, num_cpus: float) -> None:
        self._ray = ray
        self._group = group
        place = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(group)
        # One call waits for news while another one stops the group.
        options = {"num_cpus": num_cpus, "max_concurrency": 4, "scheduling_strategy": place}
        self._actor = ray.remote(Agent).options(**options).remote()
        self.host = self.address = self._find_address()

    def _find_address(self) -> str:
        (node_id,) = self._ray.util.placement_group_table(self._group)[
            "bundles_to_node_id"
        ].values()
        addresses = {node["NodeID"]: node["NodeManagerAddress"] for node in self._ray.nodes()}
        return str(addresses.get(node_id, node_id))

    def call(self, call: Call, words: bytes, wait_s: float = 0.0) -> bytes:
        errors = self._ray.exceptions
        try:
            reply = self._actor.answer.remote(int(call), words)
            answer: bytes = self._ray.get(reply, timeout=wait_s + SILENCE_S)
        except errors.GetTimeoutError as error:
            raise HostLost(f"Host {self.host} has not answered for {SILENCE_S:g} s.") from error
        except errors.RayTaskError as error:
            raise error.cause from error
        except errors.RayActorError as error:
            is_dead = isinstance(error, errors.ActorDiedError)
            why = "its agent has died" if is_dead else "its agent cannot be reached"
            raise HostLost(f"Host {self.host} was lost: {why}.") from error
        return answer

    def close(self) -> None:
        self._ray.kill(self._actor)
        self._ray.util.remove_placement_group(self._group)


def import_ray() -> Any:
    """Return the package; raise UsageError where it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise UsageError(
            "engine is 'ray', and Ray is not installed. Install it with `pip install "
            "'tianji[ray]'`, on every host, or use --engine local."
        ) from error
    return ray


def _answering_cluster() -> str:
    """Return the address of a cluster that runs on this machine; "" where there is none."""
    with contextlib.suppress(OSError):
        address = os.environ.get("RAY_ADDRESS") or CURRENT_CLUSTER.read_text().strip()
        host, _, port = address.rpartition(":")
        if host and port.isdigit():
            socket.create_connection((host, int(port)), ANSWERS_S).close()
            return address
    return ""


def _check_address(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"ray_address is '{address}'; it must be auto or HOST:PORT.")
    try:
        socket.create_connection((host, int(port)), ANSWERS_S).close()
    except OSError as error:
        raise UsageError(NO_CLUSTER.format(address, error.strerror or error)) from error


def _check_token(ray: Any, address: str, is_found: bool) -> None:
    """Raise AuthenticationError where the cluster does not take our token. ray.init() would try
    again for 20 s, write a line each second, and not say why.

    is_found: the cluster was found on this machine; as in Ray, the token that the person has there
    is then used without being asked for."""
    try:
        from ray._private.authentication.authentication_token_setup import (
            ensure_token_if_auth_enabled,
            maybe_enable_token_auth_if_token_available,
        )
    except ImportError:  # an older Ray: ray.init() finds out
        return
    logging.getLogger("ray").setLevel(logging.ERROR)
    if is_found:
        maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
    ensure_token_if_auth_enabled(create_token_if_missing=False)  # without one, GcsClient crashes
    ray._raylet.GcsClient(address=address)


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Put back the handlers of signals, which Ray replaces."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # not in the main thread, where Ray installs none
            for number, handler in before.items():
                signal.signal(number, handler)
