"""What differs between saved settings and those of now."""

from tianji.config.changes import change_since
from tianji.config.overrides import make_config


def dumped(**values):
    return make_config("cartpole-ppo", **values).model_dump(mode="json")


def test_the_first_difference_is_told_with_both_values():
    then, now = dumped(max_lag=1), dumped(max_lag=7, checkpoint={"period_s": 9})
    assert change_since(then, dumped()) == ""
    assert change_since(then, now) == "max_lag was 1, and is 7 now"


def test_a_setting_that_has_come_since_had_its_default():
    saved = dumped()
    del saved["combine_max_age"]
    assert change_since(saved, dumped()) == ""
    told = change_since(saved, dumped(combine_max_age=5))
    assert told == "combine_max_age was 0, and is 5 now"


def test_a_setting_that_is_gone_does_not_hide_other_changes():
    saved = {**dumped(), "gone": 3}
    assert change_since(saved, dumped()) == ""
    assert change_since(saved, dumped(max_lag=7)) == "max_lag was 1, and is 7 now"
