import pytest

from tianji.engines.agents.mpi_hosts import MpiHosts, _bound
from tianji.errors import UsageError


def test_a_rank_that_was_bound_to_a_part_of_its_host_says_so():
    assert _bound(0, usable=16, cores=16) == ""
    assert _bound(3, usable=1, cores=16).startswith("Rank 3 may use 1 of 16 cores.")
    assert "--bind-to none" in _bound(3, usable=1, cores=16)


def test_more_groups_than_ranks_are_refused(monkeypatch):
    monkeypatch.setattr(MpiHosts, "count", 2)
    assert MpiHosts(2).places == {}
    with pytest.raises(UsageError, match=r"needs 3 hosts .* has 2 ranks.*-n 3"):
        MpiHosts(3)
