"""`tianji simulate` for algorithms that gather gradients."""

import json
import subprocess
import sys

import pytest

from tianji.cli.main import main


def simulate(capfd, *words):
    code = main(["simulate", *words, "--json"])
    shown = capfd.readouterr()
    assert shown.out.count("\n") == 1
    return code, json.loads(shown.out), shown.err


def test_one_round_of_rennala_in_given_times(capfd):
    words = ("rennala-nigt", "--times", "1,3,7", "--m", "12", "--rounds", "1")
    code, report, table = simulate(capfd, *words)
    assert code == 0
    assert (report["finish_s"], report["counts"], report["discarded"]) == (9.0, [9, 2, 1], 2)
    assert (report["gradients"], report["rounds"], report["actors"]) == (12, 1, 3)
    assert report["gradients_per_s"] == pytest.approx(12 / 9)
    assert "first 12 gradients" in table
    assert "1 round in 9 s" in table
    assert "75 %" in table


def test_the_first_round_may_be_larger(capfd):
    words = ("rennala-nigt", "--times", "1", "--m", "2", "--m-init", "5", "--rounds", "3")
    _, report, table = simulate(capfd, *words)
    assert report["finish_s"] == 9.0
    assert "; 5 in the first." in table


@pytest.mark.parametrize(
    ("preset", "finish_s"),
    [("rennala-nigt", 2 * 5.0), ("malenia-nigt", 2 * 6.0), ("rennala-pg", 2 * 5.0)],
)
def test_laws_are_understood_by_name(capfd, preset, finish_s):
    words = ("--times", "sqrt", "--actors", "10", "--m", "20", "--rounds", "2")
    _, report, _ = simulate(capfd, preset, *words)
    assert report["finish_s"] == finish_s
    assert report["law"] == "sqrt"


def test_messages_take_time(capfd):
    words = ("--times", "1,3", "--network", "4,1", "--rounds", "2")
    assert simulate(capfd, "sync-nigt", *words)[1]["finish_s"] == 10.0
    _, report, table = simulate(capfd, "afedpg", *words)
    assert (report["finish_s"], report["counts"]) == (5.0, [1, 1])
    assert "our reconstruction" in table


def test_the_settings_of_a_run_count_too(capfd):
    words = ("--times.law", "straggler", "--times.slowest", "9", "--times.unit-s", "0.5")
    _, report, _ = simulate(capfd, "sync-nigt", *words, "--num-actors", "4", "--rounds", "1")
    assert (report["finish_s"], report["actors"]) == (4.5, 4)


def test_without_times_all_gradients_take_one_second(capfd):
    _, report, _ = simulate(capfd, "sync-nigt", "--actors", "7", "--rounds", "3")
    assert (report["finish_s"], report["counts"]) == (3.0, [3] * 7)


def test_the_size_of_the_model_is_given_or_counted(capfd):
    words = ("rennala-nigt", "--times", "1", "--network", "sqrt-size", "--m", "1", "--rounds", "1")
    assert simulate(capfd, *words, "--parameters", "10000")[1]["finish_s"] == 1.0 + 10.0
    _, report, _ = simulate(capfd, *words)  # CartPole: 4 x 64 + 64, 64 x 64 + 64, 64 x 2 + 2
    assert report["finish_s"] == pytest.approx(1.0 + 4610**0.25)


def test_the_model_is_that_of_a_list_of_environments(capfd):
    words = (
        "malenia-nigt",
        "--envs",
        "Acrobot-v1,Acrobot-v1",
        "--network",
        "sqrt-size",
        "--m",
        "1",
    )
    _, report, _ = simulate(capfd, *words, "--times", "1", "--rounds", "1", "--num-actors", "2")
    parameters = 6 * 64 + 64 + 64 * 64 + 64 + 64 * 3 + 3
    assert report["finish_s"] == pytest.approx(1.0 + parameters**0.25)


def test_thousands_of_actors_are_shown_in_part(capfd):
    _, report, table = simulate(
        capfd, "rennala-nigt", "--times", "sqrt", "--actors", "2000", "--rounds", "5"
    )
    assert len(report["counts"]) == 2000
    assert "..." in table
    assert " 1999 " in table
    assert " 1000 " not in table


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("rennala-nigt", "--times", "1,-3"), "--times = 1,-3: must be one number"),
        (("rennala-nigt", "--times", "soon"), "equal, sqrt, straggler"),
        (("rennala-nigt", "--network", "1,-3"), "greater than or equal to 0: '-3'"),
        (("rennala-nigt", "--times", "1,3", "--actors", "3"), "2 numbers, but there are 3 actors"),
        (("rennala-nigt", "--nodes", "2"), "--nodes has no effect with rennala-nigt"),
        (("cartpole-ppo", "--times", "1,3"), "--times-actor-s"),
        (("cartpole-ppo", "--rounds", "3"), "--rounds has no effect with ppo"),
        (("sync-nigt", "--m", "3"), "--m"),
    ],
)
def test_a_mistake_is_told(capfd, words, text):
    code, report, _ = simulate(capfd, *words)
    assert code == 2
    assert text in report["error"]


def test_nothing_is_imported_that_computes():
    words = ["simulate", "rennala-nigt", "--times", "1,3,7", "--rounds", "1"]
    check = f"from tianji.cli.main import main; main({words}); import sys; "
    code = check + "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
