"""Two gateways over real sockets, turned by hand."""

import contextlib
import os
import socket
import ssl
import threading
import time

import pytest

from tests.unit.gateways.ends import CLEAR, CountingPort, TwoEnds
from tianji.errors import ChannelError
from tianji.gateways.gateway import Gateway
from tianji.gateways.links.frames import HEADER_BYTES, Header, Kind
from tianji.gateways.links.keys import LinkKeys
from tianji.gateways.links.state import LinkLimits, LinkState
from tianji.gateways.refusals import Refusal


@pytest.fixture(scope="module")
def tls():
    return LinkKeys.make()


@pytest.fixture(params=["clear", "tls"])
def keys(request, tls):
    return {"clear": CLEAR, "tls": tls}[request.param]


def numbers(count):
    return list(range(count))


def test_messages_of_both_ends_arrive_once_and_in_order(keys):
    b, a = CountingPort(300, 1000), CountingPort(300, 70_000)
    with TwoEnds(b, a, keys) as ends:
        ends.turn_until(lambda: len(a.received) == len(b.received) == 300)
        ends.turn_until(lambda: len(a.settled) == len(b.settled) == 300)
        assert a.received == b.received == numbers(300)
        assert ends.at_a.state is ends.at_b.state is LinkState.UP
        assert ends.a.refusals.total == ends.b.refusals.total == 0


def test_small_messages_leave_together():
    b, a = CountingPort(), CountingPort(1000)
    with TwoEnds(b, a) as ends:
        ends.turn_until(lambda: len(b.received) == 1000, most=60)


def bytes_of_a_small_exchange(keys):
    with TwoEnds(CountingPort(2, 9), CountingPort(3, 9), keys) as ends:
        ends.turn_until(lambda: len(ends.at_a.session.kept()) == 0 and ends.at_b.session.acked == 2)
        return len(ends.cable.recorded)


def test_a_connection_cut_at_any_byte_loses_and_doubles_nothing():
    for at in range(1, 2 * bytes_of_a_small_exchange(CLEAR)):
        b, a = CountingPort(2, 9), CountingPort(3, 9)
        with TwoEnds(b, a) as ends:
            ends.cable.left = at
            ends.turn_until(lambda b=b, a=a: (len(b.received), len(a.received)) == (3, 2))
            ends.turn(3)
            assert (b.received, a.received) == (numbers(3), numbers(2)), f"cut at byte {at}"
            assert b.num_resets == a.num_resets == 1, "the session was not resumed"


@pytest.mark.parametrize("at", [200, 900, 1500, 2222, 3000, 4000, 5000])
def test_an_encrypted_connection_cut_anywhere_loses_and_doubles_nothing(tls, at):
    b, a = CountingPort(20, 90), CountingPort(30, 90)
    with TwoEnds(b, a, tls) as ends:
        ends.cable.left = at
        ends.turn_until(lambda: (len(b.received), len(a.received)) == (30, 20))
        ends.turn(3)
        assert (b.received, a.received) == (numbers(30), numbers(20))


def test_resets_during_a_burst_lose_and_double_nothing(keys):
    b, a = CountingPort(400, 3000), CountingPort(400, 30_000)
    with TwoEnds(b, a, keys) as ends:
        for _ in range(6):
            ends.turn_until(lambda: ends.at_a.state is LinkState.UP)
            ends.turn(6)
            ends.cable.cut()
            ends.turn_until(lambda: ends.at_a.state is not LinkState.UP)
        ends.turn_until(lambda: len(a.received) == len(b.received) == 400)
        assert a.received == b.received == numbers(400)
        assert ends.at_a.report().num_connections == 7


def test_a_restarted_peer_begins_anew_and_what_was_under_way_is_void():
    b, a = CountingPort(50, 1000), CountingPort(50, 1000)
    with TwoEnds(b, a) as ends:
        ends.turn_until(lambda: len(b.received) == 50)
        b.total = 60
        b.pump()
        again = CountingPort(5)
        ends.start_a(again)
        ends.turn_until(lambda: len(b.received) == 55)
        assert b.received[50:] == numbers(5)
        assert b.num_resets == 2
        assert b.settled.count(False) == 10
        assert 50 not in again.received


