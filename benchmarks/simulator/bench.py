"""Does the simulator agree with reality, at sizes that this machine can run?

    python -m benchmarks.simulator.bench                       about 8 minutes
    python -m benchmarks.simulator.bench --only cartpole-dqn
    python -m benchmarks.simulator.bench --quick

One profile of each preset; then every size for real, in alternation, and simulated from that
profile. The simulator sees the profile alone, whose few rehearsals are of the planner's choice;
nothing is fitted to the runs that it is compared with.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass

from benchmarks.harness import Report, alternate, parser, say
from tianji.config.machine import Machine, read_machine
from tianji.config.overrides import make_config
from tianji.config.run import RunConfig
from tianji.costs.profile import Profile, Rehearsal
from tianji.envs.build import probe
from tianji.figures.balance.scaling import measure_rates
from tianji.planning.measure.measure import measure
from tianji.virtual.simulate import Simulated
from tianji.virtual.sizes import Size, simulate_size

PRESETS = ("cartpole-ppo", "cartpole-dqn")
ACTORS = (1, 2, 4)
THREADS = (1, 2)
BOUND = 0.15
RATES = ("produced", "received", "trained")
VERSIONS = 200


@dataclass(frozen=True)
class Setting:
    """One way to run a preset on this machine."""

    num_actors: int
    learner_threads: int

    def name(self, preset: str) -> str:
        return f"{preset}, {self.num_actors} actors, {self.learner_threads} threads"

    def config(self, config: RunConfig) -> RunConfig:
        fixed = {"num_actors": self.num_actors, "learner_threads": self.learner_threads}
        return config.model_copy(update={**fixed, "actor_threads": 1})

    def size(self, config: RunConfig, machine: Machine) -> Size:
        return Size(
            actors_per_node=self.num_actors,
            envs_per_actor=config.num_envs // self.num_actors,
            cores_per_node=len(machine.cores),
            learner_threads=self.learner_threads,
            num_versions=VERSIONS,
        )


def settings(config: RunConfig, profile: Profile) -> list[Setting]:
    """Sizes for which the profile has costs: threads that do not help met no load in it."""
    fewest = min(profile.learners, key=lambda learner: learner.threads)
    helping = {
        learner.threads
        for learner in profile.learners
        if learner is fewest or learner.version.alone_s < fewest.version.alone_s
    }
    threads = helping.intersection(THREADS)
    actors = [count for count in ACTORS if config.num_envs % count == 0]
    return [Setting(count, number) for count in actors for number in sorted(threads)]


def errors(simulated: Simulated, runs: list[Rehearsal]) -> dict[str, float]:
    """How far the simulation is from the median run, as shares of what was measured."""
    found = {}
    for name in (*RATES, "lag_versions"):
        measured = statistics.median(getattr(run, name) for run in runs)
        found[name] = getattr(simulated, name) / measured - 1 if measured else 0.0
    return found


def compare(report: Report, preset: str, seconds: float, repeats: int) -> None:
    config, machine = make_config(preset), read_machine()
    say(f"{preset}: profiling")
    profile = measure(config, config.env, machine, probe(config.env, config.env_kwargs), say)
    report.note(**{f"profile of {preset}": profile.model_dump(mode="json")})
    points = settings(config, profile)
    runs: dict[Setting, list[Rehearsal]] = {point: [] for point in points}
    for point, turn in alternate(points, range(repeats)):
        say(f"{point.name(preset)}, run {turn + 1}")
        run = measure_rates(point.config(config), seconds)
        runs[point].append(run)
        report.add(point.name(preset), turn, run.model_dump(mode="json"))
    rows = []
    for point in points:
        simulated = simulate_size(config, profile, point.size(config, machine))
        found = errors(simulated, runs[point])
        middle = statistics.median(run.produced for run in runs[point])
        lag = statistics.median(run.lag_versions for run in runs[point])
        rows.append([
            str(point.num_actors), str(point.learner_threads),
            f"{middle:,.0f}", f"{simulated.produced:,.0f}",
            *(f"{found[name]:+.0%}" for name in RATES),
            f"{lag:.2f}", f"{simulated.lag_versions:.2f}", simulated.bottleneck,
        ])  # fmt: skip
        worst = max(found.values(), key=abs)
        report.check(f"{point.name(preset)}: largest error", abs(worst), "<=", BOUND)
    headers = [
        "actors", "threads", "real steps/s", "simulated", *RATES, "real lag", "simulated", "limit",
    ]  # fmt: skip
    report.table(preset, headers, rows)


def main() -> int:
    options = parser(__doc__ or "")
    options.add_argument("--only", choices=PRESETS, help="this preset alone")
    options.add_argument("--seconds", type=float, default=4.0, help="of every real run")
    options.add_argument("--repeats", type=int, default=3, help="real runs of every size")
    args = options.parse_args()
    report = Report("simulator", args)
    for preset in (args.only,) if args.only else PRESETS:
        seconds, repeats = (0.5, 1) if args.quick else (args.seconds, args.repeats)
        compare(report, preset, seconds, repeats)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
