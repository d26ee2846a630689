from __future__ import annotations

import pytest

from tianji.algorithms.registry import BUILT_IN, load_algorithm
from tianji.config.schema import AlgorithmConfig, load_algorithm_config
from tianji.config.settings import describe_allowed, find_setting, list_settings, short_names

SETTINGS = list_settings(AlgorithmConfig)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer"}, "a whole number"),
        ({"type": "integer", "minimum": 1}, "a whole number of at least 1"),
        ({"type": "number", "exclusiveMinimum": 0.0}, "a number above 0"),
        ({"type": "number", "minimum": 0, "maximum": 1}, "a number from 0 to 1"),
        ({"type": "number", "maximum": 2.5}, "a number of at most 2.5"),
        (
            {"type": "integer", "minimum": 0, "exclusiveMaximum": 2**63},
            f"a whole number of at least 0 and below {2**63}",
        ),
        ({"type": "boolean"}, "true or false"),
        ({"type": "string"}, "text"),
        ({"enum": ["a", "b"], "type": "string"}, "one of 'a', 'b'"),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "a number, or none"),
        ({"anyOf": [{"type": "boolean"}, {"const": "auto"}]}, "true or false, or 'auto'"),
        (
            {"type": "array", "items": {"type": "integer"}},
            "values separated by commas (each a whole number)",
        ),
        (
            {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}]},
            "2 values separated by commas (a number; text)",
        ),
    ],
)
def test_ranges_are_told_in_words(schema: dict[str, object], words: str) -> None:
    assert describe_allowed(schema) == words


def test_every_setting_has_a_sentence_and_a_name_that_finds_it() -> None:
    for name, setting in short_names(SETTINGS).items():
        assert setting.about.endswith("."), setting.path
        assert find_setting(name, SETTINGS) is setting
        assert find_setting(setting.path, SETTINGS) is setting
        assert find_setting(f"--{name.replace('_', '-')}", SETTINGS) is setting


def test_shared_last_parts_stay_dotted() -> None:
    names = short_names(SETTINGS)
    assert "period_s" not in names
    assert names["checkpoint.period_s"].default == 30.0
    assert names["keep_last"].path == "checkpoint.keep_last"


def test_the_algorithm_is_named_algorithm() -> None:
    assert find_setting("--algorithm", SETTINGS).path == "algorithm.name"


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_config_found_without_the_record_is_the_record_s_own(name: str) -> None:
    assert load_algorithm_config(name) is load_algorithm(name).config


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_setting_of_an_algorithm_has_a_sentence(name: str) -> None:
    for setting in list_settings(load_algorithm_config(name)):
        assert setting.about.endswith("."), setting.path
