"""Loading, evaluating, filming and exporting a trained policy."""

import importlib.util
import json
import sys

import gymnasium as gym
import imageio_ffmpeg
import numpy as np
import onnx
import pytest
import torch

import tianji
from tests.fakes import small_envs
from tests.fakes.linear import Linear
from tianji.checkpoint.save import rotate, write_checkpoint
from tianji.checkpoint.schema import Snapshot
from tianji.cli.main import main
from tianji.config.files import save_config
from tianji.config.run import RunConfig
from tianji.envs.build import build_world
from tianji.envs.interface import Spaces
from tianji.envs.single import SingleWorld
from tianji.errors import CheckpointError, TianjiError, UsageError
from tianji.evaluator.play import play_episodes
from tianji.trained.evaluate import evaluate_run
from tianji.trained.export import export_run
from tianji.trained.policy import load_policy

ARM = "tests.fakes.small_envs:Arm"
ENDLESS = "tests.fakes.small_envs:Endless"
LIMIT = 100

SPACES = {
    "CartPole-v1": gym.make("CartPole-v1"),
    "tests.fakes.small_envs:Countdown": small_envs.Countdown,
    ARM: small_envs.Arm,
    "tests.fakes.small_envs:FromOne": small_envs.FromOne,
    ENDLESS: small_envs.Endless,
}


@pytest.fixture
def make_run(tmp_path):
    """A folder as training leaves it: config.yaml and checkpoints with random weights."""

    def make(env, returns=(1.0,), **algorithm):
        config = RunConfig(env=env, algorithm={"name": "tests.fakes.linear:ALGORITHM", **algorithm})
        save_config(config, tmp_path / "config.yaml")
        spaces = Spaces(SPACES[env].observation_space, SPACES[env].action_space)
        for version, mean_return in enumerate(returns, 1):
            torch.manual_seed(version)
            facts = {"mean_return_100": mean_return}
            snapshot = Snapshot(version, Linear(spaces).state_dict(), {"x": 1}, facts)
            write_checkpoint(tmp_path, snapshot)
        rotate(tmp_path, 3)
        return tmp_path

    return make


def test_the_best_checkpoint_is_loaded_unless_another_is_named(make_run):
    run = make_run("CartPole-v1", returns=(5.0, 9.0, 7.0))
    assert load_policy(run).version == 2
    assert load_policy(run, "latest").version == 3
    assert load_policy(run, "v00000001").version == 1
    assert load_policy(run).config.env == "CartPole-v1"


def test_a_policy_acts_on_one_observation_and_on_a_batch(make_run):
    policy = load_policy(make_run("CartPole-v1"))
    batch = np.random.default_rng(0).normal(size=(50, 4))
    actions = policy.act(batch)
    assert actions.shape == (50,) and set(actions) == {0, 1}
    assert [policy.act(obs) for obs in batch] == list(actions)
    assert gym.make("CartPole-v1").action_space.contains(policy.act(batch[0]))


def test_a_policy_acts_on_dictionaries(make_run):
    policy = load_policy(make_run(ARM))
    space = small_envs.Arm.observation_space
    one = space.sample()
    batch = {key: np.stack([value, value]) for key, value in one.items()}
    assert policy.act(one).shape == (2,) and policy.act(one).dtype == np.float32
    np.testing.assert_allclose(policy.act(batch), np.stack([policy.act(one)] * 2), rtol=1e-5)


def test_actions_are_those_of_the_environment_where_they_do_not_begin_at_zero(make_run):
    policy = load_policy(make_run("tests.fakes.small_envs:FromOne"))
    assert set(policy.act(np.random.default_rng(0).normal(size=(50, 2)))) == {1, 2}


@pytest.mark.parametrize("wrong", [np.zeros(3), np.zeros((2, 2, 4)), 0.0], ids=["3", "2x2x4", "0"])
def test_an_observation_of_another_shape_is_refused_in_words(make_run, wrong):
    policy = load_policy(make_run("CartPole-v1"))
    with pytest.raises(UsageError, match=r"this policy takes \(4,\), or a batch of them"):
        policy.act(wrong)


def test_a_missing_entry_of_a_dictionary_is_named(make_run):
    policy = load_policy(make_run(ARM))
    with pytest.raises(UsageError, match="no entry 'angle'"):
        policy.act({"camera": np.zeros((4, 4, 3), np.uint8)})


def test_weights_that_do_not_fit_the_network_are_refused(make_run):
    run = make_run("CartPole-v1")
    write_checkpoint(run, Snapshot(9, {"layer.weight": torch.ones(3, 3)}))
    with pytest.raises(CheckpointError, match=r"v00000009 does not fit the network"):
        load_policy(run, "latest")


