"""Every figure of the first paper beside ours: numbers in the sentences come from the data."""

import pytest

from tests.unit.figures.apex.test_apex_figures import made_up as pong_data
from tests.unit.figures.made_up import (
    ablation_data,
    actors_data,
    equation_data,
    groups_data,
    hosts_data,
    link_data,
    scaling_data,
    sizes_data,
)
from tianji.figures.catalogue import FIGURES, DataFigure
from tianji.figures.files import read_data
from tianji.figures.paper.record import times
from tianji.figures.paper.reported import REPORTED

EPYC = {"cpu": "AMD EPYC", "cores": 2}


def ours(name, data):
    return REPORTED[name].compare(data).ours


def test_every_figure_of_the_first_paper_has_its_comparison():
    of_paper = {name for name in FIGURES if name.startswith(("tianji-", "equation-"))}
    assert set(REPORTED) == of_paper


@pytest.mark.parametrize("name", sorted(REPORTED))
def test_the_data_in_the_package_gives_whole_sentences(name):
    figure = FIGURES[name]
    found = (figure if isinstance(figure, DataFigure) else figure.kept).read()
    for text in REPORTED[name].compare(found):
        assert text.endswith(".") and not {"nan", "inf", "None"} & set(text.split())


def test_the_papers_numbers_are_those_of_its_text():
    said = {name: reported.paper for name, reported in REPORTED.items()}
    assert all(number in said["tianji-4c"] for number in ("4.36", "2.95", "1.6", "7.13"))
    assert "beyond 4 actors" in said["tianji-5b"] and "16" in said["tianji-5b"]
    assert "125 MB/s" in said["tianji-5d"] and "12.5 GB/s" in said["tianji-5d"]
    assert "2048 KB" in said["tianji-5d"]
    assert "beyond 4 actors" in said["tianji-6a"] and "16 actors" in said["tianji-6b"]
    assert "4.37" in said["tianji-4a"]
    for name in ("tianji-1", "tianji-4a", "tianji-4b", "tianji-4d", "tianji-5a", "tianji-5c"):
        assert "Its text gives no numbers." in said[name]


def test_idle_shares_are_told_for_every_run():
    shares = {"actor-0": 0.5, "actor-1": 0.7, "buffer": 0.9, "learner": 0.03}
    rows = [{"role": role, "idle_share": share} for role, share in shares.items()]
    data = {"machine": EPYC, "points": [{"name": "seed: served", "rows": rows}]}
    assert "seed: 2 actors 60 % and learner 3 %." in ours("tianji-1", data)


def test_an_order_that_is_not_the_papers_is_told():
    data = pong_data()
    for point in data["points"][1]["curve"]:
        point["return"] = 20.0
    said = ours("tianji-4a", data)
    assert "-15.2 and Ape-X 20.0. They reach -15.8 after" in said
    assert "times as fast (1 seed each: no claim;" in said and "in the paper" not in said
    several = [{**run, "seed": seed} for seed in range(5) for run in data["points"]]
    data["points"] = several
    assert "(the other way round than in the paper, 5 seeds each;" in ours("tianji-4a", data)
    for run in data["points"][1::2]:
        run["curve"] = [{**point, "return": -21.0} for point in run["curve"]]
        run["curve"][-1]["return"] = -20.0
    assert "(as in the paper, 5 seeds each;" in ours("tianji-4a", data)


def test_who_is_ahead_for_most_of_the_time_is_faster_though_the_other_ends_higher():
    data = pong_data()
    slow, quick = (run["curve"] for run in data["points"])
    for point in (*slow, *quick):
        point["return"] = -21.0
    for point in quick[1:]:
        point["return"] = -0.3
    quick[-1]["return"], slow[-1]["return"] = 0.0, 19.0  # who has learnt wavers around a return
    said = ours("tianji-4a", data)
    assert "19.0 and Ape-X 0.0. They reach -2.1 after" in said
    slower = float(said.partition("TianJi is ")[2].split(" ")[0])
    assert slower < 1
    data["points"] = [{**run, "seed": seed} for seed in range(5) for run in data["points"]]
    assert "(the other way round than in the paper, 5 seeds each;" in ours("tianji-4a", data)


