"""A run with nothing but an environment: rules choose, and the run keeps and explains it."""

import json
import re

import tianji
from tianji.cli.main import main
from tianji.config.files import load_config
from tianji.defaults import look
from tianji.run import resume_run

ENV = "MountainCarContinuous-v0"
SHORT = ["--max-env-steps", "2048", "--engine", "inline", "--no-tensorboard"]


def test_an_environment_alone_writes_what_was_chosen_and_says_why(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--env", ENV, "--json", *SHORT]) == 0
    told = capfd.readouterr()
    summary = json.loads(told.out)
    assert "defaults: Algorithm ppo: a step takes" in told.err
    assert re.search(r"defaults: noise_color 1: in [\d,]+ random steps", told.err)
    config = load_config(tmp_path / summary["run_dir"] / "config.yaml")
    assert (config.algorithm.name, config.algorithm.noise_color) == ("ppo", 1.0)

    def refuse(*_, **__):
        raise AssertionError("nothing is chosen again")

    monkeypatch.setattr(look, "probe_all", refuse)
    again = resume_run(tmp_path / summary["run_dir"], {"max_env_steps": 4096})
    assert again["env_steps"] >= 4096
    assert load_config(tmp_path / summary["run_dir"] / "config.yaml").algorithm == config.algorithm
    assert tianji.load(summary["run_dir"]).act([-0.5, 0.0]).shape == (1,)


def test_python_says_why_too(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    trained = tianji.train(env=ENV, engine="inline", max_env_steps=2048, noise_color=0.5)
    assert "defaults: Algorithm ppo" in capfd.readouterr().err
    config = load_config(tmp_path / trained.summary["run_dir"] / "config.yaml")
    assert config.algorithm.noise_color == 0.5, "what a person sets wins"


def test_a_plan_shows_what_was_chosen_and_why(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    line = ["plan", "--env", "pettingzoo:tianji.envs.exits", "--env-kwargs.num-agents", "3"]
    by_rule = ["--algorithm", "dqn", "--balance", "free"]  # nothing is measured
    assert main([*line, *by_rule, "--json"]) == 0
    told, reason = capfd.readouterr(), "num_envs 9: 3 whole environments of 3 agents."
    report = json.loads(told.out)
    assert (report["algorithm"], report["chosen_because"]) == ("dqn", [reason])
    assert reason in " ".join(told.err.split())
