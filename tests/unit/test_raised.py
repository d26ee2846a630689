"""What an exception says, and where it was raised."""

import json
import re

import pytest

from tianji.raised import error_in_words, place_in_words, raised_in_words


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("speed"), "KeyError: 'speed'"),
        (AssertionError(), "AssertionError"),
        (RuntimeError("The check passes.\n"), "RuntimeError: The check passes"),
        (SystemExit(5), "SystemExit: 5"),
    ],
)
def test_a_sentence_can_go_on_after_an_error(error, words):
    assert error_in_words(error) == words


def test_the_innermost_line_of_the_persons_own_code_is_named():
    def step():
        json.loads("{")  # raises in Python's own code

    with pytest.raises(ValueError) as raised:
        step()
    told = raised_in_words(raised.value)
    assert re.search(r"^JSONDecodeError: .* \(in step\(\) of test_raised.py, line \d+\)$", told)


def test_an_error_that_was_raised_nowhere_has_no_place():
    assert raised_in_words(RuntimeError("two\nlines")) == "RuntimeError: two lines"


def test_code_outside_of_functions_has_a_place_too():
    assert place_in_words("<module>", "/me/chase.py", 3) == "in chase.py, line 3"