@pytest.mark.parametrize("num_envs", [1, 4, 7])
def test_short_episodes_are_not_favoured_and_the_number_is_exact(num_envs):
    small_envs.Countdown.made = 0
    world = build_world("tests.fakes.small_envs:Countdown", {}, num_envs)
    played = play_episodes(lambda obs, _: np.zeros(num_envs, int), world, 30, 0, LIMIT)
    shares = [len(share) for share in np.array_split(np.arange(30), num_envs)]
    assert played.lengths == [
        2 if i % 2 == 0 else 9 for i in range(num_envs) for _ in range(shares[i])
    ]
    assert played.returns == [float(length) for length in played.lengths]


def test_the_policy_sees_every_observation_in_turn():
    small_envs.Countdown.made = 0
    seen = []

    def greedy(obs, is_first):
        seen.append(float(obs["obs"][0, 0]))
        return np.zeros(1, int)

    play_episodes(greedy, build_world("tests.fakes.small_envs:Countdown", {}, 1), 2, 0, LIMIT)
    assert seen == [2.0, 1.0, 0.0, 2.0, 1.0], "the third is only a reset"


def test_rows_that_are_not_valid_count_for_nothing():
    class Noisy(SingleWorld):
        def recv(self, unroll, t):
            super().recv(unroll, t)
            unroll["reward"][t][~unroll["valid"][t]] = 100.0
            unroll["terminated"][t][~unroll["valid"][t]] = True

    small_envs.Countdown.made = 0
    played = play_episodes(
        lambda obs, _: np.zeros(1, int), Noisy([small_envs.Countdown()]), 3, 0, LIMIT
    )
    assert (played.returns, played.lengths) == ([2.0, 2.0, 2.0], [2, 2, 2])


@pytest.mark.parametrize("num_envs", [1, 2, 3])
def test_episodes_that_never_end_are_cut(num_envs):
    world = build_world(ENDLESS, {}, num_envs)
    played = play_episodes(lambda obs, _: np.zeros(num_envs, int), world, 3, 0, LIMIT)
    assert played == ([float(LIMIT)] * 3, [LIMIT] * 3, 3)


def test_an_environment_whose_episode_is_cut_waits_for_the_others():
    """One of the two has episodes of 2 steps, the other of 9, of which 5 are played."""
    small_envs.Countdown.made = 0
    world = build_world("tests.fakes.small_envs:Countdown", {}, 2)
    played = play_episodes(lambda obs, _: np.zeros(2, int), world, 6, 0, cut_after_steps=5)
    assert (played.lengths, played.num_cut) == ([2, 2, 2, 5, 5, 5], 3)


def test_an_episode_that_ends_at_the_limit_is_whole():
    small_envs.Countdown.made = 0
    world = build_world("tests.fakes.small_envs:Countdown", {}, 1)
    assert play_episodes(lambda obs, _: np.zeros(1, int), world, 2, 0, 2) == ([2.0, 2.0], [2, 2], 0)


def test_an_evaluation_without_a_time_limit_ends_and_says_so(make_run, tmp_path):
    path = tmp_path / "film.mp4"
    report = evaluate_run(make_run(ENDLESS), 2, seed=0, video=path, cut_after_steps=7)
    assert (report["cut_episodes"], report["cut_after_steps"]) == (2, 7)
    assert report["lengths"] == [7, 7]
    assert imageio_ffmpeg.count_frames_and_secs(str(path))[0] == 8
    assert load_policy(tmp_path).config.evaluate.cut_after_steps == 27_000


def test_an_evaluation_reports_mean_and_spread_as_json(make_run):
    report = evaluate_run(make_run("CartPole-v1", returns=(3.0, 1.0)), 5, seed=3)
    assert len(report["returns"]) == report["episodes"] == 5
    assert report["mean"] == pytest.approx(np.mean(report["returns"]))
    assert report["std"] == pytest.approx(np.std(report["returns"]))
    assert report["min"] <= report["median"] <= report["max"]
    assert report["checkpoint"] == "v00000001" and report["video"] is None
    assert json.loads(json.dumps(report)) == report


def test_the_same_seed_gives_the_same_episodes(make_run):
    run = make_run("CartPole-v1")
    assert evaluate_run(run, 4, seed=3) == evaluate_run(run, 4, seed=3)
    assert evaluate_run(run, 4, seed=3) != evaluate_run(run, 4, seed=4)


def test_an_environment_with_a_dictionary_of_observations_is_evaluated(make_run):
    report = evaluate_run(make_run(ARM), 3, seed=0)
    assert report["returns"] == [2.5, 2.5, 2.5]


