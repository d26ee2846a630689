"""Finished episodes on their way to the head of a run."""

from tianji.learner.episodes import EpisodeReports
from tianji.types import Episode


def test_episodes_are_reported_once_and_every_period():
    now, told = [0], []
    made = EpisodeReports(told.append, 0.1, lambda: now[0])
    made.tick()
    made.add([Episode(5, 1.0, 3, 0)])
    made.tick()
    assert [report["record"]["episodes"] for report in told] == [[]]
    now[0] = 10**8
    made.add([Episode(7, 2.0, 3, 1)])
    made.tick()
    now[0] += 1
    made.tick(is_last=True)
    assert [report["record"] for report in told[1:]] == [
        {"until_ns": 10**8, "episodes": [(5, 1.0, 3, 0), (7, 2.0, 3, 1)]},
        {"until_ns": 10**8 + 1, "episodes": []},
    ]