def test_throughput_on_pong_is_told_for_both():
    data = pong_data()
    data["points"][0]["settled"]["trained_per_s"] = 9000.0
    said = ours("tianji-4b", data)
    assert "trains on 9,000 transitions per second" in said
    assert said.endswith("(1 seed each: no claim).") and "in the paper" not in said
    data["points"] = [{**run, "seed": seed} for seed in range(5) for run in data["points"]]
    assert ours("tianji-4b", data).endswith("(as in the paper, 5 seeds each).")


def test_the_reason_of_throughput_on_pong_is_that_which_the_runs_have_recorded():
    told = REPORTED["tianji-4b"].difference
    runs = {run["preset"]: run["summary"] for run in read_data("tianji-4")["points"]}
    reasons = {preset: summary["explanation"][0] for preset, summary in runs.items()}
    assert reasons["pong-dqn"].startswith("Neither side is the bottleneck all the time")
    assert "neither of its sides is the bottleneck all the time" in told
    assert reasons["pong-apex"].startswith("The learner is the bottleneck")
    assert "Our Ape-X runs free, and its learner is the bottleneck" in told


def test_real_runs_of_groups_are_held_against_simulated_ones():
    data = groups_data()
    data["machine"] = {**data["machine"], "load_average": [11.7, 8.0, 7.0]}
    for point in data["points"]:
        if point["groups"] == 2:
            point["rates"] = {"received": 5_000.0 * point["seed"], "trained": 20_000.0}
    said = ours("tianji-6c", data)
    assert "2 groups receive 10.0k steps/s, 1.0 times as many as 1 group" in said
    assert "Simulated: 160k on 8 machines, 640k on 32, 4.0 times as many." in said
    assert "real runs reach 0.50 of the simulated rate, the best one 0.75" in said
    assert "a load average of 11.7 before" in said
    one = {**data, "points": [p for p in data["points"] if p["seed"] == 1]}
    said = ours("tianji-6c", one)
    assert "one real run reaches 0.25 of the simulated rate. The" in said, "no best one of one"
    assert "real runs reach 0.25 of the simulated rate" in ours("tianji-4d", data)
    for row in data["simulated_here"]:  # the machine is slower in later turns
        row["received"] /= row["seed"]
    assert "real runs reach 1.00 of the simulated rate, the best one 2.25" in ours(
        "tianji-6c", data
    )


def test_simulated_groups_are_told_up_to_the_64_machines_of_the_paper():
    data = groups_data()
    data["simulated"] += [
        {**row, "nodes": nodes, "received": 20_000.0 * nodes}
        for nodes in (64, 128)
        for row in data["simulated"] if row["nodes"] == 8
    ]  # fmt: skip
    assert "1.28M on 64, 8.0 times as many." in ours("tianji-6c", data)


def test_times_of_groups_are_told_with_those_of_other_systems_on_such_a_machine():
    data = groups_data()
    said = ours("tianji-4c", data)
    assert "PPO to 300 in runs of 12 s (average, 3 seeds each: no claim)" in said
    assert "RLlib" not in said and "settings of its own" not in said
    assert "No other system was measured on such a machine." in said
    said = ours("tianji-4c", {**data, "machine": EPYC})
    assert "RLlib 19.7 s and TianJi authors' code not in 70 s" in said
    assert "Every system has settings of its own" in said
    assert "system" not in REPORTED["tianji-4c"].difference, "whatever is drawn"


