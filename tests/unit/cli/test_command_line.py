"""Exit codes, and who reads what: programs standard output, people standard error."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tianji.cli.main import main
from tianji.cli.pages.closing import show_closing
from tianji.cli.pages.tables import in_lines
from tianji.config.files import save_config
from tianji.config.overrides import make_config
from tianji.config.run import RunConfig
from tianji.errors import TianjiError
from tianji.records import NOTHING_DONE

SUMMARY: dict[str, Any] = {
    **NOTHING_DONE,
    "stopped_because": "target_reached",
    "run_dir": "runs/one",
    "env": "CartPole-v1",
    "target_return": 475.0,
    "mean_return_100": 480.25,
    "time_to_target_s": 3.2,
    "wall_s": 3.5,
    "engine": "local",
    "env_steps": 41000,
    "updates": 3200,
    "checkpoint": "runs/one/checkpoints/v00000160",
}

WITHOUT_EVIDENCE = "cartpole-a3c"
"""A preset that is not in the zoo, so that nothing is said before it runs."""


def python(code: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stand_in(monkeypatch: pytest.MonkeyPatch, module: str, **functions: Any) -> None:
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(**functions))


@pytest.mark.parametrize(
    "line",
    [
        "train --gama 1",
        "train no-such-preset",
        "resume",
        "resume no-such-run",
        "status",
        "status no-such-run",
        "eval no-such-run",
        "eval",
        "eval x --episodes 0",
        "eval x --episods 3",
        "export no-such-run",
        "no-such-verb",
    ],
)
def test_bad_input_is_2_with_one_json_object(
    line: str, in_tmp: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*line.split(), "--json"]) == 2
    out, err = capfd.readouterr()
    report = json.loads(out)
    assert out.count("\n") == 1
    assert report["exit_code"] == 2
    assert report["error"].split("\n")[0] in err
    assert "Traceback" not in err
    assert list(in_tmp.iterdir()) == []


def test_without_json_standard_output_stays_empty(
    in_tmp: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--gama", "1"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "Did you mean '--gamma'?" in err


def test_a_real_process_agrees(tmp_path: Path) -> None:
    code = "import sys; from tianji.cli.main import main; sys.exit(main())"
    done = python(code, "train", "--json", "--gamma", "7", "--seed=-1", cwd=tmp_path)
    assert done.returncode == 2
    assert json.loads(done.stdout)["exit_code"] == 2
    assert "2 mistakes" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_help_and_version_import_neither_torch_nor_gymnasium(tmp_path: Path) -> None:
    lines = [["--help"], ["--version"], ["train", "--help"], ["resume", "--help"]]
    lines += [["eval", "--help"], ["export", "--help"], ["doctor", "--help"], ["presets"]]
    code = (
        "import sys; from tianji.cli.main import main\n"
        f"codes = [main(line) for line in {lines}]\n"
        "heavy = {'torch', 'gymnasium', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'{codes} {heavy}' if heavy or any(codes) else 0)"
    )
    done = python(code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_what_c_libraries_print_does_not_reach_standard_output(tmp_path: Path) -> None:
    code = (
        "import os, sys; from types import SimpleNamespace; from tianji.cli.main import main\n"
        "def export_run(*_):\n"
        "    os.write(1, b'noise from C'); os.system('echo noise')\n"
        "    return {'output': 'p', 'note': ''}\n"
        "sys.modules['tianji.trained.export'] = SimpleNamespace(export_run=export_run)\n"
        "os.makedirs('runs/one'); open('runs/one/config.yaml', 'w').close()\n"
        "sys.exit(main(['export', 'one', '--json']))"
    )
    done = python(code, cwd=tmp_path)
    assert json.loads(done.stdout)["run"] == "runs/one"
    assert "noise from C" in done.stderr


@pytest.mark.parametrize(
    ("reason", "exit_code"),
    [
        ("target_reached", 0),
        ("max_env_steps", 0),
        ("max_wall", 0),
        ("interrupted", 130),
        ("failed", 1),
    ],
)
def test_the_exit_code_of_a_run_says_why_it_stopped(
    reason: str,
    exit_code: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    asked: list[RunConfig] = []

    def train_config(config: RunConfig, **_: Any) -> dict[str, Any]:
        asked.append(config)
        print("a library that prints")
        return {**SUMMARY, "stopped_because": reason, "nothing": float("nan")}

    stand_in(monkeypatch, "tianji.run", train_config=train_config)
    assert main(["train", "cartpole-ppo", "--seed", "3", "--json"]) == exit_code
    out, err = capfd.readouterr()
    assert json.loads(out) == {**SUMMARY, "stopped_because": reason, "nothing": None}
    assert "a library that prints" in err
    assert asked == [make_config("cartpole-ppo", seed=3)]


def test_the_closing_block_names_the_folder_the_return_and_what_to_try(
    monkeypatch: pytest.MonkeyPatch, in_tmp: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = in_tmp / "runs" / "one"
    folder.mkdir(parents=True)
    (folder / "curve.png").touch()
    stand_in(monkeypatch, "tianji.run", train_config=lambda config, **_: SUMMARY)
    assert main(["train"]) == 0
    out, err = capfd.readouterr()
    assert out == ""
    for words in (
        "Target reached",
        "480.2, mean of the last 100 training episodes (target 475)",
        "3.2 s of training",
        "41,000 environment steps",
        "runs/one/curve.png",
        "tianji eval one",
        "tianji export one",
        "tianji train --env YOUR-ENV",
    ):
        assert words in err
    assert "tianji resume" not in err


def test_the_closing_block_says_why_the_run_was_as_fast_as_it_was(
    monkeypatch: pytest.MonkeyPatch, in_tmp: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told = ["The learner is the bottleneck.", "Nothing would help much."]
    for path in ("learner", None):
        summary = {**SUMMARY, "critical_path": path, "explanation": told}
        stand_in(monkeypatch, "tianji.run", train_config=lambda config, s=summary, **_: s)
        assert main(["train"]) == 0
        err = capfd.readouterr().err
        assert all(sentence in err for sentence in told) == (path is not None)


def test_a_failed_run_names_the_tool_that_finds_the_cause_and_gives_no_advice_on_speed(
    monkeypatch: pytest.MonkeyPatch, in_tmp: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    failed = {
        **SUMMARY, "stopped_because": "failed", "checkpoint": None, "env_failures": 19,
        "restarts": 1, "critical_path": "learner", "explanation": ["The learner is slow."],
    }  # fmt: skip
    stand_in(monkeypatch, "tianji.run", train_config=lambda config, **_: failed)
    assert main(["train"]) == 1
    err = capfd.readouterr().err
    for words in ("tianji doctor --env CartPole-v1", "19 environment failures, 1 restart"):
        assert words in err
    assert "The learner is slow" not in err and "nothing was saved" in err


@pytest.mark.parametrize(
    ("raised", "exit_code", "told"),
    [
        (TianjiError("the learner is lost"), 1, "the learner is lost"),
        (KeyboardInterrupt(), 130, "Interrupted."),
        (ZeroDivisionError("by zero"), 1, "ZeroDivisionError: by zero"),
    ],
)
def test_exceptions_become_words_and_exit_codes(
    raised: BaseException,
    exit_code: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def train_config(config: RunConfig, **_: Any) -> dict[str, Any]:
        raise raised

    stand_in(monkeypatch, "tianji.run", train_config=train_config)
    assert main(["train", WITHOUT_EVIDENCE, "--json"]) == exit_code
    out, err = capfd.readouterr()
    assert json.loads(out) == {"error": told, "exit_code": exit_code}
    assert err.startswith(told)
    assert ("Traceback" in err) == isinstance(raised, ZeroDivisionError)


def unwrapped(block):
    """The words of a block, however they were broken into lines."""
    return " ".join(block.replace("│", " ").split())


def test_a_command_to_try_is_never_cut(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    run_dir = "runs/a-name-that-leaves-no-room-for-the-purpose-beside-it"
    show_closing({**SUMMARY, "stopped_because": "max_env_steps", "run_dir": run_dir})
    shown = unwrapped(capsys.readouterr().err)
    assert f"tianji resume {run_dir.removeprefix('runs/')} \\ --max-env-steps 82000" in shown
    assert "continue from the last checkpoint" in shown


def test_a_command_of_several_lines_can_be_pasted():
    command = shlex.join(["mpirun", "-n", "2", "tianji", "train", "--env", "my env", "--seed", "3"])
    lines = in_lines(command, 30)
    assert len(lines.splitlines()) == 2 and max(map(len, lines.splitlines())) <= 30
    assert shlex.split(lines.replace("\\\n", "")) == shlex.split(command)
    assert in_lines(command, len(command)) == command


@pytest.mark.parametrize(("engine", "start"), [("mpi", "mpirun ... tianji"), ("ray", "tianji")])
def test_a_run_of_several_ranks_is_resumed_with_as_many(capsys, monkeypatch, engine, start):
    monkeypatch.setenv("COLUMNS", "200")
    hosts = [{"host": name, "groups": [0]} for name in "ab"]
    show_closing({**SUMMARY, "engine": engine, "hosts": hosts, "stopped_because": "interrupted"})
    shown = unwrapped(capsys.readouterr().err)
    assert f" {start} resume one continue" in shown
    assert " tianji eval one evaluate" in shown and "... tianji eval" not in shown


def test_video_is_offered_only_where_something_renders(capsys, monkeypatch):
    show_closing({**SUMMARY, "can_be_filmed": False})
    shown = unwrapped(capsys.readouterr().err)
    assert "tianji eval one evaluate the policy" in shown and "--video" not in shown
    show_closing({**SUMMARY, "can_be_filmed": True})
    assert "tianji eval one --video evaluate the policy and film it" in unwrapped(
        capsys.readouterr().err
    )
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)  # as if it were not installed
    show_closing({**SUMMARY, "can_be_filmed": True})
    assert "--video" not in unwrapped(capsys.readouterr().err)


def test_an_environment_of_your_own_is_offered_only_to_those_who_have_not_used_one(capsys):
    show_closing({**SUMMARY, "env": "mine:make"})
    assert "YOUR-ENV" not in capsys.readouterr().err


def test_the_run_of_one_seed_among_several_is_named_with_its_folder(capsys):
    show_closing({**SUMMARY, "run_dir": "runs/five/seed-2"})
    assert "tianji export five/seed-2 " in unwrapped(capsys.readouterr().err)
    show_closing({**SUMMARY, "run_dir": "/data/runs/one"})
    assert "tianji export /data/runs/one " in unwrapped(capsys.readouterr().err)


def test_a_run_that_ran_out_of_time_needs_more_of_it_to_go_on(capsys):
    show_closing({**SUMMARY, "stopped_because": "max_wall"})
    assert "tianji resume one --max-wall-s 8 " in unwrapped(capsys.readouterr().err)
    show_closing({**SUMMARY, "stopped_because": "interrupted"})
    assert "tianji resume one continue" in unwrapped(capsys.readouterr().err)


@pytest.mark.parametrize(("updates", "told"), [(0, "0 updates"), (1, "1 update"), (2, "2 updates")])
def test_one_update_is_not_many(capsys, updates, told):
    show_closing({**SUMMARY, "updates": updates})
    assert f"environment steps, {told} in" in unwrapped(capsys.readouterr().err)


def test_seconds_of_the_virtual_engine_are_called_simulated(capsys):
    show_closing({**SUMMARY, "engine": "virtual"})
    shown = unwrapped(capsys.readouterr().err)
    assert "3.2 s of simulated time" in shown and "in 3.5 s of simulated time" in shown


def test_a_failed_run_tells_the_first_cause(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    failed = {**SUMMARY, "stopped_because": "failed", "first_cause": "actor 0: no world"}
    stand_in(monkeypatch, "tianji.run", train_config=lambda config, **_: failed)
    assert main(["train"]) == 1
    err = capfd.readouterr().err
    assert "actor 0: no world" in err
    assert "tianji doctor --env CartPole-v1" in err
    assert "tianji eval" not in err


def test_a_run_that_failed_before_its_first_step_is_not_continued(capsys):
    failed = {**SUMMARY, "stopped_because": "failed", "first_cause": "x", "env_steps": 0}
    show_closing(failed)
    shown = unwrapped(capsys.readouterr().err)
    assert "tianji resume" not in shown and "tianji train ... start again" in shown
    show_closing({**failed, "env_steps": 100})
    assert "tianji resume one" in unwrapped(capsys.readouterr().err)


def test_a_run_of_several_environments_tells_of_each(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ended = {**SUMMARY, "mean_return_100": 6.0, "returns_by_env": {"m:easy": 12.0, "Hard-v1": 0.0}}
    stand_in(monkeypatch, "tianji.run", train_config=lambda config, **_: ended)
    assert main(["train"]) == 0
    err = capfd.readouterr().err
    assert "6, mean of 2 environments" in err
    assert "12 easy, 0 Hard-v1" in err
    begun = {**ended, "mean_return_100": None, "returns_by_env": {"m:easy": 12.0, "Hard-v1": None}}
    stand_in(monkeypatch, "tianji.run", train_config=lambda config, **_: begun)
    main(["train"])
    assert "no episode of Hard-v1 has finished yet" in capfd.readouterr().err
    failed = {**ended, "stopped_because": "failed", "first_cause": "actor 0: no world"}
    stand_in(monkeypatch, "tianji.run", train_config=lambda config, **_: failed)
    main(["train"])
    assert "tianji doctor --env m:easy --env Hard-v1" in capfd.readouterr().err


def test_the_first_cause_is_told_first(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def train_config(config: RunConfig, **_: Any) -> dict[str, Any]:
        try:
            raise OSError("disk full")
        except OSError as error:
            raise RuntimeError("could not save") from error

    stand_in(monkeypatch, "tianji.run", train_config=train_config)
    assert main(["train", WITHOUT_EVIDENCE]) == 1
    err = capfd.readouterr().err
    assert err.startswith("OSError: disk full")
    assert "RuntimeError: could not save" in err


@pytest.fixture
def run_dir(in_tmp: Path) -> Path:
    folder = Path("runs") / "one"
    folder.mkdir(parents=True)
    save_config(make_config("cartpole-ppo"), folder / "config.yaml")
    return folder


def test_resume_hands_over_the_run_and_the_changes(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    calls: list[Any] = []

    def resume_run(*given: Any, started_ns: int) -> dict[str, Any]:
        calls.append(given)
        return {**SUMMARY, "stopped_because": "max_env_steps"}

    stand_in(monkeypatch, "tianji.run", resume_run=resume_run)
    assert main(["resume", "one", "--max-env-steps", "9", "--json"]) == 0
    assert calls == [(run_dir, {"max_env_steps": 9})]
    assert "tianji resume one" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "film"),
    [([], None), (["--video"], "runs/one/video.mp4"), (["--video", "a.mp4"], "a.mp4")],
)
def test_eval_hands_over_its_options_and_reports(
    words: list[str],
    film: str | None,
    run_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    figures: dict[str, Any] = {
        "mean": 0.864, "std": 0.04, "min": 0.8, "max": 1.0, "median": 0.9, "episodes": 5,
        "stochastic": False, "note": "", "cut_episodes": 2, "cut_after_steps": 27_000,
    }  # fmt: skip
    calls: list[Any] = []

    def evaluate_run(*given: Any, **options: Any) -> dict[str, Any]:
        calls.append((*given, options))
        return {**figures, "video": film}

    stand_in(monkeypatch, "tianji.trained.evaluate", evaluate_run=evaluate_run)
    assert main(["eval", "one", "--episodes", "5", "--seed", "2", *words, "--json"]) == 0
    options = {"stochastic": False, "cut_after_steps": None}
    assert calls == [(run_dir, 5, 2, Path(film) if film else None, "best", options)]
    out, err = capfd.readouterr()
    shown = " ".join(err.split())
    assert "2 of 5 episodes did not end within 27,000 steps" in shown
    assert (
        "Actions were greedy. Training samples its actions; --stochastic does so here, too."
        in shown
    )
    assert json.loads(out) == {"run": "runs/one", "video": film, **figures}
    assert "0.864 ± 0.04 mean return over 5 episodes (median 0.9, lowest 0.8, highest 1)" in shown


def test_eval_samples_and_cuts_as_asked(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    figures = {"mean": 9.0, "std": 1.0, "min": 8.0, "max": 10.0, "median": 9.0, "episodes": 5}
    asked: list[Any] = []

    def evaluate_run(*_: Any, **options: Any) -> dict[str, Any]:
        asked.append(options)
        rest = {"stochastic": True, "cut_episodes": 0, "video": None, "note": ""}
        return {**figures, **rest}

    stand_in(monkeypatch, "tianji.trained.evaluate", evaluate_run=evaluate_run)
    assert main(["eval", "one", "--stochastic", "--cut-after-steps", "50"]) == 0
    assert asked == [{"stochastic": True, "cut_after_steps": 50}]
    err = capfd.readouterr().err
    assert "Actions were sampled, as in training." in err and "cut" not in err


def test_the_closing_block_says_that_training_samples_and_eval_is_greedy(
    capfd: pytest.CaptureFixture[str],
) -> None:
    show_closing(SUMMARY)
    shown = " ".join(capfd.readouterr().err.replace("│", " ").split())
    assert "sampled in training; tianji eval takes the best ones (greedy)" in shown
    assert "--stochastic" in shown


def test_small_returns_are_not_rounded_to_a_target_that_was_not_reached(
    capfd: pytest.CaptureFixture[str],
) -> None:
    show_closing({**SUMMARY, "mean_return_100": 0.864, "target_return": 0.9})
    assert "0.864, mean of the last" in (shown := capfd.readouterr().err)
    assert "(target 0.9)" in " ".join(shown.replace("│", " ").split())


def test_commands_to_try_can_be_pasted_into_a_shell(capfd: pytest.CaptureFixture[str]) -> None:
    named = {**SUMMARY, "run_dir": "runs/it's mine", "stopped_because": "failed"}
    show_closing({**named, "env": "games:Maze; rm -r", "first_cause": "x"})
    err = capfd.readouterr().err
    commands = [line.strip(" │").split("  ")[0] for line in err.splitlines() if "tianji " in line]
    words = [shlex.split(command)[1:] for command in commands]
    assert words == [["doctor", "--env", "games:Maze; rm -r"], ["resume", "it's mine"]]


def test_export_hands_over_its_options_and_reports(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    calls: list[Any] = []

    def export_run(*given: Any) -> dict[str, Any]:
        calls.append(given)
        return {"output": "p.onnx", "note": ""}

    stand_in(monkeypatch, "tianji.trained.export", export_run=export_run)
    assert main(["export", "one", "--json"]) == 0
    assert main(["export", "one", "--output", "p.onnx", "--checkpoint", "last"]) == 0
    assert calls == [(run_dir, None, "best"), (run_dir, Path("p.onnx"), "last")]
    out, err = capfd.readouterr()
    assert json.loads(out) == {"run": "runs/one", "output": "p.onnx", "note": ""}
    assert "Wrote p.onnx" in err
