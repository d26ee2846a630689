"""Sentences while something takes long before a run."""

import threading

import pytest

from tianji.display.stream import tell_while_slow


def test_an_environment_that_hangs_before_the_run_is_told():
    told, texts = threading.Event(), []

    def tell(text):
        texts.append(text)
        told.set()

    with tell_while_slow(tell, "Trying out mine:make", period_s=0.001):
        assert told.wait(30)
    assert texts[0] == "Trying out mine:make: no answer for 0 s."


def test_what_is_quick_is_not_told_and_errors_pass():
    texts = []
    with pytest.raises(ValueError, match="wrong"), tell_while_slow(texts.append, "x", 1000.0):
        raise ValueError("wrong")
    assert texts == []
