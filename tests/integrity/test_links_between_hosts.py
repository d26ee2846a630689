"""Items between two real hosts (network namespaces) over a link that is cut, slow or lossy.

The ends are those of benchmarks/links: the receiver checks number and bytes of every item, and ends
when the last one has arrived. Nothing may be lost, doubled or reordered.
"""

import json
import sys
import time
from pathlib import Path

import pytest

from benchmarks.namespaces import Network, why_not
from tianji.gateways.links.keys import LinkKeys

ROOT = Path(__file__).parents[2]
LONG_S = 90
pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "possible")


@pytest.fixture
def hosts():
    with Network(2) as made:
        yield made


@pytest.fixture(scope="module")
def keys():
    return LinkKeys.make()


class Exchange:
    """An actor's host and a buffer's host, with items on their way."""

    def __init__(self, hosts, transport, keys, size, seconds):
        self._hosts, self._keys = hosts, keys
        words = [transport, hosts.addresses[1], str(size), str(seconds)]
        self._receiver = self._start(1, "receive", *words)
        self._sender = self._start(0, "send", *words)

    def _start(self, host, *words):
        command = [sys.executable, "-m", "benchmarks.links.end", *words]
        process = self._hosts.start(host, command, cwd=ROOT)
        process.stdin.write(self._keys.to_text())
        process.stdin.close()
        process.stdin = None
        return process

    def num_items(self):
        """Wait for the end; return how many items arrived."""
        answer, errors = self._receiver.communicate(timeout=LONG_S)
        assert self._receiver.returncode == 0, errors
        _, errors = self._sender.communicate(timeout=LONG_S)
        assert self._sender.returncode == 0, errors
        return json.loads(answer)["items"]


@pytest.mark.parametrize("transport", [pytest.param("link", marks=pytest.mark.slow), "link-tls"])
def test_everything_arrives_over_a_link_that_is_down_for_two_seconds(hosts, keys, transport):
    hosts.limit_gbit(0.2)
    exchange = Exchange(hosts, transport, keys, size=64 << 10, seconds=4)
    time.sleep(2.0)
    hosts.set_cable(0, "down")
    time.sleep(2.0)
    hosts.set_cable(0, "up")
    assert exchange.num_items() > 50


def test_everything_arrives_over_a_link_with_delay_and_loss(hosts, keys):
    if not hosts.disturb("delay", "5ms", "2ms", "loss", "1%"):
        pytest.skip("this kernel has no netem")
    assert Exchange(hosts, "link-tls", keys, size=16 << 10, seconds=3).num_items() > 50


def test_everything_arrives_over_a_link_that_loses_packets(hosts, keys):
    hosts.lose_bursts()
    assert Exchange(hosts, "link-tls", keys, size=64 << 10, seconds=2).num_items() > 20


@pytest.mark.slow
def test_everything_arrives_after_a_silence_that_breaks_the_connection(hosts, keys):
    hosts.limit_gbit(0.2)
    exchange = Exchange(hosts, "link-tls", keys, size=64 << 10, seconds=14)
    time.sleep(3.0)
    hosts.set_cable(1, "down")
    time.sleep(9.0)  # more than a link may be silent
    hosts.set_cable(1, "up")
    assert exchange.num_items() > 50
