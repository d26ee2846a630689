"""What the tracer of the step's path notes, and how it merges processes and runs."""

import sys

import pytest

from benchmarks.step_path.path import Stop, merge, visited_always
from benchmarks.step_path.recorder import BEFORE, CLOSED, OPEN, Recorder, Window

CODE = {
    "/pkg/loop.py": "def loop(step, times):\n    for _ in range(times):\n        step()\n",
    "/pkg/actor.py": "def step():\n    return mark(), send()\n",
    "/pkg/stream.py": "def send():\n    return None\n",
    "/elsewhere/main.py": "def main():\n    loop(step, 3)\n",
}


@pytest.fixture
def window(tmp_path):
    Window.create(tmp_path)
    return Window(tmp_path)


def recorded(window, states):
    """Run the code above; the environment (`mark`) sets the window to the next state each step."""
    remaining, visits = iter(states), []

    def mark():
        window.state = next(remaining)

    names = {"mark": mark}
    for path, source in CODE.items():
        exec(compile(source, path, "exec"), names)
    recorder, before = Recorder("/pkg", window, visits.append), sys.getprofile()
    sys.setprofile(recorder)
    try:
        names["main"]()
    finally:
        sys.setprofile(before)
    recorder.end()
    return visits


def test_the_path_begins_where_the_environment_returns_and_closes_after_a_round(window):
    (visits,) = recorded(window, [BEFORE, OPEN, CLOSED])
    assert visits == [["actor.py", "step"], ["stream.py", "send"], ["loop.py", "loop"]]


def test_nothing_is_noted_before_the_window_opens(window):
    assert recorded(window, [BEFORE] * 3) == [[]]


def test_a_closed_window_never_opens_again(window):
    window.state = CLOSED
    window.state = OPEN
    assert window.state == CLOSED


def test_processes_share_one_window(window, tmp_path):
    Window(tmp_path).state = OPEN
    assert window.state == OPEN


def test_actors_come_first_and_the_supervisor_is_left_out():
    parts = [
        {"process": "learner", "visits": [["loop.py", "loop"], ["learner.py", "learn"]]},
        {"process": "root", "visits": [["supervisor.py", "watch"]]},
        {"process": "actor-1", "visits": [["actor.py", "act"], ["loop.py", "loop"]]},
        {"process": "actor-0", "visits": [["actor.py", "act"]]},
    ]
    stops = merge(parts, has_supervisor=True)
    assert list(stops.values()) == [
        Stop("actor.py", ["act"], ["actor"]),
        Stop("loop.py", ["loop"], ["actor", "learner"]),
        Stop("learner.py", ["learn"], ["learner"]),
    ]
    assert "supervisor.py" in merge(parts, has_supervisor=False)


def test_a_file_counts_if_every_run_visits_it():
    one = {"a.py": Stop("a.py", ["f"], ["actor"]), "observe/b.py": Stop("observe/b.py")}
    other = {"a.py": Stop("a.py", ["g"], ["actor"])}
    always, sometimes = visited_always([one, other])
    assert always == [Stop("a.py", ["f", "g"], ["actor"])]
    assert [stop.file for stop in sometimes] == ["observe/b.py"]
    assert sometimes[0].is_watching and not always[0].is_watching
