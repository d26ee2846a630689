"""The options of `tianji simulate` that are not settings of a run, and what it prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import Field, ValidationError
from rich.table import Table

from tianji.cli.pages.options import LINK_GBIT, LINK_MS, link_model, spelled, take
from tianji.cli.pages.tables import figures_table
from tianji.config.run import TimesConfig
from tianji.config.schema import Count, Positive, Strict
from tianji.config.values import Assignment
from tianji.errors import UsageError
from tianji.wording import counted, to_count, to_percent, to_value

if TYPE_CHECKING:
    from tianji.balance.given_times import Times
    from tianji.virtual.clock import NetworkModel
    from tianji.virtual.rounds import Gathered
    from tianji.virtual.simulate import Simulated
    from tianji.virtual.sizes import Size


class SimulateOptions(Strict):
    """The size of the simulated run, and the hosts that it runs on."""

    nodes: Count = 1
    """Hosts; the learner is on the first."""
    actors_per_node: Count | None = None
    """Actors on each host; default: as planned for this machine."""
    envs_per_actor: Count | None = None
    """Environments of each actor; default: as planned."""
    cores_per_node: Count | None = None
    """Cores of each host; default: as many as this machine has, with several hosts one for
    every process."""
    groups: Count = 1
    """Groups of one learner with all of the above, each on --nodes hosts of its own. With
    --num-groups, groups are on --nodes hosts in all."""
    versions: Count = 50
    """Policy versions to simulate; the first fifth is not counted."""
    link_gbit: Positive = LINK_GBIT
    """Gigabits per second of each host's link, in each direction."""
    link_ms: float = Field(LINK_MS, ge=0.0)
    """Milliseconds that a message takes between hosts."""
    bandwidth_mb_s: Positive | None = None
    """The same as --link-gbit, in megabytes per second."""
    latency_us: float | None = Field(None, ge=0.0)
    """The same as --link-ms, in microseconds."""
    times_actor_s: Positive | None = None
    """Seconds of one unroll of an actor, instead of a measurement; needs --times-learner-s."""
    times_learner_s: Positive | None = None
    """Seconds of one version of the learner, for as many environments as the run asks for."""
    output: Path | None = None
    """A PNG to draw rates and lag against scale into: 1, 2, 4 ... hosts or actors."""
    times: str | None = None
    """For algorithms that gather gradients, like the options below: seconds that each actor needs
    for a gradient, such as 1,3,7, or a law of times.law; default: 1 for all."""
    network: str | None = None
    """Seconds that a message of each actor takes, such as 0,1,1, or a law of times.network."""
    actors: Count | None = None
    """Number of actors; default: as many as --times lists, or as the settings say."""
    rounds: Count = 100
    """Rounds to simulate, each of which makes a version."""
    parameters: Count | None = None
    """Parameters of the model, for the network sqrt-size; default: counted."""

    def links(self) -> NetworkModel:
        """Return the links between the hosts."""
        gbit, ms = self.link_gbit, self.link_ms
        if self.bandwidth_mb_s is not None:
            gbit = self.bandwidth_mb_s / 125
        return link_model(gbit, ms if self.latency_us is None else self.latency_us / 1e3)

    def given_times(self, asked: TimesConfig) -> TimesConfig:
        """Return the times of the run's settings, with those of the options in their place."""
        changes: dict[str, Any] = {}
        if self.times is not None:
            changes |= _law_or_list("--times", self.times, ("law", "compute"))
        if self.network is not None:
            changes |= _law_or_list("--network", self.network, ("network", "communicate"))
        found = asked.model_copy(update=changes)
        return found.model_copy(update={"law": "equal"}) if found.law == "none" else found


def _law_or_list(option: str, text: str, names: tuple[str, str]) -> dict[str, Any]:
    law, listed = names
    known = [name for name in get_args(TimesConfig.model_fields[law].annotation) if name != "given"]
    if text in known:
        return {law: text}
    try:
        found = TimesConfig.model_validate({law: "given", listed: text.split(",")})
    except ValidationError as error:
        raise UsageError(
            f"{option} = {text}: must be one number for each actor, such as 1,3,7, or one of "
            f"{', '.join(known)}. {error.errors()[0]['msg']}: '{error.errors()[0]['input']}'."
        ) from error
    return {law: "given", listed: getattr(found, listed)}


OF_GATHERING = frozenset({"times", "network", "actors", "rounds", "parameters"})
"""Options for algorithms that gather gradients; the others are for all other algorithms."""


