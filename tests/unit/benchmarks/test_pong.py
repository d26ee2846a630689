"""The yardsticks of Pong: their arithmetic, the serial loop on a fake game, and the quick forms."""

from __future__ import annotations

import json
import math
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("ale_py", reason="the extra `atari` is not installed")

from benchmarks.pong import (
    bare,
    cpu_peers,
    learner_alone,
    pairs,
    serial_loop,
    server,
    styles,
    version,
)
from benchmarks.pong.ppo import FRAMES, PPO, Settings, advantages
from benchmarks.pong.serial_loop import Progress, SerialLoop, train

SMALL = Settings(num_envs=4, num_steps=8, epochs=2, minibatch=16, learning_rate=2e-3)
FEW_UPDATES = Settings(num_envs=4, num_steps=8, epochs=1, minibatch=32)
GOOD_ACTION = 2


class FakeGames:
    """Games of 5 steps: 3 points for each good action, 3 points lost for any other."""

    def __init__(self, num_envs: int, _num_threads: int = 1) -> None:
        random = np.random.default_rng(1)
        self._frames = random.integers(0, 256, (num_envs, *FRAMES), dtype=np.uint8)
        self._steps = 0
        self.actions: list[np.ndarray] = []

    def reset(self, *, seed=None):
        return self._frames, {}

    def step(self, actions):
        self._steps += 1
        self.actions.append(actions)
        reward = np.where(actions == GOOD_ACTION, 3, -3).astype(np.int32)
        ended = np.full(len(actions), self._steps % 5 == 0)
        return self._frames, reward, ended, np.zeros_like(ended), {}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    yield
    torch.set_num_threads(before)


def arguments(folder: Path, **changed) -> Namespace:
    usual = {"device": "cpu", "seed": 1, "threads": 1, "target": math.inf, "max_s": 600.0}
    return Namespace(**{**usual, "max_env_steps": 64, "folder": folder, **changed})


def test_advantages_follow_the_literal_formula():
    random = np.random.default_rng(3)
    reward = random.normal(size=(6, 2)).astype(np.float32)
    value = random.normal(size=(7, 2)).astype(np.float32)
    ended = random.random((6, 2)) < 0.3
    gamma, lam = 0.9, 0.8
    expected = np.zeros((6, 2))
    for env in range(2):
        for t in range(6):
            weight = 1.0
            for k in range(t, 6):
                going_on = 0.0 if ended[k, env] else 1.0
                delta = reward[k, env] + gamma * going_on * value[k + 1, env] - value[k, env]
                expected[t, env] += weight * delta
                weight *= gamma * lam * going_on
    np.testing.assert_allclose(
        advantages(reward, ended, value, gamma, lam), expected, rtol=1e-5, atol=1e-6
    )


def test_the_loop_learns_which_action_is_rewarded():
    games = FakeGames(SMALL.num_envs)
    ppo = PPO(SMALL, num_actions=6, device=torch.device("cpu"))
    loop = SerialLoop(ppo, games, seed=1, progress=Progress(), target=math.inf)
    for _ in range(12):
        loop.iterate()
    assert np.mean(np.array(games.actions[:16]) == GOOD_ACTION) < 0.4
    assert np.mean(np.array(games.actions[-16:]) == GOOD_ACTION) > 0.6


def test_the_target_counts_raw_scores_of_100_full_games():
    games = FakeGames(FEW_UPDATES.num_envs)
    ppo = PPO(FEW_UPDATES, num_actions=6, device=torch.device("cpu"))
    loop = SerialLoop(ppo, games, seed=1, progress=Progress(), target=-14.9)
    while not loop.is_done:
        loop.iterate()
    progress = loop.progress
    assert progress.games == 100
    assert progress.env_steps == progress.steps_to_target == 500  # 5 steps each, in 4 environments
    scores = 3.0 * np.where(np.array(games.actions) == GOOD_ACTION, 1, -1)
    assert progress.mean_return_100 == pytest.approx(scores.sum() / 100)
    assert progress.time_to_target_s == pytest.approx(progress.elapsed_s, abs=0.1)


def test_the_same_command_continues_from_its_checkpoint(tmp_path):
    first = train(arguments(tmp_path), SMALL, FakeGames)
    second = train(arguments(tmp_path, max_env_steps=128), SMALL, FakeGames)
    assert (first.env_steps, second.env_steps) == (64, 128)
    assert (first.commands, second.commands) == (1, 2)
    assert list(second.scores)[: first.games] == list(first.scores)
    lines = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    assert [line["env_steps"] for line in lines] == [32, 64, 96, 128]
    times = [line["time_s"] for line in lines]
    assert times == sorted(times)
    saved = torch.load(tmp_path / "checkpoint.pt")
    assert saved["optimiser"]["state"][0]["step"] == 4 * 2 * 2  # iterations, epochs, minibatches


