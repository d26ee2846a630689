"""Given times are refused where they would mean nothing, with what to do instead."""

import pytest

from tianji.algorithms.registry import load_algorithm
from tianji.config.run import RunConfig
from tianji.errors import UsageError
from tianji.planning.resolve.check_times import check_times


def check(algorithm="rennala-nigt", engine="virtual", num_actors=2, **times):
    config = RunConfig(algorithm=algorithm, engine=engine, times=times)
    check_times(config, load_algorithm(algorithm).cadence(config), num_actors)


@pytest.mark.parametrize("engine", ["virtual", "local"])
def test_a_law_is_for_algorithms_that_gather_gradients(engine):
    check(engine=engine, law="sqrt", network="sqrt")
    with pytest.raises(UsageError, match="ppo runs at its real speed"):
        check("ppo", engine, law="sqrt")


@pytest.mark.parametrize("algorithm", ["ppo", "rennala-nigt"])
@pytest.mark.parametrize("engine", ["inline", "virtual", "local"])
def test_without_given_times_there_is_nothing_to_refuse(algorithm, engine):
    check(algorithm, engine)


def test_the_inline_engine_has_no_times():
    with pytest.raises(UsageError, match="--engine virtual"):
        check(engine="inline", law="equal")


@pytest.mark.parametrize("times", [{"network": "sqrt"}, {"compute": (1, 2)}, {"slowest": 5.0}])
def test_without_a_law_no_other_time_means_anything(times):
    with pytest.raises(UsageError, match=r"times has no law.* --times\.law equal"):
        check(**times)


def test_a_list_that_the_law_does_not_read_is_refused():
    with pytest.raises(UsageError, match=r"times\.law = sqrt does not read it"):
        check(law="sqrt", compute=(1, 2))
    with pytest.raises(UsageError, match=r"times\.network = none does not read it"):
        check(law="sqrt", communicate=(1, 2))


def test_a_list_has_a_time_for_each_actor():
    check(law="given", compute=(1, 2))
    with pytest.raises(UsageError, match="has 3 numbers, but there are 2 actors"):
        check(law="given", compute=(1, 2, 3))
