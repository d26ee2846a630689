"""Figures of gathered gradients: which runs they need, and what is made of them."""

import math
from itertools import islice

import pytest

from tests.unit.figures.gathering.made_up_runs import PANELS, TASK, grid_of, made_run, made_runs
from tianji.figures.gathering import measure as pool
from tianji.figures.gathering.comparison import band, common_return, compare, thinned, time_to
from tianji.figures.gathering.grid import length_s, on_clock, rounds_of, work_in
from tianji.figures.gathering.panels import (
    EQUAL,
    FIGURES,
    HOPPER,
    HUMANOID,
    NO_NETWORK,
    REACHER,
    SLOW_NETWORK,
    TEN_TIMES,
    UNEQUAL,
    WALKER,
    Choice,
    Law,
    Panel,
    order_of,
)  # fmt: skip

ROOT_10 = math.sqrt(10)


def panel(law, rounds=10, num_actors=10):
    return Panel(HUMANOID, law, num_actors, rounds)


@pytest.mark.parametrize(
    ("law", "rennala_s", "sync_s"),
    [
        (EQUAL, 2.0, 1.0),
        (NO_NETWORK, 5.0, ROOT_10),
        (UNEQUAL, 5.0 + ROOT_10, 2 * ROOT_10),
        (SLOW_NETWORK, 5.0 + ROOT_10 * 30498**0.25, ROOT_10 * (1 + 30498**0.25)),
    ],
)
def test_a_round_costs_what_the_law_says(law, rennala_s, sync_s):
    assert length_s(panel(law)) == pytest.approx(10 * rennala_s)
    assert work_in(panel(law), "sync-nigt").finish_s[0] == pytest.approx(sync_s)
    assert len(work_in(panel(law), "rennala-nigt").finish_s) == 10
    assert work_in(panel(law), "rennala-nigt").gradients == 200


def test_malenia_takes_its_time_for_the_slow_worker():
    assert length_s(Panel(TASK, TEN_TIMES, 2, 3, ("malenia-nigt",))) == 180
    assert work_in(Panel(TASK, TEN_TIMES, 2, 3, ("malenia-nigt",)), "malenia-nigt").gradients == 198


def test_messages_in_proportion_stretch_the_clock_of_arrivals_and_nothing_else():
    free = work_in(panel(NO_NETWORK), "afedpg").finish_s
    doubled = work_in(panel(UNEQUAL), "afedpg").finish_s
    assert doubled[:40] == pytest.approx([2 * second for second in free[:40]])


@pytest.mark.parametrize("task", [HUMANOID, REACHER, HOPPER, WALKER], ids=lambda task: task.env)
def test_the_order_of_arrivals_is_the_same_to_the_end_ties_included(task):
    def order(law):
        rounds = rounds_of("afedpg", law, 10, 20, task.num_parameters)
        return [tuple(done.counts) for done in islice(rounds, 3000)]

    assert order(NO_NETWORK) == order(UNEQUAL) == order(SLOW_NETWORK)


def test_laws_with_the_same_order_of_arrivals_share_their_runs():
    assert {order_of("sync-nigt", law) for law in (EQUAL, UNEQUAL, SLOW_NETWORK)} == {Law("equal")}
    for method in ("rennala-nigt", "afedpg"):
        assert order_of(method, UNEQUAL) == order_of(method, SLOW_NETWORK) == Law("sqrt")
        assert order_of(method, EQUAL) != order_of(method, UNEQUAL)


def test_a_shared_run_is_as_long_as_its_longest_panel():
    grid = grid_of(PANELS)
    first, second = (grid.trial(p, "sync-nigt", Choice(-6), 1) for p in PANELS)
    longest = max(len(work_in(p, "sync-nigt").finish_s) for p in PANELS)
    assert first == second and first.num_rounds == longest
    assert len(grid.tuning(PANELS)) == 10  # two laws: one of sync, two of the others, two steps


def test_all_seeds_are_run_with_what_is_best_once_everything_was_tried():
    grid, (panel, _) = grid_of(PANELS), PANELS
    runs = {trial.name: made_run(trial) for trial in grid.tuning(PANELS)}
    some = dict(list(runs.items())[:1])
    assert grid.choose(panel, "rennala-nigt", some) is None
    assert grid.wanted(PANELS, some) == grid.tuning(PANELS)
    assert grid.choose(panel, "rennala-nigt", runs) == Choice(-4)
    more = [t for t in grid.wanted(PANELS, runs) if t.name not in runs]
    assert {(t.choice.exponent, t.seed) for t in more} == {(-4, 2), (-4, 3)}
    assert len(more) == 10


def test_several_numbers_of_gradients_are_tried_where_a_method_has_one():
    panels = [Panel(TASK, EQUAL, 10, 5, counts=(20, 50))]
    tried = grid_of(panels).tuning(panels)
    assert {t.choice.m for t in tried if t.method == "rennala-nigt"} == {20, 50}
    assert {t.choice.m for t in tried if t.method == "sync-nigt"} == {20}
    lengths = {t.choice.m: t.num_rounds for t in tried if t.method == "rennala-nigt"}
    assert lengths == {20: 5, 50: 2}


def test_what_is_best_is_what_is_best_at_the_end():
    (panel, _), grid = PANELS, grid_of(PANELS)
    early, late = (grid.trial(panel, "sync-nigt", Choice(e), 1) for e in (-6, -4))
    rounds = list(range(1, 41))
    returns = {early: [100] * 28 + [1] * 12, late: [0] * 28 + [2] * 12}
    runs = {
        trial.name: {"num_rounds": 1000, "curve": {"rounds": rounds, "return": values}}
        for trial, values in returns.items()
    }
    assert grid.choose(panel, "sync-nigt", runs) == Choice(-4)


