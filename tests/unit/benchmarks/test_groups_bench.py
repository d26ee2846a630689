"""Groups against unconnected copies: what is compared with what, and what must be reached."""

from benchmarks.groups import bench
from tianji.figures.groups.runs import WIDE


def point(combine, received, *, groups=2, seed=1, task="cartpole-ppo"):
    rates = {"received": received, "trained": 3 * received}
    return {
        "preset": task, "groups": groups, "combine": combine, "seed": seed, "rates": rates,
        "time_to_target_s": 1.0,
    }  # fmt: skip


def data(points, copies, simulated=()):
    return {"points": points, "copies": copies, "simulated_here": simulated, "target": 300.0}


def test_a_run_is_compared_with_the_copies_of_its_own_turn_and_size():
    copies = [
        point("copies", 100.0, seed=1),
        point("copies", 50.0, seed=2),
        point("copies", 10.0, seed=2, groups=4),
    ]
    found = data([], copies)
    one, later = point("gossip", 45.0, seed=2), point("gossip", 45.0, seed=3)
    assert bench.over_copies(found, one, "rates", "received") == 0.9
    assert bench.over_copies(found, later, "rates", "received") is None


def test_older_files_say_nothing_of_the_learners_work(capsys):
    copies, one = [point("copies", 100.0)], point("gossip", 95.0)
    assert bench.over_copies(data([], copies), one, "learners", "update_ms") is None
    one["learners"] = {"update_ms": 1.5}
    assert bench.over_copies(data([], copies), one, "learners", "update_ms") is None
    copies[0]["learners"] = {"update_ms": 1.0}
    assert bench.show(data([one], copies))
    assert "1.50 (1.50-1.50)" in capsys.readouterr().out


def test_a_turn_without_copies_is_left_out(capsys):
    copies = [point("copies", 100.0, seed=1)]
    turns = [point("gossip", 85.0, seed=1), point("gossip", 500.0, seed=2)]
    assert not bench.show(data(turns, copies))
    assert "0.85 (0.85-0.85)" in capsys.readouterr().out


def test_mixing_must_reach_nine_tenths_and_gradients_only_with_a_wide_network(capsys):
    copies = [point("copies", 100.0), point("copies", 100.0, task=WIDE)]
    slow = [point("gradients", 20.0), point("gradients", 85.0, task=WIDE), point("average", 95.0)]
    assert bench.show(data(slow, copies))
    assert not bench.show(data([point("average", 85.0)], copies))
    assert "must be 0.9" in capsys.readouterr().out
    assert not bench.show(data([point("gradients", 75.0, task=WIDE)], copies))


def test_the_simulation_is_held_against_the_runs_of_its_own_turn_and_setting(capsys):
    setting = {"preset": "cartpole-ppo", "groups": 2, "combine": "average"}
    simulated = [
        {**setting, "seed": seed, "received": rate} for seed, rate in enumerate((100, 300, 480), 1)
    ]
    simulated += [{**row, "groups": 4, "received": 1.0} for row in simulated]
    points = [point("average", rate, seed=seed) for seed, rate in enumerate((200, 100, 400), 1)]
    copies = [point("copies", 100.0, seed=seed) for seed in (1, 2, 3)]
    assert not bench.show(data(points, copies, simulated))
    assert "simulated over real 1.20" in capsys.readouterr().out
