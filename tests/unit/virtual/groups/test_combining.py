"""What it costs to combine groups, worked out by hand."""

import pytest

from tianji.engines.agents.remote import MIX_S
from tianji.virtual.clock import NetworkModel
from tianji.virtual.groups.combining import (
    CROWDED_S,
    EXCHANGE_S,
    WAKE_S,
    Together,
    slowest_of,
)

NETWORK = NetworkModel(bytes_per_s=1e6, latency_s=0.001)


def together(combine="average", num_groups=4, away=3, nbytes=1000, **more):
    return Together(
        num_groups=num_groups, groups_away=away, combine=combine, nbytes=nbytes,
        combine_every=more.pop("every", 1), network=NETWORK, **more,
    )  # fmt: skip


def test_the_pause_of_the_head_is_that_of_the_engine():
    assert EXCHANGE_S == MIX_S


def test_gradients_go_round_a_ring_in_every_update():
    costs = together("gradients").costs(update_s=0.01, version_s=0.1, noise=0.0)
    assert costs.has_meetings
    assert costs.update_wait_s == pytest.approx(6 * (1000 / 4 / 1e6 + 0.001))
    assert costs.version_wait_s == pytest.approx(6 * 0.001)
    assert costs.mix_s == 0


def test_on_one_host_learners_meet_in_its_memory_once_or_for_slices_twice():
    def wait_s(nbytes, **more):
        found = together("gradients", away=0, nbytes=nbytes, **more).costs(0.01, 0.1, 0.0)
        return found.update_wait_s

    assert wait_s(1000) == pytest.approx(WAKE_S + 5 * 1000 / 5e9)
    assert wait_s(10**6) == pytest.approx(2 * WAKE_S + 3 * 10**6 / 5e9)
    assert wait_s(10**6, is_crowded=True) - wait_s(10**6) == pytest.approx(2 * CROWDED_S)


def test_learners_without_a_core_of_their_own_wait_for_a_turn_in_every_step_of_the_ring():
    own, shared = (
        together("gradients", is_crowded=crowded).costs(0.01, 0.1, 0.0).update_wait_s
        for crowded in (False, True)
    )
    assert shared - own == pytest.approx(6 * CROWDED_S)


def test_the_slowest_of_many_groups_is_waited_for():
    few, many = (
        together("gradients", num_groups=n, away=0).costs(0.01, 0.1, 0.05) for n in (2, 200)
    )
    quiet = together("gradients", num_groups=200, away=0).costs(0.01, 0.1, 0.0)
    sigma_s = 0.1 * 2 * 0.05 / 1.349
    assert many.version_wait_s - quiet.version_wait_s == pytest.approx(2.75 * sigma_s, rel=0.01)
    assert few.version_wait_s < many.version_wait_s
    assert slowest_of(1) == 0 < slowest_of(2) < slowest_of(3)


@pytest.mark.parametrize("combine", ["average", "gossip"])
def test_mixing_is_work_and_no_wait(combine):
    costs = together(combine, away=0).costs(0.01, 0.1, 0.5)
    assert (costs.has_meetings, costs.update_wait_s, costs.version_wait_s) == (False, 0, 0)
    assert costs.mix_s > 0
    seldom = together(combine, away=0, every=10).costs(0.01, 0.1, 0.5)
    assert seldom.mix_s == pytest.approx(costs.mix_s / 10)


def test_an_average_reads_everybody_and_gossip_one():
    assert together("average").num_peers == 3
    assert together("gossip").num_peers == 1
    average, gossip = (together(c, away=0).costs(0.01, 0.1, 0).mix_s for c in ("average", "gossip"))
    assert average > gossip


def test_posts_of_other_hosts_are_mixed_as_often_as_they_come():
    near = together(away=0).costs(0.005, 0.1, 0).mix_s
    far = together(away=3).costs(0.005, 0.1, 0).mix_s
    assert far < near


def test_parameters_cross_through_the_head():
    """Three groups post 1000 bytes, and each of them gets those of three others."""
    period_s = EXCHANGE_S + 0.002
    found = together().bytes_per_s(updates_per_s=1000.0, learner_hosts=4)
    assert found == {"parameters": pytest.approx((3 + 9) * 1000 / period_s)}
    assert together().mix_period_s(1000.0) == pytest.approx(period_s)


def test_a_group_that_mixes_seldom_sends_seldom():
    assert together(every=1000).mix_period_s(updates_per_s=1000.0) == 1.0


def test_the_link_of_the_head_limits_the_exchange():
    """9 posts of a megabyte leave the head, at a megabyte per second."""
    large = together(nbytes=10**6)
    assert large.exchange_period_s() == pytest.approx(9.0, rel=0.01)
    assert large.link_share(updates_per_s=100.0) == pytest.approx(1.0, rel=0.01)
    assert together("gossip", nbytes=10**6).exchange_period_s() == pytest.approx(3.0, rel=0.01)


def test_gradients_leave_each_host_once():
    found = together("gradients", num_groups=4, away=2).bytes_per_s(
        updates_per_s=10, learner_hosts=2
    )
    assert found == {"gradients": pytest.approx(10 * 2 * 1.5 * 1000)}


def test_nothing_crosses_on_one_host():
    alone = together(away=0)
    assert alone.bytes_per_s(10.0, 1) == {}
    assert alone.link_share(10.0) == 0
