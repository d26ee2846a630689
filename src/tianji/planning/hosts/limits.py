"""What limits the rates of a run on several hosts, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tianji.config.run import Combine
from tianji.planning.hosts.proposal import Forecast
from tianji.virtual.clock import NetworkModel
from tianji.wording import counted, to_percent, to_value

LIMITS = {
    "sampling": "the actors limit each group: its learner waits for them",
    "training": "the learner limits each group: more hosts bring more learners",
    "processors": "the cores of each host are all at work",
}
_CROWDED_LINK = 0.8


def limits_in_words(
    scale: Sequence[Forecast], combine: Combine, network: NetworkModel
) -> list[str]:
    """Say what limits the rates on all hosts."""
    found, num_hosts = scale[-1].simulated, scale[-1].num_hosts
    shares = found.busy_share
    words = LIMITS.get(found.bottleneck) or _communication(shares)
    told = [f"On {counted(num_hosts, 'host')}, {words}."]
    if num_hosts > 1 and found.mix_period_s is not None:
        told.append(
            f"Parameters cross through the head: each group mixes every "
            f"{to_value(found.mix_period_s)} s, and the head's link is "
            f"{to_percent(shares['network'])} busy."
        )
        if shares["network"] > _CROWDED_LINK:
            told.append(
                "That link is the limit of mixing: a larger --combine-every, gossip, or a faster "
                "link would help."
            )
    if num_hosts > 1 and combine == "gradients":
        gbit = network.bytes_per_s * 8 / 1e9
        told.append(
            f"Adding up gradients keeps a link of {to_value(gbit)} Gbit/s "
            f"{to_percent(shares['network'])} busy; learners wait "
            f"{to_percent(shares['combining'])} of the time for each other and for the sum."
        )
    return told


def _communication(shares: Mapping[str, float]) -> str:
    if shares["combining"] >= max(shares["receiving"], shares["network"]):
        return "the learners' waiting for each other limits them"
    return "receiving limits each group: its buffer cannot take more"