def test_a_run_is_put_on_the_clock_of_the_panel_and_ends_with_it():
    free, slow = panel(NO_NETWORK, rounds=3), panel(UNEQUAL, rounds=2)
    curve = {"rounds": [1, 2, 3], "seconds": [5, 10, 15], "return": [1, 2, 3]}
    assert on_clock(free, "rennala-nigt", 20, curve)["seconds"] == [5, 10, 15]
    shown = on_clock(slow, "rennala-nigt", 20, curve)
    assert shown["seconds"] == pytest.approx([8.162, 16.325], abs=1e-3)
    assert shown["return"] == [1, 2]


def line(seed, per_second):
    seconds = [0, 10, 20, 30, 40]
    return {"seed": seed, "seconds": seconds, "return": [per_second * s for s in seconds]}


def test_times_to_the_same_return_are_compared_seed_by_seed():
    curves = {"rennala-nigt": [line(s, 4) for s in (1, 2)], "afedpg": [line(s, 1) for s in (1, 2)]}
    found = compare(curves, 40)
    assert found["target"] == 32  # 80 % of the 40 that the slower one reaches
    assert found["times_to_target"] == {"afedpg": (4, 4, 4)}
    assert found["ends"]["rennala-nigt"] == (160, 160, 160)


def test_who_never_gets_there_is_said_to():
    curves = {"rennala-nigt": [line(s, 4) for s in (1, 2, 3)],
              "afedpg": [line(1, 1), line(2, 1), line(3, 0)]}  # fmt: skip
    assert time_to(curves["afedpg"][2], 32) is None
    low, middle, high = compare(curves, 40)["times_to_target"]["afedpg"]
    assert (low, middle, high) == (4, 4, None)


def test_the_common_return_is_one_that_all_reach():
    curves = {"a": [line(1, 4)], "b": [line(1, 1)]}
    assert common_return(curves, 40) == 32


def test_the_band_leaves_out_the_outermost_fifths():
    assert band([1, 2, 3, 4, 5]) == (1.8, 3, 4.2)
    assert band([1, 2, None]) == (1.4, 2, None)


def test_a_long_curve_keeps_its_ends():
    rounds = list(range(1, 1001))
    kept = thinned({"seed": 3, "rounds": rounds, "return": rounds})
    assert len(kept["rounds"]) == len(kept["return"]) <= 60
    assert (kept["seed"], kept["rounds"][0], kept["rounds"][-1]) == (3, 1, 1000)
    short = {"seed": 3, "rounds": [1, 2], "return": [5, 6]}
    assert thinned(short) == short


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_panels_that_end(name):
    assert all(length_s(panel) > 0 for panel in FIGURES[name])


def test_the_paper_s_panels_are_there():
    laws = [panel.law for panel in FIGURES["nigt-1"]]
    assert laws == [EQUAL, UNEQUAL, SLOW_NETWORK]
    assert {panel.num_actors for panel in FIGURES["nigt-4"]} == {100}
    assert [panel.law for panel in FIGURES["nigt-3"]] == [SLOW_NETWORK] * 3


# --------------------------------------------------------------------------------------- the pool


@pytest.fixture
def in_threads(monkeypatch):
    """Runs that are made up, in this process."""
    from concurrent.futures import ThreadPoolExecutor

    monkeypatch.setattr(pool, "ProcessPoolExecutor", ThreadPoolExecutor)
    monkeypatch.setattr(pool, "prepare", lambda parent: None)
    made = []

    def make(trial):
        made.append(trial)
        return made_run(trial)

    monkeypatch.setattr(pool, "make_run", make)
    return made


def everything(runs):
    return grid_of(PANELS).wanted(PANELS, runs)


def test_all_that_is_wanted_is_made_and_kept(in_threads, tmp_path):
    assert pool.make_runs(everything, tmp_path, 2) == []
    assert pool.read_runs(tmp_path) == made_runs(PANELS)[1]
    assert not list(tmp_path.glob("*.part"))


def test_what_has_its_file_or_is_known_is_not_made_again(in_threads, tmp_path):
    first, second, *_ = grid_of(PANELS).tuning(PANELS)
    pool.make_runs(lambda _: [first], tmp_path, 1)
    known = {second.name: made_run(second)}
    pool.make_runs(everything, tmp_path, 2, known=known)
    assert in_threads.count(first) == 1
    assert second not in in_threads


def test_a_run_that_is_too_short_is_made_again(in_threads, tmp_path):
    first, *_ = grid_of(PANELS).tuning(PANELS)
    known = {first.name: {**made_run(first), "num_rounds": first.num_rounds - 1}}
    pool.make_runs(lambda _: [first], tmp_path, 1, known=known)
    assert in_threads == [first]


def test_nothing_begins_that_would_end_too_late(in_threads, tmp_path):
    left = pool.make_runs(everything, tmp_path, 2, limit_s=0.0)
    assert in_threads == []
    assert left == grid_of(PANELS).tuning(PANELS)


def test_one_that_fails_does_not_keep_the_others_from_being_made(in_threads, tmp_path, monkeypatch):
    first, *others = grid_of(PANELS).tuning(PANELS)

    def make(trial):
        if trial == first:
            raise ValueError("no such environment")
        return made_run(trial)

    monkeypatch.setattr(pool, "make_run", make)
    with pytest.raises(ValueError, match="no such environment"):
        pool.make_runs(lambda _: [first, *others], tmp_path, 1)
    assert set(pool.read_runs(tmp_path)) == {trial.name for trial in others}