def test_a_run_that_reached_its_target_is_not_continued(tmp_path):
    args = arguments(tmp_path, target=-16.0, max_env_steps=10_000)
    reached = train(args, FEW_UPDATES, FakeGames)
    assert reached.time_to_target_s is not None
    assert train(args, FEW_UPDATES, FakeGames) == reached


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    train(arguments(tmp_path), SMALL, FakeGames)
    with pytest.raises(SystemExit, match="other settings or another seed"):
        train(arguments(tmp_path, seed=2), SMALL, FakeGames)


def test_layouts_are_written_as_they_are_read():
    layout = bare.Layout.parse("2x1x64x16")
    assert layout == bare.Layout(processes=2, groups=1, envs=64, threads=16)
    assert str(layout) == "2x1x64x16"


def test_busy_time_counts_overlapping_kernels_once():
    assert learner_alone.covered([(5.0, 6.0), (0.0, 2.0), (1.0, 3.0), (1.5, 2.5)]) == 4.0


def test_the_rate_leaves_out_the_first_iteration():
    assert cpu_peers.rate([(3.0, 100), (4.0, 150), (5.0, 300)]) == 100.0
    assert cpu_peers.rate([(3.0, 100)]) is None


def test_a_turn_that_failed_counts_as_no_steps():
    assert cpu_peers.median_rate([None, 100.0, 300.0]) == 100.0
    assert cpu_peers.median_rate([None, None, 300.0]) == 0.0


@pytest.mark.parametrize("yardstick", [bare, serial_loop, learner_alone, server, version])
def test_the_quick_form_prints_its_table(yardstick, capfd):
    assert yardstick.main(["--quick"]) == 0
    assert "| --" in capfd.readouterr().out.replace("|--", "| --")


@pytest.mark.slow
def test_every_style_trains_in_the_quick_form(capfd):
    assert styles.main(["--quick"]) == 0
    out = capfd.readouterr().out
    assert all(f"| {style} " in out for style in styles.STYLES)


def test_what_a_folder_of_styles_has_is_not_trained_again(tmp_path, monkeypatch, capfd):
    trained = []

    def train(style, seed, args):
        trained.append((style, seed))
        summary = {"env_steps": 1000, "mean_return_100": -20.5, "best_mean_return_100": None,
                   "lag_versions": {"mean": 1.0}}  # fmt: skip
        return {
            "style": style,
            "seed": seed,
            "minutes": 8.0,
            "cores": 5,
            "summary": summary,
            "settled": None,
        }

    monkeypatch.setattr(styles, "train", train)
    words = ["--folder", str(tmp_path / "kept"), "--out", str(tmp_path / "report.json"), "--styles"]
    assert styles.main([*words, "seed", "--seeds", "1"]) == 0
    assert styles.main([*words, "seed", "apex", "--seeds", "1", "2"]) == 0
    assert trained == [("seed", 1), ("apex", 1), ("seed", 2), ("apex", 2)]
    assert capfd.readouterr().out.count("| apex ") == 2


@pytest.mark.slow
def test_the_quick_comparison_on_the_cpu_has_us_and_the_bound(capfd):
    assert cpu_peers.main(["--quick", "--contestants", "tianji"]) == 0
    out = capfd.readouterr().out
    assert "| tianji " in out
    assert "| bound " in out


def run_of(time_s, steps):
    return {"time_to_target_s": time_s, "steps_to_target": steps, "steps_per_s": 1.0}


def test_pairs_of_runs_that_have_ended_are_not_made_again(tmp_path, capfd):
    found = {"serial-1": (200, 2.0e6), "tianji-1": (80, 2.2e6), "serial-2": (100, 2.0e6),
             "tianji-2": (50, 2.4e6), "tianji-3": (50, 1.0e6)}  # fmt: skip
    for name, (time_s, steps) in found.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(run_of(time_s, steps)))
    out = tmp_path / "out" / "report"
    assert pairs.main(["--folder", str(tmp_path), "--seeds", "1", "2", "--out", str(out)]) == 0
    shown = capfd.readouterr().out
    assert "time_to_target_s, ours over serial, geometric mean of 2 pairs: 0.447" in shown
    assert "steps_to_target, ours over serial, geometric mean of 2 pairs: 1.15" in shown
