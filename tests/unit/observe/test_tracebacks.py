"""Which tracebacks people see."""

import traceback

import pytest

from tianji.config.overrides import resolve
from tianji.errors import TrainingDiverged, UsageError
from tianji.observe.tracebacks import says_more


def told_below(raised):
    """The traceback without the frame of this file."""
    return "".join(traceback.format_exception(raised.type, raised.value, raised.tb.tb_next))


def diverge():
    raise TrainingDiverged("a loss is NaN")


def test_frames_of_tianji_alone_say_nothing_more_than_its_message():
    with pytest.raises(UsageError) as raised:
        resolve("no-such-preset", [])
    told = told_below(raised)
    assert 'File "' in told and not says_more(told)


def test_a_frame_of_the_persons_own_code_is_shown():
    with pytest.raises(TrainingDiverged) as raised:
        diverge()
    assert says_more("".join(traceback.format_exception(raised.value)))


def test_a_fault_of_tianji_is_shown():
    with pytest.raises(AttributeError) as raised:
        resolve(3, [])
    told = told_below(raised)
    assert 'File "' in told and says_more(told)
