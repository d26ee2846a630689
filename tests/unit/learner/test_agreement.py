"""What the learners of several groups agree on before a version."""

import pytest

from tests.fakes.ranks import counted_ranks, on_threads
from tianji.errors import ReduceBroken
from tianji.learner.agreement import REASONS, Wish, agree, exchange

WISH = Wish(
    updates=80,
    is_ready=True,
    because=None,
    is_save_due=False,
    env_steps=4096,
    run_steps=0,
    updates_per_look=50,
)


def test_a_version_is_begun_when_all_have_a_batch():
    assert agree([WISH, WISH]).begins
    agreed = agree([WISH, WISH._replace(is_ready=False), WISH])
    assert not agreed.begins
    assert agreed.awaited == (1,)
    assert agreed.because is None


def test_one_is_enough_to_end_the_run_and_no_version_is_begun():
    agreed = agree([WISH, WISH._replace(because="max_wall")])
    assert not agreed.begins
    assert agreed.because == "max_wall"


@pytest.mark.parametrize("order", [1, -1])
def test_several_reasons_give_one_whatever_the_order_of_the_ranks(order):
    wishes = [WISH._replace(because=because) for because in ("interrupted", "target_reached")]
    assert agree(wishes[::order]).because == "target_reached"


def test_one_is_enough_to_save_a_checkpoint():
    assert agree([WISH, WISH._replace(is_save_due=True)]).is_save_due
    assert not agree([WISH, WISH]).is_save_due


def test_steps_are_those_of_all_groups():
    assert agree([WISH, WISH._replace(env_steps=904)]).env_steps == 5000


def test_they_look_as_often_as_the_slowest_wants_to():
    assert agree([WISH, WISH._replace(updates_per_look=7)]).updates_per_look == 7


def test_learners_that_have_made_different_numbers_of_updates_are_refused():
    with pytest.raises(ReduceBroken, match="not in step: they have made 80, 90 updates"):
        agree([WISH, WISH._replace(updates=90)])


def test_steps_are_those_of_all_learners_of_the_run_where_some_are_elsewhere():
    assert agree([WISH, WISH]).env_steps == 2 * 4096
    told = [WISH._replace(run_steps=steps) for steps in (9_000, 10_000)]
    assert agree(told).env_steps == 10_000
    early = [WISH._replace(run_steps=5_000)] * 2
    assert agree(early).env_steps == 2 * 4096, "the head has not heard of all yet"


def test_everybody_gets_the_wishes_of_all_in_one_reduction():
    wishes = [
        Wish(2**40 + 1, True, None, False, 2**45 + 3, 2**46, 17),
        *(WISH._replace(because=because, is_ready=False) for because in REASONS),
        WISH._replace(is_save_due=True),
    ]
    ranks = counted_ranks(len(wishes))
    programs = [
        lambda peers=peers, wish=wish: exchange(peers, wish)
        for peers, wish in zip(ranks, wishes, strict=True)
    ]
    assert on_threads(programs, ranks) == [wishes] * len(wishes)
    assert all(len(peers.sizes) == 1 for peers in ranks)
