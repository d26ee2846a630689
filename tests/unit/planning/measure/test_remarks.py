"""What a person is told about their environment and machine."""

import pytest

from tests.unit.planning.measure.profiles import cost, sampled
from tests.unit.planning.plans import config, plan_for
from tianji.planning.measure.crew import Built
from tianji.planning.measure.measure import memory_per_environment, remarks
from tianji.planning.measure.measurement import Point

MIB = 1 << 20


def point(num_actors=1, memory_mib=250, grown_mib=10, **readings):
    built = Built(build_s=0.1, memory_bytes=memory_mib * MIB, grown_bytes=grown_mib * MIB)
    return Point(plan_for(config(num_actors=num_actors)), built, sampled(**readings), 0.04)


def said(*points, noise=0.01):
    return remarks(points or (point(),), [cost(0.002, noise), cost(0.008)])


def test_an_ordinary_environment_on_a_quiet_machine_is_not_worth_a_word():
    assert said() == ()


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ({"step_s": 0.012}, "one step takes 12 ms, so one actor makes at most 83 steps/s"),
        ({"disturbed_share": 0.4}, "waited for a core 40 % of the time"),
        ({"unevenness": 30.0}, "one step in a hundred takes 30 times as long"),
        ({"reset_factor": 40.0, "step_s": 1e-3}, "a step that includes a reset takes 40 times"),
    ],
)
def test_one_sentence_for_what_is_slow_or_uneven_or_disturbed(readings, expected):
    (sentence,) = said(point(**readings))
    assert expected in sentence


def test_a_reset_of_microseconds_is_no_matter():
    assert said(point(reset_factor=40.0, step_s=1e-6)) == ()


def test_memory_is_what_a_further_environment_adds():
    few, many = point(num_actors=8, memory_mib=250), point(num_actors=1, memory_mib=250 + 7 * 300)
    assert memory_per_environment([many, few]) == pytest.approx(300 * MIB)
    (sentence,) = said(few, many)
    assert "takes much memory: 300 MiB" in sentence


def test_memory_of_a_single_point_is_what_building_it_added():
    assert memory_per_environment([point(num_actors=2, grown_mib=800)]) == pytest.approx(200 * MIB)


def test_noise_is_said_with_its_size():
    (sentence,) = said(noise=0.25)
    assert "+-25 %" in sentence
