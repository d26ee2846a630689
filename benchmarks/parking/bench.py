"""What parking brings where there are more workers than cores: the same run with it and without.

python -m benchmarks.parking.bench            7 rounds, about 6 minutes
python -m benchmarks.parking.bench --quick
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import Report, alternate, median, parser, ratio, say, spread
from tianji.config.files import load_preset
from tianji.config.machine import read_machine
from tianji.config.run import RunConfig
from tianji.engines.spec import RunSpec
from tianji.envs.build import probe
from tianji.planning.rehearse.rehearsal import rehearse
from tianji.planning.resolve.resolve import resolve

SECONDS = 4.0
BOUND = 0.97
"""Parking must not cost anything to speak of."""


class Case(NamedTuple):
    """A preset with so many actors for every core."""

    preset: str
    actors_per_core: int

    @property
    def name(self) -> str:
        return f"{self.preset}, {self.actors_per_core} actors per core"


CASES = tuple(
    Case(preset, count) for preset in ("cartpole-ppo", "cartpole-dqn") for count in (2, 4)
)


def spec_of(case: Case, folder: Path) -> RunSpec:
    machine = read_machine()
    num_actors = case.actors_per_core * len(machine.cores)
    asked = {"num_actors": num_actors, "learner_threads": 1}
    config = RunConfig.model_validate({**load_preset(case.preset).config, **asked})
    found = probe(config.env, config.env_kwargs)
    return RunSpec(config, resolve(config, machine, found), found.spaces, config.env, folder)


def compare(report: Report, case: Case, rounds: int, seconds: float) -> list[str]:
    """A row of the table."""
    rates: dict[str, list[float]] = {"off": [], "on": []}
    lags: dict[str, list[float | None]] = {"off": [], "on": []}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        spec = spec_of(case, Path(folder))
        for way, seed in alternate(list(rates), range(1, rounds + 1)):
            plan = spec.plan.model_copy(update={"shares_cores": way == "on"})
            found = rehearse(replace(spec, plan=plan), seconds)
            figures = {"received": found.received, "lag_versions": found.lag_versions}
            report.add(f"{case.name}, parking {way}", seed, figures)
            say(f"{case.name}, parking {way}: {found.received:,.0f} steps/s")
            rates[way].append(found.received)
            lags[way].append(found.lag_versions)
    gains: list[float | None] = [
        ratio(on, off) for on, off in zip(rates["on"], rates["off"], strict=True)
    ]
    report.check(f"{case.name}: steps/s, parking on / off", median(gains), ">=", BOUND)
    return [
        case.name,
        spread(list(rates["off"]), 0),
        spread(list(rates["on"]), 0),
        spread(gains),
        spread(lags["off"]),
        spread(lags["on"]),
    ]


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--rounds", type=int, default=7)
    args = made.parse_args()
    report = Report("parking", args)
    rounds, seconds = (1, 1.0) if args.quick else (args.rounds, SECONDS)
    rows = [compare(report, case, rounds, seconds) for case in CASES]
    headers = ["run", "steps/s, off", "steps/s, on", "on / off", "lag, off", "lag, on"]
    report.table("More workers than cores, parking off and on", headers, rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