def test_a_slow_receiver_closes_the_window_and_memory_stays_bounded():
    limits = LinkLimits(max_messages=8, max_bytes=100_000)
    b, a = CountingPort(), CountingPort(1000, 3000)
    with TwoEnds(b, a, limits=limits) as ends:
        ends.turn_until(lambda: b.received)
        for _ in range(200):  # b does not read
            ends.clock.ns += 1_000_000
            ends.a.turn(0.0)
        assert a.most_kept == 8
        assert ends.at_a.session.kept_bytes <= 100_000
        ends.turn_until(lambda: len(b.received) == 1000)
        assert b.received == numbers(1000)
        assert a.most_kept == 8


def test_silence_breaks_a_link_and_a_long_break_gives_the_peer_up():
    b, a = CountingPort(), CountingPort(3)
    with TwoEnds(b, a) as ends:
        ends.turn_until(lambda: len(b.received) == 3)
        ends.clock.ns += ends.limits.silent_after_ns + 1
        ends.b.turn(0.0)
        assert ends.at_b.state is LinkState.BROKEN
        assert b.num_interrupted == 1 and b.num_resets == 1
        ends.clock.ns += ends.limits.gone_after_ns + 1
        ends.b.turn(0.0)
        assert ends.at_b.state is LinkState.GONE
        assert b.num_resets == 2
        ends.turn_until(lambda: ends.at_b.state is LinkState.UP)


def test_idle_ends_keep_their_link_with_pings_and_learn_the_offset_of_their_clocks():
    with TwoEnds(CountingPort(), CountingPort()) as ends:
        for _ in range(3000):  # 30 s
            ends.clock.ns += 9_000_000
            ends.turn()
        assert ends.at_a.report().num_connections == 1
        assert ends.at_a.clock.is_known and ends.at_a.clock.offset_ns <= 20_000_000


def test_nothing_arrives_before_the_offset_of_the_clocks_is_known(keys):
    class Asking(CountingPort):
        def receive(self, note, body):
            super().receive(note, body)
            assert self.outlet.clock.is_known

    b, a = Asking(20), Asking(20)
    with TwoEnds(b, a, keys) as ends:
        ends.turn_until(lambda: len(a.received) == len(b.received) == 20)


# ------------------------------------------------------------------------------ strangers


def is_refused(ends, refusal, count=1):
    return lambda: ends.b.refusals.counts[refusal] == count


def send_raw(address, data):
    stranger = socket.create_connection(address)
    stranger.sendall(data)
    return stranger


def test_a_stranger_without_the_key_is_refused_and_the_link_goes_on(keys, tls):
    b, a = CountingPort(), CountingPort(100)
    other_keys = LinkKeys.make(is_encrypted=bool(keys.pem))
    with TwoEnds(b, a, keys) as ends:
        ends.turn(10)
        stranger = Gateway("a", other_keys, now_ns=ends.clock)
        stranger.link("b", [CountingPort(9)], ends.to)

        def is_known_as_stranger():
            stranger.turn(0.0)
            # In clear the listener proves itself first, so it is the stranger that turns away.
            return ends.b.refusals.total >= 1

        ends.turn_until(is_known_as_stranger)
        ends.turn_until(lambda: len(b.received) == 100)
        assert b.received == numbers(100)
        assert ends.at_b.report().num_connections == 1
        stranger.close()


def test_the_secret_without_the_certificate_is_not_enough(tls):
    b, a = CountingPort(), CountingPort(10)
    with TwoEnds(b, a, tls) as ends:
        half = LinkKeys(tls.secret, LinkKeys.make().pem)
        stranger = Gateway("a", half, now_ns=ends.clock)
        at_stranger = stranger.link("b", [CountingPort(9)], ends.to)

        def is_turned_away():
            stranger.turn(0.0)
            return stranger.refusals.counts[Refusal.STRANGER] and ends.b.refusals.total

        ends.turn_until(is_turned_away)
        ends.turn_until(lambda: len(b.received) == 10)
        assert at_stranger.state is LinkState.EXPECTED
        stranger.close()


def test_a_stranger_that_shows_no_certificate_is_refused(tls):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with TwoEnds(CountingPort(), CountingPort(), tls) as ends:
        raw = send_raw(ends.to, b"")
        raw.setblocking(False)
        stranger = context.wrap_socket(raw, do_handshake_on_connect=False)

        def is_turned_away():
            with contextlib.suppress(ssl.SSLWantReadError, OSError):
                stranger.do_handshake()
            return ends.b.refusals.counts[Refusal.STRANGER]

        ends.turn_until(is_turned_away)
        stranger.close()


