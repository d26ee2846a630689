"""Numbers and lists as people read them."""

from tianji.wording import (
    kind_of,
    listed,
    sentence,
    to_ago,
    to_count,
    to_duration,
    to_percent,
    to_seconds,
    to_value,
)


def test_numbers_are_short():
    assert [to_count(n) for n in (None, 950.4, 41_000, 999_600, 1_234_567, 3e9)] == [
        "-", "950", "41.0k", "1.00M", "1.23M", "3.00G"
    ]  # fmt: skip
    assert [to_value(n) for n in (999.4, 999.7)] == ["999", "1.00k"], "no exponent by rounding"
    assert [to_value(n) for n in (0.01234, -312.4, 123_456.0)] == ["0.0123", "-312", "123k"]
    assert [to_ago(s) for s in (3.2, 200, 9000, 200_000)] == [
        "3 s ago", "3 min ago", "2.5 h ago", "2.3 days ago"
    ]  # fmt: skip
    assert [to_duration(s) for s in (3.2, 72, 7260)] == ["0:03", "1:12", "2:01:00"]
    assert [to_seconds(s) for s in (None, 4.44, 234.5)] == ["-", "4.4 s", "234 s"]
    assert [to_percent(s) for s in (None, 0.654)] == ["-", "65 %"]


def test_the_kind_of_a_value_has_its_article():
    assert [kind_of(value) for value in (3, [], object(), None)] == [
        "an int", "a list", "an object", "a NoneType"
    ]  # fmt: skip


def test_a_text_that_another_sentence_follows_ends_with_one_full_stop():
    assert [sentence(text) for text in ("It fails", "It fails.", "Does it fail?\n")] == [
        "It fails.", "It fails.", "Does it fail?"
    ]  # fmt: skip


def test_what_is_not_finite_is_no_value():
    assert [to_value(n) for n in (None, float("nan"), float("-inf"))] == ["-", "-", "-"]


def test_lists_name_a_few_and_count_the_rest():
    assert [listed(w) for w in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "", "a", "a and b", "a, b and c"
    ]  # fmt: skip
    assert listed(["a", "b", "c", "d"], most=2) == "a, b and 2 more"
