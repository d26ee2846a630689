"""Why a plan is as it is, in sentences with numbers; and what would change it. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tianji.config.machine import Machine
from tianji.costs.profile import Profile
from tianji.costs.work import actor_work, learner_cost
from tianji.display.numbers import counted
from tianji.planning.solve.candidates import TIE_SHARE, Candidate
from tianji.planning.solve.demand import Demand

WORTH_SAYING = 0.02
"""A smaller gain than this is told as none."""


def explain_choice(
    found: Sequence[Candidate], profile: Profile, machine: Machine, demand: Demand
) -> tuple[str, ...]:
    """found: the chosen one first."""
    chosen = found[0]
    return (
        _bottleneck(chosen, machine, demand),
        _actors(found, profile, demand),
        _learner(found, profile, demand),
        _inference(chosen, profile, demand),
        _promise(chosen, demand),
        _memory(chosen, machine),
    )


def _bottleneck(chosen: Candidate, machine: Machine, demand: Demand) -> str:
    terms = chosen.period.terms
    sampling = f"the actors need {_time(terms['sampling'])} for the steps of a version"
    training = f"the learner needs {_time(terms['training'])} to train on them"
    if demand.max_lag == 0:
        return f"Sampling and training take turns (max_lag 0): {sampling}, {training}."
    match chosen.prediction.bottleneck:
        case "sampling":
            return f"Sampling is the bottleneck: {sampling}; {training} and waits for the rest."
        case "training":
            return f"Training is the bottleneck: {training}; {sampling} and wait for the rest."
        case "communication":
            return (
                "Communication is the bottleneck: receiving the "
                f"{demand.unrolls_per_version(chosen.num_actors)} unrolls of a version takes "
                f"{_time(terms['communication'])} of the {_time(terms['training'])} that the "
                f"learner's worker needs for it; {sampling}."
            )
        case "processors":
            return (
                f"The processors are the bottleneck: all work for a version fills "
                f"{counted(len(machine.cores), 'core')} for {_time(terms['processors'])}; alone, "
                f"{sampling} and {training}."
            )


def _actors(found: Sequence[Candidate], profile: Profile, demand: Demand) -> str:
    chosen = found[0]
    work = actor_work(profile, chosen.envs_per_actor, chosen.actor_threads)
    steps = demand.unroll_length * chosen.envs_per_actor
    what = (
        f"{_count(chosen.num_actors, 'actor')} with {_count(chosen.envs_per_actor, 'environment')}"
        f"{' each' if chosen.num_actors > 1 else ''}"
    )
    speed = f"one actor alone makes {_rate(steps / work.unroll.alone_s)}"
    if demand.num_actors is not None:
        return f"{what}: you set num_actors; {speed}."
    others = [c for c in found[1:] if c.num_actors != chosen.num_actors]
    return f"{what}: {speed}; {_against(chosen, others, 'num_actors', 'actor')}."


def _learner(found: Sequence[Candidate], profile: Profile, demand: Demand) -> str:
    chosen = found[0]
    cost = learner_cost(profile, chosen.learner_threads)
    what = f"{_count(chosen.learner_threads, 'learner thread')}"
    speed = f"a version of {demand.steps_per_version:,} steps takes {_time(cost.version.alone_s)}"
    if demand.learner_threads is not None:
        return f"{what}: you set learner_threads; {speed}."
    others = [
        c
        for c in found[1:]
        if c.num_actors == chosen.num_actors and c.learner_threads != chosen.learner_threads
    ]
    return f"{what}: {speed}; {_against(chosen, others, 'learner_threads', 'thread')}."


def _against(chosen: Candidate, others: Sequence[Candidate], name: str, noun: str) -> str:
    """The best of the others, which promises less, or too little more for its size."""
    if not others:
        return "there is no alternative"
    other = max(others, key=lambda c: c.prediction.produced)
    change = other.prediction.produced / chosen.prediction.produced - 1
    what = _count(getattr(other, name), noun)
    if not other.prediction.produced:
        return f"{what} failed when tried"
    if change < -WORTH_SAYING:
        return f"{what} would be {-change:.0%} slower"
    if abs(change) <= TIE_SHARE / (1 - TIE_SHARE):
        same = f"{what} would be as fast within {TIE_SHARE:.0%}"
        if getattr(other, name) > getattr(chosen, name):
            return f"{same}, and fewer are preferred"
        return f"{same}, with {other.reserve:.1f} x instead of {chosen.reserve:.1f} x in reserve"
    return f"{what} should be {change:.0%} faster by computation, but no test run confirmed it"


def _inference(chosen: Candidate, profile: Profile, demand: Demand) -> str:
    work = actor_work(profile, chosen.envs_per_actor, chosen.actor_threads)
    rest = 1 - work.environment_share
    threads = _count(chosen.actor_threads, "thread")
    fixed = " (you set actor_threads)" if demand.actor_threads is not None else ""
    return (
        f"Inference runs in the actors, with {threads} each{fixed}: it takes at most {rest:.0%} of "
        f"an unroll, the environments {work.environment_share:.0%}."
    )


def _promise(chosen: Candidate, demand: Demand) -> str:
    how = "measured in a test run" if chosen.is_rehearsed else "computed from measured costs"
    return (
        f"The plan predicts {_rate(chosen.prediction.produced)}, {how}. The algorithm sets ratio "
        f"{demand.ratio:g} and P {demand.staleness:.3g}; no plan changes them."
    )


def _memory(chosen: Candidate, machine: Machine) -> str:
    total = chosen.memory_bytes["total"]
    return (
        f"The run needs {total / 2**20:,.0f} MiB of the {machine.memory_bytes / 2**20:,.0f} MiB of "
        "free main memory, shared memory included (memfds, not /dev/shm). It uses no GPU memory."
    )


def advise(chosen: Candidate, gain: float, profile: Profile, demand: Demand) -> tuple[str, ...]:
    """gain: the rate with one more core over the rate without."""
    advice = [_one_more_core(chosen, gain)]
    if chosen.prediction.bottleneck == "communication":
        advice.append(_groups(chosen))
    return (*advice, *profile.warnings)


def _one_more_core(chosen: Candidate, gain: float) -> str:
    if gain - 1 < WORTH_SAYING:
        return f"One more core would not help: {_LIMITS[chosen.prediction.bottleneck]}."
    more = chosen.prediction.produced * gain
    return f"One more core would make the run {gain - 1:.0%} faster: {_rate(more)}."


_LIMITS = {
    "sampling": "no other way to share the environments among actors is faster",
    "training": "the learner is the bottleneck, and more threads do not make it faster",
    "communication": "the one buffer that receives all unrolls is the bottleneck",
    "processors": "the parts would wait for each other",
}


def _groups(chosen: Candidate) -> str:
    """Each of G groups receives 1/G of the unrolls: enough of them that others are the limit."""
    terms = chosen.period.terms
    receive_s = terms["communication"]
    rest_s = max(terms["sampling"], terms["training"] - receive_s)
    enough = math.ceil(receive_s / rest_s) if rest_s > 0 else 2
    return (
        f"Several groups of learners, each with its own buffer, would share the receiving: with "
        f"{max(2, enough)} groups it takes {_time(receive_s / max(2, enough))} per version, beside "
        f"{_time(rest_s)} of other work. This version of TianJi cannot run groups; `tianji "
        "simulate --groups` predicts their speed."
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _rate(steps_per_s: float) -> str:
    return f"{steps_per_s:,.0f} steps/s"


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s"