def test_a_new_connection_of_a_peer_ends_its_old_one():
    b, a = CountingPort(), CountingPort(10)
    with TwoEnds(b, a) as ends:
        ends.turn_until(lambda: len(b.received) == 10)
        ((near, far),) = ends.cable._pairs
        ends.cable._pairs.clear()  # the old connection is never closed, only silent
        ends.at_a.drop()
        a.total = 20
        ends.turn_until(lambda: len(b.received) == 20)
        assert b.received == numbers(20)
        assert b.num_interrupted == 1
        far.setblocking(True)
        while far.recv(1 << 16):
            pass
        for end in (near, far):
            end.close()


def test_a_stranger_that_skips_the_check_of_our_proof_is_still_refused():
    b = CountingPort()
    with TwoEnds(b, CountingPort(3)) as ends:
        ends.turn_until(lambda: len(b.received) == 3)
        first = b"tianji01" + b"a".ljust(64, b"\0") + bytes(36)
        stranger = send_raw(ends.to, first + bytes(24) + bytes(32))
        ends.turn_until(is_refused(ends, Refusal.STRANGER))
        assert ends.at_b.state is LinkState.UP
        stranger.close()


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n\r\n" * 20, os.urandom(500)])
def test_garbage_is_refused_and_the_link_goes_on(keys, garbage):
    b, a = CountingPort(), CountingPort(50)
    with TwoEnds(b, a, keys) as ends:
        ends.turn(10)
        stranger = send_raw(ends.to, garbage)
        ends.turn_until(lambda: ends.b.refusals.total == 1 and len(b.received) == 50)
        assert ends.at_b.report().num_connections == 1
        stranger.close()


def test_a_visitor_that_only_looks_whether_somebody_listens_is_no_stranger(keys):
    """As our own hosts do, to find an address at which they reach this one."""
    with TwoEnds(CountingPort(), CountingPort(), keys) as ends:
        send_raw(ends.to, b"").close()
        stranger = send_raw(ends.to, b"garbage" * 100)  # accepted after it
        ends.turn_until(lambda: ends.b.refusals.total)
        ends.turn(10)
        assert ends.b.refusals.total == 1
        stranger.close()


def test_a_visitor_that_says_nothing_is_sent_away():
    with TwoEnds(CountingPort(), CountingPort()) as ends:
        stranger = send_raw(ends.to, b"")
        ends.turn_until(is_refused(ends, Refusal.SILENT))
        stranger.close()


def test_more_visitors_than_can_be_greeted_are_sent_away_and_the_link_goes_on():
    b = CountingPort()
    with TwoEnds(b, CountingPort(20)) as ends:
        strangers = []
        for _ in range(70):
            strangers.append(send_raw(ends.to, b""))
            ends.b.turn(0.0)
        ends.turn_until(lambda: len(b.received) == 20)
        assert ends.b.refusals.counts[Refusal.CROWD] >= 1
        for stranger in strangers:
            stranger.close()


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_a_recorded_connection_that_is_replayed_is_refused(keys, is_encrypted):
    b, a = CountingPort(), CountingPort(10)
    with TwoEnds(b, a, keys) as ends:
        ends.turn_until(lambda: len(b.received) == 10)
        replayed = send_raw(ends.to, bytes(ends.cable.recorded))
        ends.turn_until(lambda: ends.b.refusals.total == 1)
        a.total = 20
        ends.turn_until(lambda: len(b.received) == 20)
        assert b.received == numbers(20)
        assert ends.at_b.report().num_connections == 1
        replayed.close()


def frame(kind, channel=0, number=0, body=b"", ack=0, nbytes=None):
    return Header(kind, 0, channel, len(body) if nbytes is None else nbytes, number, ack).pack()


BAD_FRAMES = {
    "unknown kind": (frame(77), Refusal.GARBAGE),
    "unknown channel": (frame(Kind.DATA, channel=9), Refusal.GARBAGE),
    "oversized": (frame(Kind.DATA, number=10, nbytes=1 << 30), Refusal.OVERSIZED),
    "a gap": (frame(Kind.DATA, number=99), Refusal.GARBAGE),
    "an impossible acknowledgement": (frame(Kind.ACK, ack=1 << 40), Refusal.GARBAGE),
    "a ping without a time": (frame(Kind.PING), Refusal.GARBAGE),
    "random bytes": (b"\xff" * HEADER_BYTES * 3, Refusal.GARBAGE),
}


