"""Actors that wait where TianJi's go on: each ablation is a program with one more wire.

request-reply   actor --(request; version)--> learner      before each item
confirmed       buffer --(items taken)--> actor            after each item
"""

from __future__ import annotations

from dataclasses import replace

from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.config.values import Values
from tianji.programs.ablations.needs import on_one_machine, sends_items
from tianji.programs.parts import names
from tianji.programs.program import CONFIRMATIONS, REQUESTS, Program, Wire
from tianji.programs.style import Given, Style, refusal
from tianji.programs.styles import tianji


def request_settings(values: Values, given: Given) -> Values:
    """Refuse runs whose actors have no policy to ask for."""
    sends_items("request-reply", values)
    if values["inference"] == "served":
        why = "a server infers, so that actors have no policy to ask for."
        raise refusal("request-reply", values, "inference", why, "actor-cpu")
    return on_one_machine("request-reply", values, given)


def with_requests(config: RunConfig, plan: RunPlan) -> Program:
    """Let actors ask the learner for the policy before each item, and wait for the answer."""
    program = tianji.program(config, plan)
    ends = names(program.roles, "actor"), names(program.roles, "learner")
    return _with(program, Wire(REQUESTS, "board", "request; version", *ends))


def confirmed_settings(values: Values, given: Given) -> Values:
    """Refuse runs whose items are no unrolls in shared memory."""
    sends_items("confirmed", values)
    return on_one_machine("confirmed", values, given)


def with_confirmations(config: RunConfig, plan: RunPlan) -> Program:
    """Let actors wait after each item until the buffer has taken it."""
    program = tianji.program(config, plan)
    ends = names(program.roles, "buffer"), names(program.roles, "actor")
    return _with(program, Wire(CONFIRMATIONS, "board", "items taken", *ends))


def _with(program: Program, wire: Wire) -> Program:
    return replace(program, wires=(*program.wires, wire))


def without_waits(program: Program) -> Program:
    """Return the program without these wires: where a role is measured alone, nobody replies."""
    wires = (wire for wire in program.wires if wire.name not in (REQUESTS, CONFIRMATIONS))
    return replace(program, wires=tuple(wires))


REQUEST_REPLY = Style(
    name="request-reply",
    about="Actors ask the learner for the policy before each item, and wait for the answer.",
    settings=request_settings,
    program=with_requests,
    differences=(
        "Policy: the learner answers between two versions; tianji's actors read the newest policy "
        "at any time, before every step.",
        "Items: all steps of an item are made by one version.",
    ),
    kind="ablation",
)
CONFIRMED = Style(
    name="confirmed",
    about="Actors wait after each item until the buffer has taken it.",
    settings=confirmed_settings,
    program=with_confirmations,
    differences=(
        "Experience: the buffer confirms each item, which it takes between two updates if it "
        "shares the learner's process; tianji's actors go on as long as they have a slot.",
    ),
    kind="ablation",
)
