"""Figures 4 (c), 4 (d), 6 (c) and 5 (c), 5 (d), from made-up data, and how runs become data."""

import math
from dataclasses import asdict

import pytest

from tests.unit.figures.made_up import groups_data, hosts_data, link_data
from tianji.cli.main import main
from tianji.config.machine import Machine
from tianji.errors import TianjiError, UsageError
from tianji.figures import catalogue
from tianji.figures.catalogue import FIGURES
from tianji.figures.commands import CommandRun
from tianji.figures.groups import runs
from tianji.figures.groups.runs import (
    WIDE,
    GroupRuns,
    run_groups,
    settled,
    trained_per_step,
    waves,
)
from tianji.figures.groups.summary import by_groups, timed_of


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines()}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("tianji-4c", groups_data()), ("tianji-4d", groups_data()), ("tianji-6c", groups_data()),
        ("tianji-5c", hosts_data()), ("tianji-5d", link_data()),
    ],
)  # fmt: skip
def test_each_is_drawn_by_one_command(name, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(catalogue, "read_data", {data["figure"]: data}.__getitem__)
    assert main(["figure", name]) == 0
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_simulated_points_are_named_and_stand_at_the_groups_of_real_ones():
    left, right = FIGURES["tianji-6c"].draw(groups_data()).axes
    assert list(lines(left)["average"].get_xdata()) == [1, 2]
    assert not any("simulated" in str(name) for name in lines(left))
    assert "real" in left.get_xlabel()
    assert list(lines(left)["in proportion"].get_ydata()) == [10_000, 20_000]
    assert list(lines(right)["average"].get_xdata()) == [1, 2]
    assert list(lines(right)["average, simulated"].get_xdata()) == [2, 4, 16, 64, 512]
    ticks = [label.get_text() for label in right.get_xticklabels()]
    assert ticks == ["1", "2", "16\non 8", "512\non 256"]


def test_throughput_has_simulated_points_from_one_machine_on():
    *_, right = FIGURES["tianji-4c"].draw(groups_data()).axes
    assert list(lines(right)["gossip, simulated"].get_xdata()) == [2, 4, 16, 64, 512]
    assert list(lines(right)["gossip"].get_xdata()) == [1, 2]


def test_bars_say_which_machines_are_simulated():
    _, bars = FIGURES["tianji-4d"].draw(groups_data()).axes
    names = [label.get_text() for label in bars.get_xticklabels()]
    assert names == [
        "1 on 1\nreal", "2 on 1\nreal", "2 on 1\nsimulated", "16 on 8\nsimulated",
    ]  # fmt: skip


def test_no_return_is_drawn_before_all_runs_have_one_or_after_one_has_ended():
    data = groups_data()
    runs = [p for p in data["points"] if p["groups"] == 2 and p["combine"] == "average"]
    for late, run in enumerate(run for run in runs if run["preset"] == "cartpole-ppo"):
        run["curve"]["seconds"] = [0.3 * (1 + late), 2.5, 5.5 + late]
    left, _ = FIGURES["tianji-4d"].draw(data).axes
    two = lines(left)["2 groups"]
    assert two.get_xdata()[[0, -1]] == pytest.approx([0.9, 5.5])
    assert two.get_ydata()[0] > 20, "no first return of an early run is the mean of all"
    (band,) = [c for c in left.collections if c.get_facecolor()[0][2] < c.get_facecolor()[0][0]]
    assert min(band.get_paths()[0].vertices[:, 0]) == pytest.approx(0.9)


def test_bars_of_one_seed_say_so_beside_curves_of_three():
    data = groups_data()
    for run in data["points"]:
        if run["seed"] < 3:
            del run["rates"]
    said = FIGURES["tianji-4d"].draw(data).legends[0].get_title().get_text()
    assert "Curves: 3 seeds each: no claim" in said and "Bars: 1 seed each: no claim" in said


def test_numbers_above_bars_do_not_touch_their_neighbours():
    figure = FIGURES["tianji-4d"].draw(FIGURES["tianji-4d"].read())
    figure.draw_without_rendering()
    _, axes = figure.axes
    boxes = {text.get_text(): text.get_window_extent() for text in axes.texts}
    for text, box in boxes.items():
        others = (other for name, other in boxes.items() if name != text)
        bars = (bar.get_window_extent() for bar in axes.patches)
        assert not any(map(box.overlaps, (*others, *bars))), text


def test_other_systems_are_drawn_beside_runs_on_such_a_machine():
    data = groups_data()
    assert not FIGURES["tianji-4c"].draw(data).axes[0].texts
    data["machine"] = {"cpu": "AMD EPYC", "cores": 2}
    texts = [text.get_text() for text in FIGURES["tianji-4c"].draw(data).axes[0].texts]
    assert "RLlib, PPO: 19.7 s" in texts and "Sample Factory, APPO: 9.3 s" in texts
    assert "TianJi authors' code, PPO: not in 70 s" in texts


def test_the_pictures_say_where_the_runs_were_made():
    for name in ("tianji-4c", "tianji-4d", "tianji-6c"):
        (legend,) = FIGURES[name].draw(groups_data()).legends
        assert "Made-up CPU" in legend.get_title().get_text()


def test_a_time_that_was_never_reached_counts_as_endless():
    def point(seed, seconds):
        return {"groups": 2, "combine": "gossip", "seed": seed, "time_to_target_s": seconds}

    def find(points):
        return by_groups(points, "gossip", lambda p: p["time_to_target_s"])

    found = find([*(point(seed, 4.0 + seed) for seed in range(4)), point(5, None)])[2]
    assert (found.value, found.high) == (6.0, math.inf) and found.low < 6.0
    assert (found.reached, found.runs) == (4, 5)
    assert math.isinf(find([point(1, 4.0), point(2, None)])[2].value)
    assert find([point(1, 4.0)])[2][:3] == (4.0, 4.0, 4.0), "one seed has no interval"


def test_times_that_were_never_reached_are_not_drawn_and_few_seeds_are_said():
    data = groups_data()
    for run in data["points"]:
        if run["groups"] == 2:
            run["time_to_target_s"] = None
    axes = FIGURES["tianji-4c"].draw(data).axes[0]
    assert list(lines(axes)["average"].get_xdata()) == [1]
    assert "3 seeds each: no claim" in axes.get_title()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1\n3 of 3", "2\n0 of 9"]


def test_a_way_to_combine_with_one_seed_is_left_out_of_the_times():
    data = groups_data()
    data["points"] = [p for p in data["points"] if p["combine"] != "gradients" or p["seed"] == 1]
    assert {point["combine"] for point in timed_of(data, "cartpole-ppo")} == {"average", "gossip"}
    data["points"] = [point for point in data["points"] if point["seed"] == 1]
    assert timed_of(data, "cartpole-ppo"), "the first turn of a run can be drawn"
    FIGURES["tianji-4c"].draw(data)


def test_short_runs_count_where_all_of_a_setting_reached_the_target_within_them():
    def kept(data):
        return {(p["groups"], p["combine"], p["seconds"]) for p in timed_of(data, "cartpole-ppo")}

    data = groups_data()
    shorter = [{**p, "seconds": 11.0, "seed": p["seed"] + 3} for p in data["points"]]
    data["points"] += shorter
    assert kept(data) >= {(1, "average", 11.0), (2, "gossip", 11.0), (2, "average", 11.0)}
    late = next(p for p in shorter if (p["groups"], p["combine"]) == (2, "gossip"))
    late["time_to_target_s"] = None
    assert (2, "gossip", 11.0) not in kept(data) and (2, "average", 11.0) in kept(data)
    assert "in runs of 11 to 12 s" in FIGURES["tianji-4c"].compare(data).ours


def test_rates_are_those_from_the_first_third_to_the_time_limit():
    records = [
        {"wall_s": float(s), "env_steps": 100 * min(s, 12),
         "rates_per_s": {"trained": 400.0 * (5 < s < 13)}}
        for s in range(15)
    ]  # fmt: skip
    with pytest.raises(TianjiError, match="no two records"):
        settled(records[:6], 12.5)
    found = settled(records, 12.5)
    assert found == {"received": pytest.approx(100), "trained": pytest.approx(400)}


def test_every_step_is_trained_on_as_often_as_the_preset_says():
    assert trained_per_step("cartpole-ppo") == 3
    assert trained_per_step("cartpole-dqn") == pytest.approx(256 * 8 / (16 * 8))


def machine_of(num_cores, monkeypatch):
    machine = Machine(tuple(range(num_cores)), 64 << 30)
    monkeypatch.setattr(runs, "read_machine", lambda: machine)


def test_numbers_of_groups_that_fit_together_run_at_the_same_time(monkeypatch):
    machine_of(16, monkeypatch)
    first, second = waves(GroupRuns(groups=(1, 2, 4, 7), cores=2))
    assert [(count, len(shares)) for count, shares in first] == [(1, 1), (2, 2), (4, 4)]
    assert [count for count, _ in second] == [7]
    cores = [core for _, shares in first for share in shares for core in share]
    assert len(cores) == len(set(cores)) == 14, "nobody shares a core"
    with pytest.raises(UsageError, match="9 groups of 2 cores need more than this machine"):
        waves(GroupRuns(groups=(9,), cores=2))


def test_copies_and_groups_take_turns_and_what_was_kept_is_not_run_again(monkeypatch):
    machine_of(4, monkeypatch)
    made, kept = [], []

    def simulate(task, asked, seed):
        made.append("simulated")
        rows = [{"preset": task, "combine": way, "seed": seed} for way in asked.combines]
        return {"simulated": rows, "simulated_here": rows}

    def run(task, shares, way, seed, asked):
        made.append((len(shares), way))
        kept = {"seconds": asked.seconds, "rates": {}}
        return {"preset": task, "combine": way, "seed": seed, **kept}

    monkeypatch.setattr(runs, "simulate", simulate)
    monkeypatch.setattr(runs, "_run", run)
    asked = GroupRuns(tasks=("cartpole-ppo",), groups=(2,), seeds=(1,), combines=("gossip",))
    data = run_groups(asked, lambda data: kept.append(len(data["copies"]) + len(data["points"])))
    assert made == ["simulated", (2, "copies"), (2, "gossip")]
    assert kept == [0, 1, 2]
    run_groups(GroupRuns(**{**asdict(asked), "combines": ("gossip", "average")}), before=data)
    assert made[3:] == ["simulated", (2, "average")], "and what was not simulated"
    data = run_groups(GroupRuns(**{**asdict(asked), "seeds": (2,)}), before=data)
    assert made[-2:] == [(2, "gossip"), (2, "copies")], "the other order in every second turn"
    assert [row["seed"] for row in data["simulated_here"]] == [1, 2], "one for each turn"
    with pytest.raises(UsageError, match="kept take 12 s, and not 5"):
        run_groups(GroupRuns(**{**asdict(asked), "seconds": 5.0}), before=data)
    data["points"][0].pop("rates")
    made.clear()
    run_groups(asked, before=data)
    assert made == [(2, "gossip")], "rates of the first way to count them are measured again"


def test_rates_of_copies_add_up_and_each_has_a_seed_of_its_own(monkeypatch):
    asked_for = []

    def train_on(cores, words, limit_s):
        asked_for.append((cores, words[-1]))
        records = [
            {"wall_s": float(s), "env_steps": 100 * s, "rates_per_s": {"trained": 400.0},
             "mean_return_100": 100.0 * s, "kind": {"actor-0": "actor", "learner": "learner"}}
            for s in range(7)
        ]  # fmt: skip
        first = words[-1] == "3"
        summary = {
            "lag_versions": {"mean": 1.0}, "updates": 5, "env_steps": 600, "wall_s": 6.0,
            "busy_s": {"actor-0": 6.0, "learner": 5.0 if first else 2.5},
            "waited_s": {"actor-0": {"core": 6.0}, "learner": {"core": 0.6 if first else 0.0}},
        }  # fmt: skip
        return CommandRun(summary, records)

    monkeypatch.setattr(runs, "train_on", train_on)
    asked = GroupRuns(seconds=6.0)
    point = runs._run("cartpole-ppo", [(0, 1), (2, 3)], "copies", 3, asked)
    assert sorted(asked_for) == [((0, 1), "3"), ((2, 3), "4")]
    assert point["rates"] == {"received": pytest.approx(200), "trained": pytest.approx(800)}
    assert (point["groups"], point["updates"], point["time_to_target_s"]) == (2, 10, 3.0)
    assert point["learners"] == {
        "busy_share": pytest.approx(0.625), "no_core_share": pytest.approx(0.05),
        "update_ms": pytest.approx(750.0),
    }  # fmt: skip


def test_the_wide_network_is_run_for_gradients_alone():
    assert GroupRuns().ways("cartpole-dqn", 1) == ["copies", "average", "gossip", "gradients"]
    assert GroupRuns().ways(WIDE, 1) == ["copies", "gradients"]


def test_hosts_cannot_be_made_by_the_command(capfd):
    assert main(["figure", "tianji-5d", "--rerun"]) == 2
    assert "benchmarks.links.figure 5d" in " ".join(capfd.readouterr().err.split())


def test_ideal_times_of_collection_are_drawn():
    (axes,) = FIGURES["tianji-5c"].draw(hosts_data()).axes
    ideal = lines(axes)["messages x sample time / actors"]
    assert list(ideal.get_ydata()) == pytest.approx([10, 2.5, 0.625])
    assert list(lines(axes)["sample time 1 ms"].get_ydata()) == pytest.approx([13, 13, 13])


def test_lines_between_hosts_are_held_against_iperf3():
    limited, free = FIGURES["tianji-5d"].draw(link_data()).axes
    assert "125 MB/s" in limited.get_title() and "no limit" in free.get_title()
    assert lines(limited)["iperf3"].get_ydata()[0] == 119.0
    assert lines(limited)["paper: Ethernet, 125 MB/s"].get_ydata()[0] == 125.0
    assert lines(free)["paper: falls after 2048 KB on InfiniBand"].get_xdata()[0] == 2 << 20
