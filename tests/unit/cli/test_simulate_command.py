"""`tianji simulate`: options, costs by hand, what is printed."""

import json

import pytest

from tianji.cli.main import main

HAND = ("--times-actor-s", "0.02", "--times-learner-s", "0.01")


def simulate(capfd, *words):
    code = main(["simulate", *words, "--json"])
    shown = capfd.readouterr()
    assert shown.out.count("\n") == 1
    return code, json.loads(shown.out), shown.err


def test_it_prints_rates_and_lag_in_one_line(capfd):
    code, report, table = simulate(capfd, "cartpole-ppo", *HAND, "--num-actors", "1")
    assert code == 0
    num_steps = report["envs_per_actor"] * 32
    assert report["produced"] == pytest.approx(num_steps / 0.02, rel=0.1)
    assert {"received", "trained", "lag_versions", "bottleneck", "wall_s"} <= report.keys()
    assert report["bottleneck"] == "sampling"
    assert "sampling" in table


def test_more_actors_move_the_limit_to_the_learner(capfd):
    words = ("cartpole-ppo", *HAND, "--num-actors", "1", "--cores-per-node", "9")
    _, report, _ = simulate(capfd, *words, "--actors-per-node", "4")
    assert report["bottleneck"] == "training"
    assert report["lag_versions"] == pytest.approx(1.0, abs=0.1)


def test_every_setting_of_a_run_is_understood(capfd):
    words = ("cartpole-ppo", *HAND, "--num-envs", "16", "--num-actors=2", "--max-lag", "0")
    _, report, _ = simulate(capfd, *words)
    assert (report["actors_per_node"], report["envs_per_actor"]) == (2, 8)
    assert report["lag_versions"] == 0


def test_several_machines_have_a_core_for_every_process(capfd):
    words = (*HAND, "--nodes", "3", "--actors-per-node", "6", "--versions", "10")
    _, report, _ = simulate(capfd, *words)
    assert report["cores_per_node"] >= 6 + 1 + 1
    assert report["versions"] == 10


def test_a_slow_network_holds_the_learner_up(capfd):
    words = (*HAND, "--nodes", "3", "--actors-per-node", "2", "--versions", "10")
    fast, slow = (
        simulate(capfd, *words, "--bandwidth-mb-s", speed)[1] for speed in ("1000", "0.5")
    )
    assert slow["bottleneck"] == "communication"
    assert slow["received"] < fast["received"] / 2


def test_the_picture_shows_every_scale(capfd, tmp_path):
    path = tmp_path / "scale.png"
    _, report, _ = simulate(capfd, *HAND, "--nodes", "4", "--output", str(path))
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [row["nodes"] for row in report["scale"]] == [1, 2, 4]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--nodes", "0"), "--nodes = 0: must be greater than or equal to 1"),
        (("--nodes",), "'--nodes' needs a value"),
        (("--times-actor-s", "1"), "belong together"),
        ((*HAND, "--output", "nowhere/at/all.png"), "there is no folder"),
        ((*HAND, "--actors", "3"), "--actors"),
        ((*HAND, "--groups", "2", "--num-groups", "2"), "exclude each other"),
        ((*HAND, "--nodes", "5", "--num-groups", "2"), "cannot be shared evenly"),
        ((*HAND, "--link-gbit", "1", "--bandwidth-mb-s", "1"), "say the same"),
        ((*HAND, "--nodes", "2", "--actor-hosts", "1"), "Leave out --nodes"),
        ((*HAND, "--link-gbit", "0"), "--link-gbit = 0: must be greater than 0"),
    ],
)
def test_a_mistake_is_told(capfd, words, text):
    code, report, _ = simulate(capfd, *words)
    assert code == 2
    assert text in report["error"]


def test_help_names_the_options(capfd):
    code, report, _ = simulate(capfd, "--help")
    assert code == 0
    assert "--actors-per-node" in report["help"]


def test_a_free_balance_is_not_simulated(capfd):
    assert main(["simulate", "cartpole-apex", *HAND]) == 2
    assert "--balance paced" in " ".join(capfd.readouterr().err.split())


def test_groups_share_machines(capfd):
    words = ("cartpole-ppo", *HAND, "--num-actors", "1", "--combine", "average")
    _, one, _ = simulate(capfd, *words)
    _, four, table = simulate(capfd, *words, "--num-groups", "4", "--nodes", "4")
    assert four["received"] == pytest.approx(4 * one["received"], rel=0.05)
    assert (four["num_groups"], four["num_hosts"], four["combine"]) == (4, 4, "average")
    assert four["bytes_per_s"]["parameters"] > 0
    assert "groups" in table and "A group mixes in new parameters" in table


def test_a_slow_link_holds_up_groups_that_add_up_gradients(capfd):
    words = ("cartpole-ppo", *HAND, "--num-actors", "1", "--num-groups", "4", "--nodes", "4")
    fast, slow = (simulate(capfd, *words, "--link-ms", ms)[1] for ms in ("0.001", "20"))
    assert slow["received"] < fast["received"] / 2
    assert slow["bottleneck"] == "communication"
    assert slow["busy_share"]["combining"] > 0.5


def test_the_picture_of_groups_shows_every_number_of_machines(capfd, tmp_path):
    path = tmp_path / "scale.png"
    words = (*HAND, "--nodes", "4", "--num-groups", "4", "--output", str(path))
    _, report, _ = simulate(capfd, *words)
    assert [row["num_hosts"] for row in report["scale"]] == [1, 2, 4]
    assert path.read_bytes().startswith(b"\x89PNG")


def test_actors_on_other_machines_send_items(capfd):
    words = ("cartpole-ppo", *HAND, "--num-actors", "1", "--actor-hosts", "1", "--num-groups", "2")
    _, report, _ = simulate(capfd, *words, "--combine", "gossip")
    assert (report["num_hosts"], report["nodes"], report["num_groups"]) == (4, 2, 2)
    assert report["bytes_per_s"]["items"] > 0
