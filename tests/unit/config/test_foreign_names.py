"""Names of other libraries lead to names of ours."""

import pytest

from tianji.config.foreign_names import FOREIGN_NAMES, own_name
from tianji.config.schema import load_algorithm_config
from tianji.config.settings import list_settings, short_names

KNOWN = {
    name
    for algorithm in ("ppo", "dqn", "impala", "sac")
    for setting in list_settings(load_algorithm_config(algorithm))
    for name in (setting.path, *short_names((setting,)))
}


@pytest.mark.parametrize("ours", sorted({ours for ours, _ in FOREIGN_NAMES}))
def test_every_suggestion_is_a_setting(ours):
    assert ours in KNOWN


def test_the_first_setting_that_the_algorithm_has_is_suggested():
    assert own_name("batch_size", {"minibatches"}) == "minibatches"
    assert own_name("batch_size", {"minibatches", "minibatch_size"}) == "minibatch_size"
    assert own_name("num_minibatches", {"minibatches", "minibatch_size"}) == "minibatches"
    assert own_name("n_steps", {"unroll_length", "n_step"}) == "n_step"
    assert own_name("batch_size", {"gamma"}) is None
    assert own_name("gamma", {"gamma"}) is None