def test_runs_of_one_group_count_once_for_each_seed():
    data = groups_data()
    for way in ("gossip", "gradients"):
        data["points"] += [
            {**p, "combine": way, "time_to_target_s": p["time_to_target_s"] + 2.0}
            for p in data["points"] if p["groups"] == 1 and p["combine"] == "average"
        ]  # fmt: skip
    assert "with 1 group 3 of 3 seeds in 13 s [12, 14]" in ours("tianji-4c", data)
    slow = next(p for p in data["points"] if p["combine"] == "gossip" and p["groups"] == 1)
    slow["time_to_target_s"] = None
    assert "PPO to 300" in ours("tianji-4c", data)
    assert "with 1 group 2 of 3 seeds" in ours("tianji-4c", data).partition("DQN")[0]


def test_speed_by_size_is_held_against_copying_and_against_xingtian():
    data = sizes_data()
    assert "XingTian" not in ours("tianji-5a", data)
    said = ours("tianji-5a", {**data, "machine": EPYC})
    assert "Messages of 512 KB move at 10,432 MB/s, 80 % of the speed" in said
    assert "10 times to 162 times the speed of XingTian's channel" in said


def test_collection_times_are_held_against_the_ideal():
    assert "at 10 ms 4 actors take 27.5 s, 1.1 times the ideal" in ours("tianji-5b", actors_data())
    assert "at 1 ms 16 actors take 13.0 s, 21 times the ideal" in ours("tianji-5c", hosts_data())


def test_lines_are_told_with_and_without_a_limit():
    said = ours("tianji-5d", link_data())
    assert "On a line of 125 MB/s we reach 118 MB/s" in said
    assert "without a limit at most 1,000 MB/s, at 2 MB (in clear" in said


def test_the_balance_is_told_with_the_share_of_the_simulation():
    data = scaling_data()
    data["simulated"] = [{**point, "received": 70_000.0} for point in data["points"]]
    said = ours("tianji-6a", data)
    assert "The balance is at 4 actors, and the highest rate is 35.0k steps/s with 4" in said
    assert "With 4 the run reaches 0.50 of the simulated rate" in said
    told = "100 % at every size is received, and 100 % at every size is trained on"
    assert told in said and "(one run for each point)." in said
    data["points"][1]["trained"] *= 0.9
    data["points"][0]["trained"] *= 1.104
    said = ours("tianji-6a", data)
    assert "and 90 % (with 2 actors) to 110 % (with 1) is trained on as often as" in said


def test_what_a_plan_and_fresh_batches_are_worth_is_told():
    data = ablation_data()
    assert "fresh batches never" in ours("tianji-6d", data)
    data["points"] = [{**data["points"][0], "mapping": mapping, "pool_batches": pool, "seed": seed}
                      for mapping, pool in (("planned", 1), ("planned", 8), ("arbitrary", 1))
                      for seed in range(5)]  # fmt: skip
    for run in data["points"]:
        slow = 3.0 if run["mapping"] == "arbitrary" else 1.0 if run["seed"] else 1.1
        best = 470.0 if run["pool_batches"] == 8 and run["seed"] == 0 else 480.0
        run["curve"] = {"seconds": [0.0, slow], "steps": [0, 1000], "return": [20.0, best]}
    said = ours("tianji-6d", data)
    assert "planned mapping with fresh batches 1 s [1, 1.1] (5 of 5 runs reach it)" in said
    assert "with stale ones 1 s [1, never] (4 of 5 runs reach it)" in said
    assert "Planned against arbitrary: the first is sooner (probability" in said
    assert "Fresh against stale batches: no difference can be claimed" in said


def test_the_equation_is_held_against_points_that_nothing_was_fitted_on():
    said = ours("equation-1", equation_data())
    assert "Of 2 settings" in said
    assert "off by 30 % in the median and 50 % at most" in said
    assert "cores by 5 % and 10 %" in said
    assert "up to 4.0 times the measured time" in said


def test_ratios_have_as_many_digits_as_they_need():
    assert [times(ratio) for ratio in (0.584, 3.04, 23.8)] == [
        "0.58 times",
        "3.0 times",
        "24 times",
    ]
