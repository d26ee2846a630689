"""Sentences about where the time of a run went, whatever kind of run it is. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from tianji.explain.account import LEAST_S, Account, Side
from tianji.wording import listed, on_clock, to_percent, to_seconds

PARTS = {
    "environment": "environment steps",
    "buffer": "the buffer",
    "saving": "checkpoints",
    "policy with gradients": "policy and gradients",
}
"""Names of parts on the screen where those of the metrics do not read well."""
WORTH_TELLING = 0.01
"""Shares of time below it are left out."""


def waits_sentence(account: Account, words: Mapping[str, str], engine: str) -> str:
    """words: what each wait is called; those that are not in it are left out."""
    each = "the actor" if account.num_actors == 1 else "each actor"
    told = [
        *_waits(each, account.actors, account.span_s, words),
        *_waits("the learner", account.learner, account.span_s, words),
    ]
    nobody = f"no role waited for more than {to_percent(WORTH_TELLING)} of the time"
    span = on_clock(to_seconds(account.span_s), engine)
    return f"In {span}, {'; '.join(told) or nobody}."


def _waits(who: str, side: Side, span_s: float, words: Mapping[str, str]) -> list[str]:
    """Time without a core is listed separately: it overlaps with work and with waking up."""
    waits = listed([
        f"{to_seconds(share * span_s)} {words[cause]}"
        for cause, share in sorted(side.waits.items(), key=lambda wait: -wait[1])
        if _is_worth_telling(share, span_s) and cause in words
    ])  # fmt: skip
    lacked = f"had no free core for {to_seconds(side.no_core * span_s)}"
    told = [f"waited {waits}"] if waits else []
    told += [lacked] if _is_worth_telling(side.no_core, span_s) else []
    return [f"{who} {' and '.join(told)}"] if told else []


def _is_worth_telling(share: float, span_s: float) -> bool:
    """Of a short time even a large share may be 0.0 s."""
    return share >= WORTH_TELLING and share * span_s >= LEAST_S


def parts_in_words(side: Side) -> str:
    """What its work consists of, the largest part first."""
    whole = side.worked or 1.0
    shares = sorted(((share / whole, name) for name, share in side.parts.items()), reverse=True)
    told = [(to_percent(share), name) for share, name in shares if share >= WORTH_TELLING]
    return listed([f"{PARTS.get(name, name)} ({share})" for share, name in told])


def actors_parts_sentence(account: Account) -> str:
    who = "actor spends its" if account.num_actors == 1 else "actors spend their"
    return f"The {who} busy time on {parts_in_words(account.actors)}."
