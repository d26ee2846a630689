"""`tianji simulate` for algorithms that gather gradients: rounds in given times."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_args

from pydantic import ValidationError
from rich.table import Table

from tianji.algorithms.interface import Algorithm, Gather
from tianji.balance.given_times import Times
from tianji.cli.output import Outcome, people
from tianji.cli.simulate_options import SimulateOptions
from tianji.config.machine import read_machine
from tianji.config.run import RunConfig, TimesConfig
from tianji.errors import UsageError
from tianji.virtual.rounds import Gathered, simulate_rounds, total
from tianji.wording import to_percent, to_value

MOST_ROWS = 20
"""Actors in the table; of more, the first and the last ones."""
WORDS = {
    "first": "a round closes with the first {m} gradients of its version",
    "harmonic": "a round closes when the harmonic count of all actors reaches {m} / {n}",
    "barrier": "a round closes with one gradient from every actor",
    "every": "each gradient makes a version (AFedPG in our reconstruction)",
}


def simulate_gathering(
    config: RunConfig, algorithm: Algorithm, options: SimulateOptions
) -> Outcome:
    """Counts, times and discarded work of so many rounds."""
    law = _times_config(config.times, options)
    num_actors = _num_actors(config, law, options)
    sized = config.model_copy(update={"num_actors": num_actors, "num_envs": num_actors})
    cadence = algorithm.cadence(sized)
    assert cadence.gather is not None
    num_parameters = options.parameters or 0
    if law.network == "sqrt-size" and not num_parameters:
        num_parameters = _count_parameters(config, algorithm)
    times = Times(law, num_actors, num_parameters, config.seed)
    rounds = simulate_rounds(
        cadence.gather, times, num_actors, cadence.unroll_length, options.rounds
    )
    found = total(rounds, num_actors)
    words = _words(algorithm.name, cadence.gather, num_actors)
    people().print(words, markup=False, soft_wrap=True)
    people().print(_table(found, times, cadence.unroll_length))
    people().print(_account(found), markup=False, soft_wrap=True)
    return Outcome(_report(algorithm.name, cadence.gather, law, found))


def _times_config(asked: TimesConfig, options: SimulateOptions) -> TimesConfig:
    """The times of the run's settings, and of the options, which win."""
    changes: dict[str, Any] = {}
    if options.times is not None:
        changes |= _law_or_list("--times", options.times, ("law", "compute"))
    if options.network is not None:
        changes |= _law_or_list("--network", options.network, ("network", "communicate"))
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


def _num_actors(config: RunConfig, law: TimesConfig, options: SimulateOptions) -> int:
    if options.actors is not None:
        return options.actors
    if law.law == "given":
        return len(law.compute)
    if law.network == "given":
        return len(law.communicate)
    return len(read_machine().cores) if config.num_actors == "auto" else config.num_actors


def _count_parameters(config: RunConfig, algorithm: Algorithm) -> int:
    from tianji.planning.tasks import probe_tasks

    spaces = probe_tasks(config, config.envs or config.env).spaces
    model = algorithm.build_model(spaces, config)
    return sum(parameter.numel() for parameter in model.parameters())


def _report(algorithm: str, gather: Gather, law: TimesConfig, found: Gathered) -> dict[str, Any]:
    return {
        "algorithm": algorithm,
        "rule": gather.rule,
        "m": gather.num_gradients,
        "m_init": gather.first_num_gradients,
        "law": law.law,
        "network": law.network,
        "actors": len(found.counts),
        **asdict(found),
    }


def _words(algorithm: str, gather: Gather, num_actors: int) -> str:
    words = WORDS[gather.rule].format(m=gather.num_gradients, n=num_actors)
    first = gather.first_num_gradients
    differs = gather.rule in ("first", "harmonic") and first != gather.num_gradients
    return f"{algorithm}: {words}{f' (of the first: {first})' if differs else ''}."


def _table(found: Gathered, times: Times, num_steps: int) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("actor", "gradient\ns", "message\ns", "gradients\nused", "share"):
        table.add_column(name, justify="right", no_wrap=True)
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


def _account(found: Gathered) -> str:
    begun = found.gradients + found.discarded
    rounds = "1 round" if found.rounds == 1 else f"{found.rounds} rounds"
    share = to_percent(found.discarded / begun)
    return (
        f"{rounds} in {to_value(found.finish_s, 4)} s: "
        f"{to_value(found.rounds_per_s)} rounds/s, {to_value(found.gradients_per_s)} gradients/s; "
        f"{found.discarded} unfinished gradients were discarded ({share} of all)."
    )
