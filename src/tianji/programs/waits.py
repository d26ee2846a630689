"""Programs whose actors wait where TianJi's go on: each is a program with one more wire."""

from __future__ import annotations

from dataclasses import replace

from tianji.programs.program import CONFIRMATIONS, REQUESTS, Program, Wire
from tianji.types import RoleKind


def with_requests(program: Program) -> Program:
    """Let actors ask the learner for the policy before each item, and wait for the answer."""
    actors, learners = _names(program, "actor"), _names(program, "learner")
    return _with(program, Wire(REQUESTS, "board", "request; version", actors, learners))


def with_confirmations(program: Program) -> Program:
    """Let actors wait after each item until the buffer has taken it."""
    actors, buffers = _names(program, "actor"), _names(program, "buffer")
    return _with(program, Wire(CONFIRMATIONS, "board", "items taken", buffers, actors))


def _names(program: Program, kind: RoleKind) -> tuple[str, ...]:
    return tuple(role.name for role in program.of_kind(kind))


def _with(program: Program, wire: Wire) -> Program:
    return replace(program, wires=(*program.wires, wire))
