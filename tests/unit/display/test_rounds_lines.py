"""The lines of the display for runs that gather gradients."""

import pytest

from tests.unit.display.test_display import draw, make_config, make_record
from tests.unit.observe.accounts import make_gather, make_plan
from tianji.display.display import Display


def shown(**changes):
    return draw(make_record(gather=make_gather(**changes), restarts=0))


def line(name, **changes):
    (found,) = (text for text in shown(**changes) if text.startswith(name))
    return found.removeprefix(name).strip()


def test_rounds_take_the_place_of_lag_and_ratio():
    assert line("rounds") == "1.25/s  first 20 gradients  version 160"
    assert line("gradients") == "25.4/s  ▃█ 25 % to 75 % by actor  4 % of steps discarded"
    assert not [text for text in shown() if text.startswith(("lag", "ratio"))]
    assert max(map(len, shown())) <= 80


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("harmonic", "every actor, harmonic count 20"),
        ("barrier", "one of every actor"),
        ("every", "every gradient"),
    ],
)
def test_each_rule_has_its_words(rule, words):
    assert words in line("rounds", rule=rule)


def test_a_round_that_waits_for_longer_than_it_should_says_for_whom():
    slow = line("rounds", waiting_for=[1], open_s=19.0)
    assert "waiting for" not in slow, "gradients may take as long"
    assert line("rounds", late=[1], open_s=9.0).endswith("waiting for actor-1")
    assert line("rounds", late=[1, 2, 5, 7], open_s=9.0).endswith("actor-1, actor-2 and 2 more")
    assert line("rounds", absent=[3]).endswith("without actor-3")


def test_gradients_that_are_never_dropped_have_a_lag_instead():
    assert line("gradients", rule="every").endswith("lag 1.12 (max 3)")


def test_where_dropped_steps_are_not_computed_the_gradients_are_told():
    assert line("gradients", discarded_step_share=None).endswith("10 % of gradients discarded")


def test_returns_of_different_tasks_have_a_line():
    by_env = {"my.tasks:easy": 12.345, "Hard-v1": None}
    lines = draw(make_record(gather=make_gather(), returns_by_env=by_env))
    assert "by env    easy 12.35  Hard-v1 -" in lines


def test_the_plain_line_tells_of_rounds(capsys):
    plain = Display(make_config(), make_plan(), "plain")
    plain.start()
    plain.update(make_record(gather=make_gather(late=[1], open_s=8.0)))
    plain.stop()
    told = capsys.readouterr().err
    assert "1.25 rounds/s  4 % of steps discarded  waiting for actor-1" in told
    assert "lag" not in told
