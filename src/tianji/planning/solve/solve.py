"""The planner: the best shares of a machine, from measured costs. Pure; equations 2 to 4 of the
TianJi paper.

    maximise    min(consumption, production)
    subject to  items taken per item put = the algorithm's serial ratio
                P = B_s / N_s = the algorithm's own            (a batch over what it is drawn from)
                cores of the actors + cores of the learner = cores of the machine
                memory of all processes <= memory of the machine

Production and consumption are one rate in the steady state, because the balance holds their ratio:
steps per version divided by the version's duration (period.py). There are few enough choices to
compute all of them.

The second half of this file gives the reasons for a plan in sentences, and what would make the run
faster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from tianji.config.machine import Machine
from tianji.costs.profile import Profile
from tianji.costs.work import actor_work, learner_cost
from tianji.planning.solve.candidates import TIE_SHARE, Candidate, candidates, one_more_core
from tianji.planning.solve.demand import Demand, mib
from tianji.wording import counted, to_percent


class RoleShare(TypedDict):
    """The share of one kind of role; cores are fractions if threads share them."""

    processes: int
    cores: float
    threads: int


@dataclass(frozen=True, slots=True)
class Solution:
    """The chosen candidate, the reasons for it in sentences, and what would change the limit."""

    chosen: Candidate
    demand: Demand
    num_cores: int
    reasons: tuple[str, ...]
    advice: tuple[str, ...]

    def roles(self) -> dict[str, RoleShare]:
        """Return processes, cores and threads by role.

        With more threads than cores, every thread has an even share of them.
        """
        chosen, has_evaluator = self.chosen, self.demand.has_evaluator
        share = min(1.0, self.num_cores / (chosen.num_threads + has_evaluator))

        def role(processes: int, threads: int) -> RoleShare:
            cores = round(processes * threads * share, 2)
            return RoleShare(processes=processes, cores=cores, threads=threads)

        shares = {
            "actor": role(chosen.num_actors, chosen.actor_threads),
            "buffer": role(0, 0),
            "learner": role(1, chosen.learner_threads),
        }
        return {**shares, "evaluator": role(1, 1)} if has_evaluator else shares


def solve(profile: Profile, machine: Machine, demand: Demand) -> Solution:
    """Return the best way to share this machine; raise UsageError if none fits."""
    found = candidates(profile, machine, demand)
    return Solution(
        chosen=found[0],
        demand=demand,
        num_cores=len(machine.cores),
        reasons=explain_choice(found, profile, machine, demand),
        advice=advise(found[0], one_more_core(profile, machine, demand), profile),
    )


WORTH_SAYING = 0.02  # a smaller gain counts as none


def explain_choice(
    found: Sequence[Candidate], profile: Profile, machine: Machine, demand: Demand
) -> tuple[str, ...]:
    """Return one sentence for each choice. found: the chosen candidate first."""
    chosen = found[0]
    return (
        _bottleneck(chosen, machine, demand),
        _actors(found, profile, demand),
        _learner(found, profile, demand),
        _inference(chosen, profile, demand),
        _prediction(chosen, demand),
        _memory(chosen, machine),
    )


def _bottleneck(chosen: Candidate, machine: Machine, demand: Demand) -> str:
    terms = chosen.period.terms
    steps = "the steps of a version"
    actors, learner = _time(terms["sampling"]), _time(terms["training"])
    sampling = f"the actors need {actors} to make {steps}"
    training = f"the learner needs {learner} to train on them"
    if demand.max_lag == 0:
        return f"Sampling and training take turns (max_lag 0): {sampling}, {training}."
    match chosen.prediction.bottleneck:
        case "sampling":
            return f"Sampling is the bottleneck: {sampling}; {training} and waits for the rest."
        case "training":
            return (
                f"Training is the bottleneck: the learner needs {learner} to train on {steps}; "
                f"the actors need {actors} to make them and wait for the rest."
            )
        case "communication":
            return (
                "Communication is the bottleneck: receiving the "
                f"{demand.unrolls_per_version(chosen.num_actors)} unrolls of a version takes "
                f"{_time(terms['communication'])} of the {learner} that the learner's process "
                f"needs for a version; {sampling}."
            )
        case "processors":
            return (
                "The processors are the bottleneck: all work for a version fills "
                f"{counted(len(machine.cores), 'core')} for {_time(terms['processors'])}; alone, "
                f"{sampling} and {training}."
            )


def _actors(found: Sequence[Candidate], profile: Profile, demand: Demand) -> str:
    chosen = found[0]
    work = actor_work(profile, chosen.envs_per_actor, chosen.actor_threads)
    steps = demand.unroll_length * chosen.envs_per_actor
    each = " each" if chosen.num_actors > 1 else ""
    envs = counted(chosen.envs_per_actor, "environment")
    what = f"{counted(chosen.num_actors, 'actor')} with {envs}{each}"
    speed = f"one actor alone makes {_rate(steps / work.unroll.alone_s)}"
    if demand.num_actors is not None:
        return f"{what}: you set num_actors; {speed}."
    others = [c for c in found[1:] if c.num_actors != chosen.num_actors]
    return f"{what}: {speed}; {_against(chosen, others, 'num_actors', 'actor')}."


def _learner(found: Sequence[Candidate], profile: Profile, demand: Demand) -> str:
    chosen = found[0]
    cost = learner_cost(profile, chosen.learner_threads)
    what = counted(chosen.learner_threads, "learner thread")
    speed = f"a version of {demand.steps_per_version:,} steps takes {_time(cost.version.alone_s)}"
    if demand.learner_threads is not None:
        return f"{what}: you set learner_threads; {speed}."
    same = [c for c in found[1:] if c.num_actors == chosen.num_actors]
    others = [c for c in same if c.learner_threads != chosen.learner_threads]
    return f"{what}: {speed}; {_against(chosen, others, 'learner_threads', 'thread')}."


def _against(chosen: Candidate, others: Sequence[Candidate], name: str, noun: str) -> str:
    """Compare with the best of the others: it is slower, or not enough faster for its size."""
    if not others:
        return "there is no alternative"
    other = max(others, key=lambda c: c.prediction.produced)
    change = other.prediction.produced / chosen.prediction.produced - 1
    what = counted(getattr(other, name), noun)
    if not other.prediction.produced:
        return f"the test run with {what} failed"
    if change < -WORTH_SAYING:
        return f"{what} would be {to_percent(-change)} slower"
    if abs(change) <= TIE_SHARE / (1 - TIE_SHARE):
        same = f"{what} would be as fast within {to_percent(TIE_SHARE)}"
        if getattr(other, name) > getattr(chosen, name):
            return f"{same}, and fewer are preferred"
        return f"{same}, with {other.reserve:.1f} x instead of {chosen.reserve:.1f} x in reserve"
    return (
        f"{what} should be {to_percent(change)} faster by computation, but no test run confirmed it"
    )


def _inference(chosen: Candidate, profile: Profile, demand: Demand) -> str:
    work = actor_work(profile, chosen.envs_per_actor, chosen.actor_threads)
    threads = counted(chosen.actor_threads, "thread")
    fixed = " (you set actor_threads)" if demand.actor_threads is not None else ""
    return (
        f"Inference runs in the actors, with {threads} each{fixed}: it takes at most "
        f"{to_percent(1 - work.environment_share)} of an unroll's time, the environments take "
        f"{to_percent(work.environment_share)}."
    )


def _prediction(chosen: Candidate, demand: Demand) -> str:
    how = "measured in a test run" if chosen.is_rehearsed else "computed from measured costs"
    return (
        f"The plan predicts {_rate(chosen.prediction.produced)}, {how}. The algorithm sets ratio "
        f"{demand.ratio:g} (items taken per item put) and P {demand.staleness:.3g} (steps of a "
        "batch per step it is drawn from); no plan changes them."
    )


def _memory(chosen: Candidate, machine: Machine) -> str:
    return (
        f"The run needs {mib(chosen.memory.total)} MiB of the {mib(machine.memory_bytes)} MiB of "
        "free main memory, shared memory included (memfds, not /dev/shm)."
    )


def advise(chosen: Candidate, gain: float, profile: Profile) -> tuple[str, ...]:
    """Return what would help, and the warnings. gain: the rate with one more core over this one."""
    advice = [_one_more_core(chosen, gain)]
    if chosen.prediction.bottleneck == "communication":
        advice.append(_groups(chosen))
    return (*advice, *profile.warnings)


def _one_more_core(chosen: Candidate, gain: float) -> str:
    if gain - 1 < WORTH_SAYING:
        return f"One more core would not help: {_LIMITS[chosen.prediction.bottleneck]}."
    more = chosen.prediction.produced * gain
    return f"One more core would make the run {to_percent(gain - 1)} faster: {_rate(more)}."


_LIMITS = {
    "sampling": "no other way to share the environments among actors is faster",
    "training": "the learner is the bottleneck, and more threads do not make it faster",
    "communication": "the one buffer that receives all unrolls is the bottleneck",
    "processors": "the parts would wait for each other",
}


def _groups(chosen: Candidate) -> str:
    """Recommend enough groups that receiving 1/G of the unrolls is no longer the limit."""
    terms = chosen.period.terms
    receive_s = terms["communication"]
    rest_s = max(terms["sampling"], terms["training"] - receive_s)
    groups = max(2, math.ceil(receive_s / rest_s) if rest_s > 0 else 2)
    return (
        "Several groups of learners, each with its own buffer, would share the receiving: with "
        f"{groups} groups it takes {_time(receive_s / groups)} per version, beside "
        f"{_time(rest_s)} of other work: --num-groups {groups}, on more cores or machines "
        "(`tianji plan --nodes`)."
    )


def _rate(steps_per_s: float) -> str:
    return f"{steps_per_s:,.0f} steps/s"


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
