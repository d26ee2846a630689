"""Runs of gathered gradients, made up: no figure of them leaves the tests."""

from tianji.figures.files import describe
from tianji.figures.gathering.grid import Grid
from tianji.figures.gathering.measure import panels_data
from tianji.figures.gathering.panels import EQUAL, SLOW_NETWORK, TEN_TIMES, Choice, Panel, Task

TASK = Task("CartPole-v1", 50, 4610, 100.0, 20.0)
PANELS = (Panel(TASK, EQUAL, 3, 20), Panel(TASK, SLOW_NETWORK, 3, 20))
TWO_TASKS = (Panel(TASK, TEN_TIMES, 2, 5, ("malenia-nigt", "afedpg", "rennala-nigt")),)
METHODS = ("rennala-nigt", "sync-nigt", "afedpg", "malenia-nigt")
CHOICES = {method: (Choice(-6), Choice(-4)) for method in METHODS}
SEEDS = (1, 2, 3)
MACHINE = {"cpu": "a good one", "cores": 16}


def grid_of(panels):
    return Grid(panels, CHOICES, SEEDS)


def made_run(trial):
    """Ten in the first round, and from then on more, the more the larger the step and the seed."""
    rounds = list(range(1, trial.num_rounds + 1))
    gain = (8 + trial.choice.exponent) * trial.seed
    returns = [10 + gain * (number - 1) for number in rounds]
    curve = {"rounds": rounds, "seconds": rounds, "return": returns, "task_0": returns,
             "task_1": returns}  # fmt: skip
    return {
        "num_rounds": trial.num_rounds, "machine": MACHINE, "core_s": 1.0, "curve": curve,
    }  # fmt: skip


def made_runs(panels):
    """Everything that the panels want."""
    grid, runs = grid_of(panels), {}
    while missing := [t for t in grid.wanted(panels, runs) if t.name not in runs]:
        runs |= {trial.name: made_run(trial) for trial in missing}
    return grid, runs


def gathered_data(name="nigt-1"):
    panels = TWO_TASKS if name == "nigt-heterogeneous" else PANELS
    grid, runs = made_runs(panels)
    return describe(name) | panels_data(grid, panels, runs)
