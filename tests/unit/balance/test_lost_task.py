"""A task is lost when none of its actors is left, unless the person has said that one may be."""

from tianji.balance.lost_task import lost_task
from tianji.config.run import RunConfig


def config(name="rennala-nigt", **algorithm):
    return RunConfig(envs=("A-v0", "B-v0"), algorithm={"name": name, **algorithm})


def test_as_long_as_every_task_has_an_actor_none_is_lost():
    assert lost_task(config(), [0, 3]) is None


def test_the_lost_one_is_named():
    assert lost_task(config(), [0, 2]) == "B-v0"
    assert lost_task(config(), [1]) == "A-v0"


def test_who_may_go_on_without_an_actor_may_go_on_without_its_task():
    assert lost_task(config("malenia-nigt", absent_after_s=3.0), [0]) is None


def test_one_environment_is_kept_by_any_actor():
    assert lost_task(RunConfig(algorithm="ppo"), [2]) is None
