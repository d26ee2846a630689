"""What people see of several seeds."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

from tianji.config.overrides import make_config
from tianji.records import NOTHING_DONE
from tianji.seeds.screen import MOST_LINES, _Live, make_screen


def seed_run(seed, state):
    """A seed that is `waiting`, `running` or `ended`."""
    return SimpleNamespace(
        config=make_config(seed=seed),
        label=f"seed {seed}",
        is_started=state != "waiting",
        is_running=state == "running",
        record=lambda: None,
        last_line=lambda: "An actor with 32 environments: 355,140 steps/s.",
        summary=lambda: {**NOTHING_DONE, "stopped_because": "max_env_steps", "env_steps": 1},
    )  # fmt: skip


def test_more_seeds_than_lines_show_those_that_run_and_the_last_that_ended():
    states = ["ended"] * 20 + ["running"] * 2 + ["waiting"] * 8
    screen = _Live()
    screen.begin(
        [seed_run(i, state) for i, state in enumerate(states)], "CartPole-v1", Path("runs")
    )
    screen.newly_ended()
    _, *seeds, last = [line.plain for line in screen._run_lines(100)]
    assert len(seeds) == MOST_LINES
    assert seeds[0].startswith("seed 6 ") and seeds[-1].startswith("seed 21 ")
    assert last == "all runs 20 ended, 2 running, 8 not started"


def test_a_seed_that_measures_its_plan_says_what_it_does():
    screen = _Live()
    screen.begin([seed_run(1, "running")], "CartPole-v1", Path("runs"))
    _, line = [line.plain for line in screen._run_lines(100)]
    assert line == "seed 1    starting          An actor with 32 environments: 355,140 steps/s."


def test_a_note_of_a_seed_that_starts_is_no_paragraph_in_its_line(monkeypatch):
    run = seed_run(1, "running")
    monkeypatch.setattr(run, "last_line", lambda: "planner: Cores are shared by rule. " * 9)
    screen = _Live()
    screen.begin([run], "CartPole-v1", Path("runs"))
    words = "planner: Cores are shared by rule. planner: Cores are ..."
    assert screen.state(run).more == words


def test_a_closed_pipe_does_not_end_the_seeds(monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    monkeypatch.setattr(sys, "stderr", os.fdopen(writer, "w"))
    screen = make_screen("plain")
    screen.start([seed_run(1, "running")], "CartPole-v1", Path("runs"))
    screen.event("Every run finishes its version.")


def test_runs_that_are_made_one_after_the_other_appear_as_they_come():
    runs, screen = [], _Live()
    screen.begin(runs, "CartPole-v1", Path("runs"))
    assert len([*screen._run_lines(100)]) == 1, "only the title"
    runs.append(seed_run(0, "running"))
    _, line = [line.plain for line in screen._run_lines(100)]
    assert line.startswith("seed 0 ")
