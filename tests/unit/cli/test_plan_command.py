"""`tianji plan` as a person or a script types it."""

import json

import pytest

from tests.unit.costs.profiles import actor, cost, learner, profile
from tianji.cli.main import main
from tianji.config.machine import Machine
from tianji.costs.profile import Rehearsal

PROFILE = profile(
    actors=(actor(4, cost(0.002, noise=0.04)), actor(8, 0.004)),
    learners=(learner(1, 0.1), learner(2, 0.06)),
    steps_per_version=256,
    warnings=("An environment step takes 12 ms.",),
    rehearsals=(
        Rehearsal(
            num_actors=1, learner_threads=2, actor_threads=1, produced=4000.0, received=4000.0,
            trained=12000.0, lag_versions=1.0,
        ),
    ),
    profiling_s=9.0,
)  # fmt: skip
NAMES = {
    "algorithm", "chosen_because", "resolved",
    "planning_s", "bottleneck", "predicted", "lag_versions", "ratio", "roles", "memory_bytes",
    "memory",
    "reasons", "advice", "warnings", "staleness", "noise", "num_actors", "envs_per_actor",
    "actor_threads", "learner_threads", "settings", "profile_key", "from_cache", "device",
    "inference",
}  # fmt: skip


@pytest.fixture(autouse=True)
def measured(tmp_path, monkeypatch):
    """The configs that were measured, which takes no time here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked = []

    def measure(config, env, machine, probe, tell, settings, limit_s):
        tell("Measuring this machine.")
        asked.append(config)
        return PROFILE

    monkeypatch.setattr("tianji.planning.measure.measure.measure", measure)
    return asked


def plan(*words):
    return main(["plan", "--num-envs", "8", *words])


def told(capfd):
    """What a script reads."""
    (line,) = capfd.readouterr().out.splitlines()
    return json.loads(line)


def test_a_script_gets_one_line_with_the_names_it_relies_on(capfd):
    assert plan("--json") == 0
    found = told(capfd)
    assert set(found) == NAMES
    assert set(found["predicted"]) == {"produced", "received", "trained"}
    assert found["bottleneck"] == "training"
    assert set(found["roles"]["learner"]) == {"processes", "cores", "threads"}
    assert found["roles"]["actor"]["processes"] == found["num_actors"]
    assert found["memory_bytes"] == found["memory"]["total"] > 2**20
    assert found["memory"]["replay_bytes"] == found["memory"]["replay"] == 0
    assert found["noise"] == 0.04
    assert all(sentence.endswith(".") for sentence in (*found["reasons"], *found["advice"]))
    assert found["warnings"] == ["An environment step takes 12 ms."]


def test_a_person_gets_the_roles_the_promise_and_the_reasons(capfd):
    assert plan() == 0
    out, err = capfd.readouterr()
    said = " ".join(err.split())
    assert out == ""
    assert "Measuring this machine." in said
    assert "CartPole-v1 · ppo · 8 environments" in said
    for words in ("learner, with the buffer", "produced", "P 1", "MiB", "training: the learner"):
        assert words in said
    assert "Training is the bottleneck" in said
    assert "One more core would" in said
    assert "An environment step takes 12 ms." in said
    assert "noise up to 4 %" in said


def test_every_setting_that_the_run_learns_with_has_its_value(capfd):
    assert plan("--json") == 0
    found = told(capfd)["resolved"]
    assert (found["num_envs"], found["max_lag"]) == (8, 1)
    assert found["algorithm.learning_rate"] == 0.002 and found["algorithm.epochs"] == 3
    assert found["model.hidden"] == [64, 64] and found["model.memory"] == "none"
    assert found["normalize.observations"] is False and found["normalize.clip_rewards"] is None
    assert "model.memory_size" not in found and "algorithm.name" not in found
    plan("--env", "Acrobot-v1", "--algorithm", "ppo", "--model.memory", "gru", "--json")
    found = told(capfd)["resolved"]
    assert found["model.memory_size"] == 64 and found["normalize.observations"] is True
    assert plan("--epochs", "7") == 0
    said = " ".join(capfd.readouterr().err.split())
    for words in ("Settings", "run num_envs=8 max_lag=1", "epochs=7", "hidden=64,64"):
        assert words in said


def test_what_was_measured_is_used_again_until_something_else_is_asked_for(measured, capfd):
    plan("--json")
    assert not told(capfd)["from_cache"]
    plan("--json", "--seed", "7")
    assert told(capfd)["from_cache"]
    assert len(measured) == 1
    plan("--hidden", "[8]")
    assert len(measured) == 2
    plan()
    assert "--fresh measures again" in capfd.readouterr().err
    plan("--fresh")
    assert len(measured) == 3


def test_the_next_run_uses_it(measured, monkeypatch):
    from tianji import run

    plans = []
    monkeypatch.setattr(run._Run, "to_end", lambda self, **_: plans.append(self._spec.plan))
    plan()
    run.train_config(measured[0])
    assert plans[0].source == "measured"
    assert plans[0].prediction.bottleneck == "training"


def test_what_is_fixed_by_hand_stays(capfd):
    plan("--num-actors", "2", "--learner-threads", "1", "--json")
    found = told(capfd)
    assert (found["num_actors"], found["learner_threads"], found["envs_per_actor"]) == (2, 1, 4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "nonsense"),
        (["--env", "NoSuchWorld-v0"], "NoSuchWorld"),
        (["--gama", "1"], "--gamma"),
        (["--engine", "inline"], "no cores to share"),
        (["--num-actors", "3"], "cannot be shared evenly"),
    ],
)
def test_a_mistake_is_told_before_anything_is_measured(measured, capfd, words, said):
    assert plan(*words, "--json") == 2
    assert said in told(capfd)["error"]
    assert measured == []


def test_a_run_that_does_not_fit_is_refused_with_the_arithmetic(capfd, monkeypatch):
    from tianji.config.machine import Machine

    monkeypatch.setattr("tianji.cli.verbs.plan.read_machine", lambda: Machine((0, 1), 400 << 20))
    assert plan("--json") == 2
    assert "does not fit" in told(capfd)["error"]


def test_an_interrupted_measurement_leaves_nothing(capfd, monkeypatch, tmp_path):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tianji.planning.measure.measure.measure", interrupted)
    assert plan("--json") == 130
    assert told(capfd)["error"] == "Interrupted."
    assert list(tmp_path.iterdir()) == []


def test_help_lists_the_settings_of_a_run(capfd):
    assert main(["plan", "cartpole-dqn", "--help"]) == 0
    page = " ".join(capfd.readouterr().out.split())
    assert "Usage: tianji plan [PRESET] [--nodes N] [--key value ...] [--fresh]" in page
    assert "--link-gbit" in page
    assert "--replay-size" in page


def test_rounds_of_gradients_have_a_page_of_their_own(capfd, measured):
    assert main(["plan", "rennala-nigt", "--num-actors", "4", "--m", "12"]) == 0
    page = " ".join(capfd.readouterr().err.split())
    for words in (
        "CartPole-v1 · rennala-nigt",
        "the first 12 gradients, from any actor",
        "at most 25 % of the gradients: up to 4 are unfinished when a round closes",
        "their number is part of the method",
        "tianji simulate --algorithm rennala-nigt",
    ):
        assert words in page
    assert measured == []


@pytest.mark.parametrize(("law", "is_told"), [("none", True), ("sqrt", False)])
def test_actors_whose_times_are_given_are_not_said_to_be_equal(capfd, law, is_told):
    words = f"--num-actors 200 --num-envs 400 --times.law {law} --engine virtual"
    assert main(["plan", "rennala-nigt", *words.split()]) == 0
    page = " ".join(capfd.readouterr().err.split())
    assert ("so all are about equally fast" in page) == is_told


def test_a_script_reads_what_a_round_is(capfd):
    words = "--num-actors 2 --m 6 --m-init 9 --json"
    assert main(["plan", "malenia-nigt", *words.split()]) == 0
    found = told(capfd)
    assert (found["rule"], found["num_gradients"], found["first_num_gradients"]) == (
        "harmonic",
        6,
        9,
    )
    assert (found["num_actors"], found["roles"]["actor"]["processes"]) == (2, 2)
    assert found["most_discarded_share"] == pytest.approx(2 / 8)
    assert found["gradient_s"] > 0


@pytest.mark.parametrize(("algorithm", "words"), [
    ("sync-nigt", "one gradient from every actor"), ("afedpg", "every gradient makes a version"),
])  # fmt: skip
def test_rules_that_drop_nothing_say_nothing_of_it(capfd, algorithm, words):
    assert main(["plan", algorithm]) == 0
    page = capfd.readouterr().err
    assert words in page
    assert "dropped" not in page


def test_the_page_says_which_task_is_whose(capfd):
    twins = "tianji.envs.twins:plain,tianji.envs.twins:mirrored"
    assert main(["plan", "malenia-nigt", "--envs", twins, "--env-kwargs.id", "CartPole-v1"]) == 0
    page = capfd.readouterr().err
    assert "actor-0: tianji.envs.twins:plain" in page
    assert "actor-1: tianji.envs.twins:mirrored" in page


def test_a_free_balance_is_planned_by_rule(capfd, measured):
    assert main(["plan", "--algorithm", "apex", "--num-envs", "8", "--json"]) == 0
    found = told(capfd)
    assert measured == []
    assert (found["balance"], found["ratio"]) == ("free", None)
    assert found["memory"]["replay_bytes"] > 100_000 * 16
    assert "actors do not wait for the learner" in found["reasons"][0]
    assert main(["plan", "--algorithm", "apex", "--num-envs", "8"]) == 0
    said = " ".join(capfd.readouterr().err.split())
    assert "balance free: neither waits" in said


def test_the_plan_of_groups_is_that_of_one_on_its_share(measured, capfd, monkeypatch):
    machine = Machine(tuple(range(8)), 64 << 30)
    monkeypatch.setattr("tianji.cli.verbs.plan.read_machine", lambda: machine)
    assert plan("--num-groups", "4", "--combine", "average") == 0
    assert measured[0].num_groups == 1
    shown = " ".join(capfd.readouterr().err.split())
    assert "one of 4 learners" in shown and "2 cores" in shown


def test_learners_that_outnumber_the_cores_are_told_that_they_share_them(
    measured, capfd, monkeypatch
):
    machine = Machine((0, 1), 64 << 30)
    monkeypatch.setattr("tianji.cli.verbs.plan.read_machine", lambda: machine)
    assert plan("--num-groups", "4", "--combine", "average") == 0
    shown = " ".join(capfd.readouterr().err.split())
    assert "one of 4 learners. They are more than the usable cores (2 cores), and share" in shown


def test_the_plan_of_groups_that_cannot_run_is_refused(measured, capfd):
    assert plan("--num-groups", "4", "--combine", "average", "--engine", "virtual") == 2
    assert measured == [] and "one learner" in capfd.readouterr().err