def take_options(assignments: Sequence[Assignment]) -> tuple[SimulateOptions, list[Assignment]]:
    """Return the options among what was written, and the rest, which is for the run."""
    options, rest = take(SimulateOptions, assignments, "tianji simulate")
    _check(options)
    return options, rest


def _check(options: SimulateOptions) -> None:
    if (options.times_actor_s is None) != (options.times_learner_s is None):
        raise UsageError(
            "--times-actor-s and --times-learner-s belong together: give both, or neither to "
            "measure both on this machine."
        )
    for one, other in (("link_gbit", "bandwidth_mb_s"), ("link_ms", "latency_us")):
        if {one, other} <= options.model_fields_set:
            raise UsageError(f"{spelled(one)} and {spelled(other)} say the same: give one of them.")
    if options.output is not None and not options.output.parent.is_dir():
        raise UsageError(
            f"--output is '{options.output}', but there is no folder '{options.output.parent}'."
        )


def check_fits(options: SimulateOptions, algorithm: str, gathers: bool) -> None:
    """Raise UsageError for an option that has no effect with the algorithm."""
    asked = options.model_fields_set
    if wrong := sorted(asked - OF_GATHERING if gathers else asked & OF_GATHERING):
        words = f"{spelled(wrong[0])} has no effect with {algorithm}, "
        raise UsageError(
            f"{words}which gathers gradients: its options are --times, --network, --actors, "
            "--rounds and --parameters."
            if gathers
            else f"{words}which does not gather gradients as rennala-nigt does. Set times with "
            "--times-actor-s and --times-learner-s, sizes with --nodes and --actors-per-node."
        )


RATES = ("produced", "received", "trained")
BUSY = ("actors\nbusy", "learner\nbusy")
MOST_ROWS = 20
"""Actors in the table; of more, the first and the last ones."""


def rates_table(sizes: Sequence[Size], found: Sequence[Simulated]) -> Table:
    has_groups = any(size.num_groups > 1 for size in sizes)
    names = ["hosts", "groups", "actors"] if has_groups else ["hosts", "actors"]
    shown = RATES[1:] if has_groups else RATES  # no wider than a terminal
    table = figures_table([*names, *(f"{name}\nsteps/s" for name in shown), "lag", *BUSY])
    table.add_column("limit", no_wrap=True)
    for size, simulated in zip(sizes, found, strict=True):
        table.add_row(
            str(size.num_hosts),
            *([str(size.num_groups)] if has_groups else []),
            str(size.num_groups * size.num_actors),
            *(to_count(getattr(simulated, name)) for name in shown),
            f"{simulated.lag_versions:.2f}",
            to_percent(simulated.busy_share["actors"]),
            to_percent(simulated.busy_share["learner"]),
            simulated.bottleneck,
        )
    return table


def between_text(simulated: Simulated) -> str:
    """Tell what crosses between hosts, and how often groups mix; empty if nothing does."""
    crossing = {kind: rate for kind, rate in simulated.bytes_per_s.items() if rate}
    told = [f"{kind} {to_value(rate / 1e6)}" for kind, rate in crossing.items()]
    sentences = [f"Between hosts, MB/s in all: {', '.join(told)}."] if told else []
    if simulated.mix_period_s is not None:
        period = to_value(simulated.mix_period_s * 1e3)
        sentences.append(f"A group mixes in new parameters of others every {period} ms.")
    return " ".join(sentences)


def gradients_table(found: Gathered, times: Times, num_steps: int) -> Table:
    """Show every actor's times, and its share of the gradients."""
    columns = ("actor", "gradient\ns", "message\ns", "gradients\nused", "share")
    table = figures_table(columns)
    for actor in _shown(len(found.counts)):
        if actor is None:
            table.add_row("...")
            continue
        table.add_row(
            str(actor),
            to_value(times.usual_s(actor, num_steps)),
            to_value(times.communicate_s(actor)),
            str(found.counts[actor]),
            to_percent(found.counts[actor] / found.gradients),
        )
    return table


def _shown(num_actors: int) -> list[int | None]:
    if num_actors <= MOST_ROWS:
        return list(range(num_actors))
    half = MOST_ROWS // 2
    return [*range(half), None, *range(num_actors - half, num_actors)]


def rounds_text(found: Gathered) -> str:
    share = to_percent(found.discarded / (found.gradients + found.discarded))
    return (
        f"{counted(found.rounds, 'round')} in {to_value(found.finish_s, 4)} s: "
        f"{to_value(found.rounds_per_s)} rounds/s, {to_value(found.gradients_per_s)} gradients/s; "
        f"{found.discarded} unfinished gradients were discarded ({share} of all)."
    )
