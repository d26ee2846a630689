"""The virtual engine of algorithms that gather gradients: real roles, given times."""

import numpy as np
import pytest

from tests.fakes.specs import make_spec
from tests.unit.engines.test_inline_engine import Watcher
from tianji.channels.gauges import Gauge
from tianji.channels.orders import Stop
from tianji.checkpoint.load import latest, read_checkpoint
from tianji.engines.assembly.gradients import gather_of, times_of
from tianji.engines.virtual import VirtualEngine
from tianji.programs.one_group import program_for
from tianji.virtual.costs import ENV_STEP_S, ROW_S
from tianji.virtual.rounds import simulate_rounds

H = 3
RENNALA = {"name": "rennala-nigt", "m": 6, "m_init": 9, "unroll_length": H}
MALENIA = {"name": "malenia-nigt", "m": 6, "unroll_length": H}
SYNC = {"name": "sync-nigt", "unroll_length": H}
AFEDPG = {"name": "afedpg", "unroll_length": H}
ALGORITHMS = [RENNALA, MALENIA, SYNC, AFEDPG]


def name_of(value):
    return value["name"] if "name" in value else "-".join(map(str, value.values()))


def engine_for(run_dir, watcher, actors=4, **values):
    settings = {
        "algorithm": RENNALA, "engine": "virtual", "env_kwargs": {"length": 1000},
        "num_envs": actors, "num_actors": actors, **values,
    }  # fmt: skip
    spec = make_spec(run_dir, **settings)
    return VirtualEngine(spec, program_for(spec.config, spec.plan), watcher), spec


class Counter(Watcher):
    """Asks to stop when so many versions are there; of several at one moment one is reported."""

    def __init__(self, versions):
        super().__init__()
        self.versions = versions

    def report(self, report):
        super().report(report)
        if report.get("record", {}).get("version", 0) >= self.versions:
            self.stop.level = Stop.FINISH


def run(run_dir, versions=5, resume=False, **values):
    watcher = Counter(versions)
    engine, spec = engine_for(run_dir, watcher, **values)
    return engine.run(watcher.stop, resume), watcher, spec


def history(watcher):
    """What was known after each version: when, whose gradients, how many were dropped."""
    found = {}
    for record in (report["record"] for report in watcher.reports if report["kind"] == "metrics"):
        when_s, counts = round(record["wall_s"], 8), record["gather"]["counts"]
        # A second record of a version tells of a round that waits for somebody.
        found.setdefault(record["version"], (when_s, counts, record["discarded_items"]))
    return found


def model_of(spec, versions):
    """The same by the timing model, which computes nothing."""
    num_actors, times = spec.plan.num_actors, times_of(spec, num_parameters=1000)
    rounds = simulate_rounds(gather_of(spec), times, num_actors, H, num_rounds=max(versions))
    counts, discarded, found = np.zeros(num_actors, int), 0, {}
    for done in rounds:
        discarded += done.discarded
        for actor, count in done.counts.items():
            counts[actor] += count
        found[done.version + 1] = round(done.finish_s, 8), counts.tolist(), discarded
    return {version: found[version] for version in versions}


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=name_of)
@pytest.mark.parametrize(
    "times",
    [
        {"law": "equal"},
        {"law": "sqrt"},
        {"law": "sqrt", "network": "sqrt"},
        {"law": "straggler", "slowest": 5.0, "network": "equal"},
        {"law": "random"},
        {"law": "changing", "unit_s": 0.5},
        {"law": "sqrt", "per": "step"},
    ],
    ids=name_of,
)
def test_rounds_end_when_and_as_the_model_says(tmp_path, algorithm, times):
    _, watcher, spec = run(tmp_path, versions=12, algorithm=algorithm, times=times)
    found = history(watcher)
    assert max(found) >= 12
    assert found == model_of(spec, found)


def test_the_worked_example_of_three_actors_has_nine_two_and_one(tmp_path):
    algorithm = {"name": "rennala-nigt", "m": 12, "unroll_length": H}
    times = {"law": "given", "compute": (1, 3, 7)}
    _, watcher, _ = run(tmp_path, versions=1, actors=3, algorithm=algorithm, times=times)
    assert history(watcher) == {1: (9.0, [9, 2, 1], 2)}


def test_gradients_that_are_not_wanted_are_never_computed(tmp_path):
    _, watcher, _ = run(tmp_path, versions=4, times={"law": "straggler"})
    rows = [watcher.gauges.rows[f"actor-{i}"] for i in range(4)]
    assert sum(row[Gauge.ITEMS] for row in rows) == 9 + 3 * 6
    assert rows[3][Gauge.ITEMS] == 0
    assert rows[3][Gauge.DISCARDED] == 4
    assert sum(row[Gauge.DISCARDED_STEPS] for row in rows) == 0


def test_of_times_per_step_the_length_of_each_gradient_counts(tmp_path):
    """Episodes of 2 steps end a gradient of `episodes`, which then takes twice the time of one."""
    algorithm = {**RENNALA, "estimate": "episodes", "m": 2, "m_init": 2}
    values = {"algorithm": algorithm, "env_kwargs": {"length": 2}, "actors": 1}
    _, watcher, _ = run(tmp_path, versions=1, times={"law": "equal", "per": "step"}, **values)
    assert history(watcher) == {1: (4.0, [2], 0)}