@pytest.mark.parametrize("what", BAD_FRAMES)
def test_a_bad_frame_from_a_known_peer_ends_the_connection_and_the_link_goes_on(what):
    bad, refusal = BAD_FRAMES[what]
    b, a = CountingPort(), CountingPort(10)
    with TwoEnds(b, a) as ends:
        ends.turn_until(lambda: len(b.received) == 10)
        ends.at_a.connection.queue(bad)
        ends.turn_until(is_refused(ends, refusal))
        a.total = 20
        ends.turn_until(lambda: len(b.received) == 20)
        assert b.received == numbers(20)
        assert b.num_resets == 1


def test_a_message_that_is_repeated_is_dropped_and_counted_and_the_connection_goes_on():
    b, a = CountingPort(), CountingPort(10)
    with TwoEnds(b, a) as ends:
        ends.turn_until(lambda: len(b.received) == 10)
        ends.at_a.connection.queue(frame(Kind.DATA, number=4, body=b"x" * 20) + b"x" * 20)
        a.total = 20
        ends.turn_until(lambda: len(b.received) == 20)
        assert ends.b.refusals.counts[Refusal.REPLAYED] == 1
        assert b.received == numbers(20)
        assert ends.at_b.report().num_connections == 1


def test_a_message_that_the_other_end_would_refuse_is_not_sent():
    b, a = CountingPort(), CountingPort()
    with TwoEnds(b, a) as ends:
        ends.turn(5)
        with pytest.raises(ChannelError, match="one plan"):
            a.outlet.send(b"", bytes(a.max_body_bytes + 1))
        assert not ends.at_a.session.kept()


def test_ends_with_other_channels_are_refused():
    with TwoEnds(CountingPort(), CountingPort(max_body_bytes=77)) as ends:
        ends.turn_until(is_refused(ends, Refusal.MISWIRED))
        assert ends.at_b.state is LinkState.EXPECTED


def test_a_listener_stays_on_loopback_unless_it_is_told_otherwise():
    gateway = Gateway("b", CLEAR)
    assert gateway.listen()[0] == "127.0.0.1"
    gateway.close()
    gateway.close()


def test_a_peer_may_have_an_address_of_version_six():
    b, a = CountingPort(), CountingPort(5)
    listening, connecting = Gateway("b", CLEAR), Gateway("a", CLEAR)
    try:
        address = listening.listen("::1")
    except OSError:
        pytest.skip("this host has no IPv6")
    listening.link("a", [b])
    connecting.link("b", [a], address)
    for gateway in (listening, connecting):
        gateway.start()
    deadline_s = time.monotonic() + 60
    while len(a.settled) < 5 and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert listening.is_running and connecting.is_running
    for gateway in (connecting, listening):
        gateway.close()
        assert not gateway.is_running
    assert b.received == numbers(5)


def test_a_gateway_in_a_thread_sleeps_until_there_is_something_to_do():
    b, a = CountingPort(), CountingPort(10)
    with_thread = TwoEnds(b, a)
    try:
        with_thread.turn_until(lambda: len(b.received) == 10)
        turns = []
        turn = with_thread.b.turn
        with_thread.b.turn = lambda _: (turns.append(1), turn(0.05))
        with_thread.b.start()
        with_thread.b._thread.join(0.5)
        assert len(turns) < 40, "it spins"
    finally:
        with_thread.close()


def test_calls_are_made_in_the_thread_of_the_gateway():
    gateway = Gateway("host", CLEAR)
    gateway.start()
    thread = gateway.do(threading.current_thread)
    assert thread.name == "gateway-host"
    gateway.close()
    with pytest.raises(ChannelError, match="gateway of host has ended"):
        gateway.do(threading.current_thread)


def test_a_peer_that_was_given_up_is_refused_when_it_comes_back(keys):
    b, a = CountingPort(), CountingPort(5)
    with TwoEnds(b, a, keys) as ends:
        ends.turn_until(lambda: len(b.received) == 5)
        ends.b.unlink(ends.at_b)
        assert b.num_resets > 0
        ends.turn_until(lambda: ends.b.refusals.total > 0)
        assert ends.at_b.state is LinkState.GONE
        assert ends.at_a.state is not LinkState.UP
