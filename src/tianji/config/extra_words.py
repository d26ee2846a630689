"""Says which words of a command line belong to no option, and how they were probably meant.

tianji train cartpole-ppo gamma=0.9 --hidden 64 64
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tianji.config.files import list_presets
from tianji.config.schema import ENV_KWARGS, AlgorithmConfig
from tianji.config.settings import canonical, find_setting, list_settings
from tianji.errors import UsageError

MARK = "--"


def refuse_extra_words(words: Sequence[str], tokens: Sequence[str]) -> None:
    """Raise UsageError if there is more than a preset. tokens: all that was written."""
    preset = _preset_among(words)
    extra = list(words)
    if preset:
        extra.remove(preset)
    if not extra:
        return
    belong = "belongs" if len(extra) == 1 else "belong"
    hints = [hint for name, values in _options(tokens) for hint in _hints(name, values, preset)]
    told = hints or ["Settings are written --key value."]
    only = f"Only one preset is possible, here '{preset}', but " if preset else ""
    raise UsageError(f"{only}{_quoted(extra)} {belong} to no option. {' '.join(told)}")


def _preset_among(words: Sequence[str]) -> str:
    """Return the word that names a preset or its file; "" if none looks like one."""
    known = list_presets()
    looks_like_one = [word for word in words if "=" not in word or word.endswith((".yaml", ".yml"))]
    return next((word for word in words if word in known), next(iter(looks_like_one), ""))


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


def _options(tokens: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Return every option with all words behind it; those before the first one are of ""."""
    name, values = "", list[str]()
    for token in tokens:
        if not token.startswith(MARK):
            values.append(token)
            continue
        yield name, values
        name, equals, text = token.partition("=")
        values = [text] if equals else []
    yield name, values


def _hints(name: str, values: Sequence[str], preset: str) -> Iterator[str]:
    """Say how the words behind an option were probably meant; the first one is its value."""
    extra = [word for word in values[bool(name) :] if word != preset]
    takes_equations = bool(name and values) and "=" in values[0]
    for word in extra:
        key, equals, value = word.partition("=")
        if equals:
            option = f"{MARK}{canonical(key).replace('_', '-')} {value}"
            if canonical(name).partition(".")[0] == ENV_KWARGS:
                option = f"{name.partition('.')[0]}.{key} {value}"
            elif takes_equations:
                option = f"{name} {word}"
            yield f"{word}: write {option}."
    entries = [word for word in (*values[: bool(name)], *extra) if "=" not in word]
    if name and len(entries) > 1 and (_takes_list(name) or entries[0].endswith(",")):
        yield f"Lists have no spaces: {name} {','.join(word.strip(',') for word in entries)}"


def _takes_list(name: str) -> bool:
    try:
        return "array" in find_setting(name, list_settings(AlgorithmConfig)).kinds
    except UsageError:
        return False