def test_two_runs_are_equal_to_the_last_bit(tmp_path):
    def weights(name):
        run(tmp_path / name, times={"law": "random"}, versions=8)
        return read_checkpoint(latest(tmp_path / name).path).weights

    one, other = weights("a"), weights("b")
    assert list(one) == list(other)
    assert all(one[name].equal(other[name]) for name in one)


def test_a_gradient_does_not_depend_on_the_times(tmp_path):
    """A barrier takes one of each actor, whenever they come: the parameters are the same."""

    def weights(name, times):
        run(tmp_path / name, algorithm=SYNC, times=times)
        return read_checkpoint(latest(tmp_path / name).path).weights

    one, other = weights("a", {"law": "equal"}), weights("b", {"law": "straggler"})
    assert all(one[name].equal(other[name]) for name in one)


def test_an_actor_that_is_too_slow_is_left_out_when_it_is_time(tmp_path):
    """A straggler of 30, of which 5 are waited for; it comes back at 30 and leaves again at 35."""
    algorithm, times = {**SYNC, "absent_after_s": 5.0}, {"law": "straggler"}
    _, watcher, _ = run(tmp_path, versions=28, algorithm=algorithm, times=times)
    found = {version: when_s for version, (when_s, _, _) in history(watcher).items()}
    assert [found[version] for version in (1, 2, 3, 26)] == [5.0, 6.0, 7.0, 30.0]
    assert [found[version] for version in (27, 28)] == [35.0, 36.0]


def test_without_a_law_everybody_takes_what_its_rows_cost_by_the_table(tmp_path):
    _, watcher, _ = run(tmp_path, versions=2, algorithm=SYNC)
    gradient_s = H * (ROW_S + ENV_STEP_S)
    when_s = {version: when_s for version, (when_s, _, _) in history(watcher).items()}
    assert when_s == pytest.approx({1: gradient_s, 2: 2 * gradient_s}, abs=1e-8)


def test_time_at_work_and_time_between_rounds_are_virtual_too(tmp_path):
    times = {"law": "equal", "network": "equal"}
    _, watcher, _ = run(tmp_path, versions=4, actors=3, times=times)
    for i in range(3):
        row = watcher.gauges.rows[f"actor-{i}"]
        assert row[Gauge.BUSY_NS] == (3 + 3 * 2) * 10**9
        assert row[Gauge.WAIT_NS] == 4 * 10**9


def test_an_evaluation_comes_with_a_version_when_it_is_due(tmp_path):
    values = {"times": {"law": "equal"}, "evaluate": {"period_s": 4.0, "episodes": 1}}
    _, watcher, _ = run(tmp_path, versions=9, algorithm=SYNC, **values)
    made = [r["record"]["version"] for r in watcher.reports if r["kind"] == "evaluation"]
    assert made == [0, 4, 8]


def test_a_stop_now_ends_it_in_the_middle_of_a_round(tmp_path):
    watcher = Watcher()
    watcher.stop_at, watcher.how = 3, Stop.NOW
    engine, _ = engine_for(tmp_path, watcher)
    assert engine.run(watcher.stop, resume=False)["because"] == "interrupted"


def test_a_resumed_run_goes_on_with_the_same_gradients(tmp_path):
    values = {"algorithm": SYNC, "times": {"law": "sqrt"}}
    run(tmp_path / "whole", versions=6, **values)
    run(tmp_path / "parts", versions=3, **values)
    run(tmp_path / "parts", versions=6, resume=True, **values)
    one, other = (read_checkpoint(latest(tmp_path / n).path).weights for n in ("whole", "parts"))
    assert all(one[name].equal(other[name]) for name in one)


def test_a_hundred_actors_take_part(tmp_path):
    algorithm = {"name": "rennala-nigt", "m": 20, "unroll_length": H}
    times = {"law": "sqrt"}
    _, watcher, _ = run(tmp_path, versions=2, actors=100, algorithm=algorithm, times=times)
    assert {version: when_s for version, (when_s, _, _) in history(watcher).items()} == {
        1: 4.0,
        2: 8.0,
    }


class Bookkeeper(Counter):
    """At every moment: how long each actor is in the books, and how long the run goes on."""

    def watch(self, gauges, pids=None, now_ns=None, settle=None):
        super().watch(gauges)
        self.now_ns, self.settle, self.began_ns, self.books = now_ns, settle, now_ns(), []

    def tick(self):
        self.settle()
        rows = [row for name, row in self.gauges.rows.items() if name.startswith("actor-")]
        spent = {row[Gauge.BUSY_NS] + row[Gauge.WAIT_NS] for row in rows}
        self.books.append((spent, self.now_ns() - self.began_ns))


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=name_of)
def test_whoever_looks_finds_the_time_of_every_actor_in_the_books(algorithm, tmp_path):
    watcher = Bookkeeper(versions=4)
    times = {"law": "straggler", "network": "sqrt"}
    engine, _ = engine_for(tmp_path, watcher, algorithm=algorithm, times=times)
    engine.run(watcher.stop, resume=False)
    assert watcher.books[-1][1] > 0
    assert all(spent == {passed} for spent, passed in watcher.books)