@pytest.mark.parametrize("env", ["CartPole-v1", "tests.fakes.small_envs:Countdown"])
def test_a_video_shows_one_episode_from_its_first_frame_to_its_last(make_run, tmp_path, env):
    small_envs.Countdown.made = 0
    path = tmp_path / "films" / "episode.mp4"
    report = evaluate_run(make_run(env), 1, seed=0, video=path)
    assert report["video"] == str(path)
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(path))
    if env == "CartPole-v1":
        assert frames == report["lengths"][0] + 1
    assert seconds > 0


def test_an_environment_that_cannot_be_drawn_is_said_so(make_run, tmp_path):
    with pytest.raises(UsageError, match="must take render_mode='rgb_array'"):
        evaluate_run(make_run(ARM), 1, seed=0, video=tmp_path / "film.mp4")


def test_a_missing_video_extra_is_found_before_any_episode(make_run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(UsageError, match=r"pip install 'tianji\[video\]'"):
        evaluate_run(tmp_path / "no run", 1, seed=0, video=tmp_path / "film.mp4")


@pytest.mark.parametrize("env", ["CartPole-v1", ARM, "tests.fakes.small_envs:FromOne"])
def test_an_exported_policy_acts_as_the_policy_does(make_run, env):
    run = make_run(env)
    report = export_run(run)
    assert report["output"] == str(run / "policy.onnx") and report["max_difference"] < 1e-4
    names = [entry.name for entry in onnx.load(run / "policy.onnx").graph.input]
    assert names == list(report["inputs"])
    assert names == (["obs.angle", "obs.camera"] if env == ARM else ["obs"])
    assert not list(run.glob("*draft*"))


def test_an_export_that_acts_differently_is_not_kept(make_run):
    run = make_run("CartPole-v1", wrong_export=True)
    with pytest.raises(TianjiError, match="differs from the policy"):
        export_run(run)
    assert not list(run.glob("*.onnx*"))


def test_a_missing_export_extra_is_named(make_run, monkeypatch):
    run = make_run("CartPole-v1")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name != "onnxruntime" or None)
    with pytest.raises(UsageError, match=r"needs onnxruntime.*pip install 'tianji\[export\]'"):
        export_run(run)


def damage(run, version):
    (run / "checkpoints" / f"v{version:08d}" / "weights.safetensors").write_bytes(b"torn")


DAMAGED = [
    ([3], "best", 1, 2),  # the best is the newest
    ([3], "3", 1, None),
    ([3], "latest", 1, 2),
    ([3, 2], "best", 1, 1),
    ([2], "latest", 0, 3),
    ([3], "v00000002", 0, 2),
    ([1, 2, 3], "best", 1, None),
]
EVALUATED = [("eval", *case) for case in DAMAGED]
EXPORTED = [("export", *case) for case in DAMAGED]
SLOW = [pytest.param(*case, marks=pytest.mark.slow) for case in EXPORTED[2:]]


@pytest.mark.parametrize(
    ("verb", "damaged", "asked", "code", "used"), [*EVALUATED, *EXPORTED[:2], *SLOW]
)
def test_a_damaged_checkpoint_gives_way_to_the_newest_sound_one_and_an_exit_code(
    make_run, capfd, verb, damaged, asked, code, used
):
    run = make_run("CartPole-v1", returns=(5.0, 7.0, 9.0))
    for version in damaged:
        damage(run, version)
    episodes = ["--episodes", "1"] if verb == "eval" else []
    words = [verb, str(run), *episodes, "--checkpoint", asked, "--json"]
    assert main(words) == code
    out, err = capfd.readouterr()
    report = json.loads(out)
    if used is None:
        assert "checksum mismatch" in report["error"]
        return
    assert report["version"] == used
    assert bool(report["note"]) == bool(code) == ("Warning: " in err)
    assert not code or f"The newest valid checkpoint is used instead: v{used:08d}." in err


def test_loading_warns_where_it_is_not_the_policy_that_was_asked_for(make_run):
    run = make_run("CartPole-v1", returns=(5.0, 7.0))
    damage(run, 2)
    with pytest.warns(UserWarning, match="used instead: v00000001"):
        assert tianji.load(run).version == 1


def test_a_policy_is_shown_in_one_short_line(make_run):
    run_dir = make_run("CartPole-v1")
    shown = repr(load_policy(run_dir))
    assert shown.startswith("<LoadedPolicy tests.fakes.linear:ALGORITHM on CartPole-v1, ")
    assert shown.endswith(f"{run_dir}/checkpoints/v00000001>")
