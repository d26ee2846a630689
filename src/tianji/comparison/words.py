"""What each style costs and why, in sentences; and what a claim about them rests on. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tianji.comparison.greedy import EPISODES
from tianji.comparison.neighbours import QUIET_CORES
from tianji.comparison.outcomes import SideFigures
from tianji.comparison.provenance import COMMA, Provenance
from tianji.comparison.report import Estimated, StyleFigures, certainty
from tianji.explain import gathering
from tianji.explain.explain import wait_words
from tianji.ops.claims import ENOUGH_SEEDS
from tianji.wording import counted, listed, to_count, to_percent, to_seconds, to_value

WORTH_TELLING = 0.05
"""Shares of time below it are left out."""
METHOD = (
    "Returns, times and steps to the target are interquartile means over seeds; brackets are 95 % "
    "stratified bootstrap intervals. All other figures are means over the runs."
)
EXPLORING = (
    "Targets and final returns are about training, so that they include exploration; greedy "
    f"returns are those of {EPISODES} episodes that the last policy plays without it."
)
NO_BOUND = (
    "No profile of {styles} is saved, so the table does not say how near {it} came to the speed "
    "without any waiting. `tianji plan` with the same settings measures one."
)
NOT_QUIET = (
    "The machine was not quiet: other programs used {others:.1f} cores on average. Repeat this on "
    "a quiet one before you rely on speeds and times."
)
STOPPED_AT_TARGET = (
    "Runs stop at the target, so their final returns say little: compare the times and the steps. "
    "--target-return none lets all of them run to the limit."
)
ABOUT_RETURNS = (EXPLORING, STOPPED_AT_TARGET)
"""Notes about the final and the greedy returns of the table."""
FEW_POINTS = (
    "The runs were short, so their curves have few points: --observe.period-s 0.05 draws more."
)
CONTINUED = (
    "The comparison was continued after a change, so its runs are of {several}. Repeat it under "
    "another name (--run) before you rely on differences; `origins` in comparison.json says what "
    "made each run."
)
ENOUGH_POINTS = 6


def say_all(styles: Sequence[StyleFigures], target: float | None) -> dict[str, list[str]]:
    """Return the sentences about each style; the first one is the reference."""
    reference = styles[0]
    return {one["style"]: _say(one, reference, target) for one in styles}


def _say(one: StyleFigures, reference: StyleFigures, target: float | None) -> list[str]:
    if not one["seeds"]:
        return ["No run of it has come to its end."]
    is_reference = one is reference or not reference["seeds"]
    told = [
        _result(one, target) if is_reference else _against(one, reference, target),
        "" if is_reference else _claim(one, reference),
        _throughput(one, None if is_reference else reference),
        _time_of("actors", one["actors"], one),
        _time_of("learner", one["learner"], one),
        _lag(one, None if is_reference else reference),
    ]
    return [sentence for sentence in told if sentence]


def _result(one: StyleFigures, target: float | None) -> str:
    time, steps = one["time_to_target_s"], one["steps_to_target"]
    if target is None or time is None or steps is None:
        return f"It ends with a return of {_ending(one)}."
    if time["value"] is None:
        return _not_reached(one, target)
    seconds = to_seconds(time["value"])
    return f"It reaches {target:g} after {seconds} and {to_count(steps['value'])} steps."


def _not_reached(one: StyleFigures, target: float) -> str:
    reached, seeds = one["reached"], counted(len(one["seeds"]), "seed")
    many = f"reaches {target:g} in only {reached} of {seeds}"
    if not reached:
        many = f"does not reach {target:g} ({seeds})"
    return f"It {many}, and ends with a return of {_ending(one)}."


def _ending(one: StyleFigures) -> str:
    """Return the final return, and that of the policy without exploration if it was played."""
    greedy = _known(one["greedy_return"])
    end = _value(one["final_return"], 4)
    return end if greedy is None else f"{end}, {to_value(greedy, 4)} if its policy is greedy"


def _against(one: StyleFigures, reference: StyleFigures, target: float | None) -> str:
    """Say how much longer it takes, and split that into steps and speed."""
    time, other = _known(one["time_to_target_s"]), _known(reference["time_to_target_s"])
    if target is None or (time is None and other is None):
        other_end = f"{reference['style']}: {_ending(reference)}"
        return f"It ends with a return of {_ending(one)} ({other_end})."
    if time is None or other is None:
        return _result(one, target)
    steps, base = _known(one["steps_to_target"]), _known(reference["steps_to_target"])
    told = f"It reaches {target:g} after {to_seconds(time)}, {_times(time / other)} as long as "
    if not steps or not base:
        return f"{told}{reference['style']}."
    return f"{told}{reference['style']}, with {_times(steps / base)} the steps."


def _claim(one: StyleFigures, reference: StyleFigures) -> str:
    """Say whether the difference is more than chance."""
    sure = certainty(one)
    if sure is None:
        return ""
    found, what = sure.probability, "faster" if sure.by == "time_to_target_s" else "better"
    told = f"{reference['style']} is {what} with probability {estimate_text(found, 2)}"
    if found["low"] is None or found["high"] is None or found["seeds"] < ENOUGH_SEEDS:
        return f"{told}; {counted(found['seeds'], 'seed')} cannot support a claim about it."
    if found["low"] <= 0.5 <= found["high"]:
        return f"{told}: no difference can be claimed."
    return f"{told}: {one['style']} is {what}." if found["high"] < 0.5 else f"{told}."


def _throughput(one: StyleFigures, reference: StyleFigures | None) -> str:
    rates = one["rates_per_s"]
    told = f"It makes {to_count(rates['produced'])} steps/s"
    if reference is not None and (base := reference["rates_per_s"]["produced"]):
        told += f" ({_times(rates['produced'] / base)} {reference['style']}'s)"
    told += f" and trains on {to_count(rates['trained'])} steps/s, each step {_uses(one)} times"
    told += f" ({reference['style']}: {_uses(reference)})" if reference is not None else ""
    if one["share_of_bound"] is not None:
        told += f"; without any waiting it would make {to_count(one['bound_per_s'])} steps/s"
    if one["discarded_items"]:
        told += f". It discards {to_count(one['discarded_items'])} items in a run"
    return f"{told}."


def _uses(one: StyleFigures) -> str:
    """Return how often a step is trained on."""
    rates = one["rates_per_s"]
    return to_value(rates["trained"] / rates["produced"] if rates["produced"] else None, 2)


def _time_of(side: str, figures: SideFigures, one: StyleFigures) -> str:
    """Say for how long a side is idle, and what it waits for most."""
    are, they_wait = ("are", "they wait") if side == "actors" else ("is", "it waits")
    waits = _waits(figures["waited_share"], _wait_words(one))
    if figures["busy_share"] is None:
        return ""
    idle = to_percent(max(0.0, 1 - figures["busy_share"]))
    why = f": {they_wait} {waits}" if waits else ""
    return f"Its {side} {are} idle {idle} of the time{why}."


def _wait_words(one: StyleFigures) -> dict[str, str]:
    """Return what each wait is for, as the explanation of a single run says it."""
    if one["gather_rule"] is not None:
        return gathering.wait_words(one["gather_rule"])
    return wait_words(one["critical_path"])


def _waits(shares: Mapping[str, float], words: Mapping[str, str]) -> str:
    return listed([
        f"{to_percent(share)} {words[cause]}"
        for cause, share in sorted(shares.items(), key=lambda wait: -wait[1])
        if share >= WORTH_TELLING and cause in words
    ])  # fmt: skip


def _lag(one: StyleFigures, reference: StyleFigures | None) -> str:
    lag = one["lag_versions"]["mean"]
    if lag is None:
        return ""
    other = reference["lag_versions"]["mean"] if reference is not None else None
    beside = f" ({reference['style']}: {other:.2f})" if reference and other is not None else ""
    return f"The lag is {lag:.2f} versions{beside}."


def notes(
    styles: Sequence[StyleFigures],
    missing: Sequence[str],
    target: float | None,
    points: int,
    others: float,
) -> list[str]:
    """Return what a reader must know before believing the figures. points: of a usual curve.
    others: cores that other programs used."""
    found = [METHOD]
    if any(one["greedy_return"] is not None for one in styles):
        found.append(EXPLORING)
    if others > QUIET_CORES:
        found.append(NOT_QUIET.format(others=others))
    fewest = min((len(one["seeds"]) for one in styles if one["seeds"]), default=0)
    if 0 < fewest < ENOUGH_SEEDS:
        found.append(
            f"{counted(fewest, 'seed')} cannot support a claim about returns or times to a target; "
            f"use {ENOUGH_SEEDS} or more. Treat these figures as a first look."
        )
    if missing:
        found.append(f"These runs have not come to their end: {listed(missing, most=6)}.")
    if target is not None and any(one["reached"] for one in styles):
        found.append(STOPPED_AT_TARGET)
    unknown = [one["style"] for one in styles if one["seeds"] and one["share_of_bound"] is None]
    if unknown:
        it = "it" if len(unknown) == 1 else "they"
        found.append(NO_BOUND.format(styles=listed(unknown), it=it))
    if 0 < points < ENOUGH_POINTS:
        found.append(FEW_POINTS)
    return found


def notes_of_origin(origin: Provenance) -> list[str]:
    """Return what to know about runs that are not all of one commit, with the same libraries."""
    several = [
        f"several {what}: {values}"
        for what, values in (
            ("commits", origin["commit"]),
            *((f"versions of {name}", found) for name, found in origin["versions"].items()),
        )
        if COMMA in values
    ]
    return [CONTINUED.format(several="; ".join(several))] if several else []


def estimate_text(found: Estimated | None, digits: int) -> str:
    """Return a value with its interval.

    >>> estimate_text({"value": 0.612, "low": 0.58, "high": 0.7, "seeds": 5}, 2)
    '0.61 [0.58, 0.7]'
    """
    if found is None:
        return "-"
    value, low, high = found["value"], found["low"], found["high"]
    if low is None:  # one seed, or never in any
        return _or_never(value, digits)
    return f"{_or_never(value, digits)} [{_or_never(low, digits)}, {_or_never(high, digits)}]"


def _or_never(value: float | None, digits: int) -> str:
    return "never" if value is None else to_value(value, digits)


def _times(factor: float) -> str:
    return f"{to_value(factor, 2)} times"


def _known(found: Estimated | None) -> float | None:
    return None if found is None else found["value"]


def _value(found: Estimated | None, digits: int) -> str:
    return to_value(_known(found), digits)
