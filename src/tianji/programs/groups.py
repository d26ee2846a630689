"""Programs of several groups: each has the roles and wires of a run, and the peer lane to others.

          learner --(Board: parameters, statistics)--> learners of other groups      peer lane
          learner --(Reduce: gradients, figures)------ learners of other groups
          learner --(Board: addresses)---------------> learners of other groups
          learner --(Reduce: its part of a sum)------- learners of other groups on this host

Names of roles are those of one group. The whole run knows them by in_group().
"""

from __future__ import annotations

from dataclasses import replace

from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig, peers_of, team_of
from tianji.programs.one_group import program_for
from tianji.programs.program import Program, Wire

PEERS = "peers"
"""Name of the wire on which learners of several groups add up their gradients."""
PEER = "peer"
"""Name of the wires by which learners of several groups read each other's parameters."""
CARD = "card"
"""Name of the wires by which learners that add up their gradients find each other."""
PART = "part"
"""Name of the memory in which learners of one host give their parts of a sum."""


def group_program(config: RunConfig, plan: RunPlan, group: int) -> Program:
    """Return the program of one group of a run."""
    alone = program_for(config, plan)
    roles = tuple(replace(role, group=group) for role in alone.roles)
    more = *_peer_wires(config, group), *_reduce_wires(config, group)
    return replace(alone, roles=roles, wires=(*alone.wires, *more))


def _reduce_wires(config: RunConfig, group: int) -> tuple[Wire, ...]:
    """Return the wires of the learners that add up their gradients with this group's, if any."""
    team = team_of(group, config)
    if len(team) == 1:
        return ()
    ranks = tuple(_learner_seen_from(group, other) for other in team)
    cards = (
        Wire(
            card_name(other),
            "board",
            "addresses",
            (writer,),
            tuple(rank for rank in ranks if rank != writer),
        )
        for other, writer in zip(team, ranks, strict=True)
    )
    parts = (
        Wire(part_name(other), "reduce", "part of a sum", (giver,), ranks)
        for other, giver in zip(team, ranks, strict=True)
        if config.is_on_one_host
    )
    return (Wire(PEERS, "reduce", "gradients, figures", ranks, ranks), *cards, *parts)


def _peer_wires(config: RunConfig, group: int) -> tuple[Wire, ...]:
    """Return the boards of all groups that this one posts on or reads."""
    readers = {
        source: [
            reader for reader in range(config.num_learners) if source in peers_of(reader, config)
        ]
        for source in range(config.num_learners)
    }
    return tuple(
        Wire(
            peer_name(source),
            "board",
            "parameters, statistics",
            (_learner_seen_from(group, source),),
            tuple(_learner_seen_from(group, reader) for reader in readers[source]),
        )
        for source in readers
        if readers[source] and group in (source, *readers[source])
    )


def _learner_seen_from(group: int, other: int) -> str:
    return "learner" if other == group else in_group(other, "learner")


def in_group(group: int, name: str) -> str:
    """Return the name of a role or worker of a group, as the whole run knows it."""
    return f"{group}/{name}"


def peer_name(group: int) -> str:
    """Return the name of the board that the learner of a group posts its parameters on."""
    return f"{PEER}-{group}"


def card_name(group: int) -> str:
    """Return the name of the board on which the learner of a group tells its address."""
    return f"{CARD}-{group}"


def part_name(group: int) -> str:
    """Return the name of the memory for the learner's part of a sum, where all are on one host."""
    return f"{PART}-{group}"


def boards_of(group: int) -> tuple[str, ...]:
    """Return the boards on which the learner of a group posts, where there are several groups."""
    return peer_name(group), card_name(group)


def boards_read_by(group: int, config: RunConfig) -> tuple[str, ...]:
    """Return the boards of other groups that the learner of a group reads."""
    peers = peers_of(group, config)
    cards = (card_name(other) for other in team_of(group, config) if other != group)
    return (*(peer_name(peer) for peer in peers), *cards)
