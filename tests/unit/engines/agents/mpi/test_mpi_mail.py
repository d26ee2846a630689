import time

import pytest

from tests.fakes.mpi import FakeMpi
from tianji.engines.agents.interface import Call, RunLost
from tianji.engines.agents.mpi import mail as mpi_mail
from tianji.engines.agents.mpi.mail import Mail, Message


@pytest.fixture
def ranks(monkeypatch):
    monkeypatch.setattr(mpi_mail, "PULSE_S", 0.02)
    monkeypatch.setattr(mpi_mail, "SILENT_S", 0.5)
    return FakeMpi.ranks(2)


@pytest.fixture
def mails(ranks):
    one, other = ranks
    made = Mail(one, {1: "rank 1 (far)"}), Mail(other, {0: "rank 0 (near)"})
    yield made
    for mail in made:
        mail.close()


def test_messages_arrive_with_their_tags_in_order(mails):
    one, other = mails
    for number in range(20):
        one.send(1, Call.POLL, bytes([number]))
    assert [other.receive(0) for _ in range(20)] == [
        Message(Call.POLL, bytes([number])) for number in range(20)
    ]
    other.send(0, Call.STOP, b"")
    assert one.receive(1) == Message(Call.STOP, b"")


def test_a_rank_that_works_for_long_is_not_lost(mails):
    one, other = mails
    time.sleep(1.0)  # twice as long as a rank may be silent
    other.send(0, Call.START, b"done")
    assert one.receive(1) == Message(Call.START, b"done")
    assert not one.lost
    assert not other.lost


def test_a_rank_without_network_is_lost_on_both_sides(mails, ranks):
    one, other = mails
    ranks[1].is_cut = True
    for _ in range(2):  # every call says so
        with pytest.raises(RunLost, match=r"Lost rank 1 \(far\): it has been silent for 0\.5 s"):
            one.receive(1)
    assert list(one.lost) == [1]
    ranks[0].is_cut = True
    with pytest.raises(RunLost, match=r"Lost rank 0 \(near\)"):
        other.receive(0)


def test_an_error_of_mpi_is_told(mails, ranks, monkeypatch):
    def fail(*_):
        raise OSError("no such rank")

    monkeypatch.setattr(ranks[0], "Isend", fail)
    mails[0].send(1, Call.POLL, b"")
    with pytest.raises(RunLost, match=r"MPI has failed: no such rank"):
        mails[0].receive(1)


def test_a_process_that_was_stopped_does_not_take_its_peers_for_lost(mails, monkeypatch):
    mail = mails[0]
    monkeypatch.setattr(mpi_mail, "STOPPED_S", 0.0)  # every look is one after a stop
    mail._heard_s[1] -= 60
    time.sleep(0.1)
    assert not mail.lost
