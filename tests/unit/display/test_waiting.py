"""Sentences while something takes long before a run."""

import re
import threading

import pytest

from tianji.display import stream
from tianji.display.stream import tell_while_slow


def test_an_environment_that_hangs_before_the_run_is_told(monkeypatch):
    monkeypatch.setattr(stream, "SLOW_S", 0.001)
    told, texts = threading.Event(), []

    def tell(text):
        texts.append(text)
        told.set()

    with tell_while_slow(tell, "Trying out mine:make"):
        assert told.wait(30)
    beginning = r"Trying out mine:make: no answer for \d+ s, in \w+\(\) of \w+\.py, line \d+\."
    assert re.fullmatch(beginning, texts[0]), texts


def test_the_line_in_which_it_hangs_is_told(monkeypatch):
    monkeypatch.setattr(stream, "SLOW_S", 0.001)
    told, texts = threading.Event(), []

    def tell(text):
        texts.append(text)
        if "in step()" in text:
            told.set()

    def step():
        assert told.wait(30)  # the lock is Python's own code; whose it is, is ours

    with tell_while_slow(tell, "x"):
        step()
    assert any(" in step() of test_waiting.py, line " in text for text in texts)


def test_what_is_quick_is_not_told_and_errors_pass(monkeypatch):
    monkeypatch.setattr(stream, "SLOW_S", 1000.0)
    texts = []
    with pytest.raises(ValueError, match="wrong"), tell_while_slow(texts.append, "x"):
        raise ValueError("wrong")
    assert texts == []
