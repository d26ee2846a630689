"""The lead: more is stored ahead while the learner runs dry again and again."""

import pytest

from tianji.balance.lead import PATIENCE, Evenness, Lead, after_version, lead_unrolls
from tianji.balance.set_point import SetPoint


def after(*versions, state=None):
    """The state after these versions: `ahead` is production, `dry` is a learner that waited."""
    state = state or Evenness()
    for word in versions:
        state = after_version(state, has_waited=word == "dry", is_ahead=word == "ahead")
    return state


@pytest.mark.parametrize(
    ("versions", "is_uneven"),
    [
        ((), False),
        (("ahead",) * 500, False),
        (("dry",) * 500, False),
        (("ahead", "dry"), False),
        (("ahead", "dry", "dry", "dry"), False),
        (("ahead", "dry", "between", "dry"), False),
        (("ahead", "dry", "ahead", "dry"), True),
        (("ahead", "dry", "ahead", "between", "dry", "dry"), True),
        (("ahead", "dry", *["ahead"] * (PATIENCE - 1), "dry"), True),
        (("ahead", "dry", *["ahead"] * PATIENCE, "dry"), False),
    ],
)
def test_production_is_uneven_if_the_learner_runs_dry_twice_in_a_while(versions, is_uneven):
    assert after(*versions).is_uneven is is_uneven


@pytest.mark.parametrize("steady", ["ahead", "dry"])
def test_steady_production_is_even_again_after_a_while(steady):
    state = after("ahead", "dry", "ahead", "dry")
    state = after(*[steady] * (PATIENCE - 1), state=state)
    assert state.is_uneven
    assert not after(steady, state=state).is_uneven


def test_a_version_that_waited_and_found_all_at_its_end_counts_as_both():
    state = Evenness()
    for _ in range(3):
        state = after_version(state, has_waited=True, is_ahead=True)
    assert state.is_uneven


@pytest.mark.parametrize(
    ("point", "max_lag", "num_unrolls"),
    [
        ((4, 64, 1), 2, 13),
        ((4, 64, 4), 4, 13),
        ((4, 0, 1), 2, 0),
        ((4, 64, 1), 1, 0),
        ((4, 64, 0), 2, 0),
    ],
)
def test_the_lead_is_a_fifth_of_what_the_first_version_needs(point, max_lag, num_unrolls):
    assert lead_unrolls(SetPoint(*point), max_lag) == num_unrolls


def test_there_is_a_lead_only_while_production_is_uneven():
    lead = Lead(5)
    for _ in range(2):
        assert lead.num_unrolls == 0
        lead.version_made(is_ahead=True)
        lead.learner_waits()
        lead.version_made(is_ahead=False)
    assert lead.num_unrolls == 5
    for _ in range(PATIENCE):
        lead.version_made(is_ahead=True)
    assert lead.num_unrolls == 0
