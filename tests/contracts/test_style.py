"""Every style: it can be printed, fits together, refuses with a reason, and trains."""

import math

import pytest

from tests.system.runs import QUIET, differences, resume, saved_state
from tianji.cli.pages.program import example_preset
from tianji.config.files import load_config
from tianji.config.machine import Machine
from tianji.config.overrides import make_config, styled
from tianji.config.schema import flat
from tianji.envs.build import probe
from tianji.errors import UsageError
from tianji.planning.resolve.resolve import resolve
from tianji.programs.groups import group_program
from tianji.programs.program import SUPERVISOR
from tianji.programs.registry import STYLES, find_style
from tianji.run import train_config
from tianji.run_folder.paths import CONFIG_FILE

MACHINE = Machine((0, 1, 2, 3), 64 << 30)
SMALL = {
    "cartpole-ppo": {"num_envs": 8, "algorithm": {"unroll_length": 16}},
    "cartpole-dqn": {"num_envs": 8, "algorithm": {"warmup_steps": 64, "replay_size": 2048}},
    "catch-frames-ppo": {"num_envs": 8, "algorithm": {"unroll_length": 16}},
}
NAMES = pytest.mark.parametrize("name", STYLES)


def config_of(name, **values):
    """A small run of a style, of the preset that shows it."""
    preset = example_preset(name)
    settings = {**SMALL[preset], "target_return": None, "observe": QUIET, "plan.source": "rule"}
    return make_config(preset, style=name, **{**settings, **values})


def program_of(name):
    config = config_of(name)
    plan = resolve(config, MACHINE, probe(config.env, {}))
    return group_program(config, plan, group=0), plan


@NAMES
def test_it_says_in_one_sentence_what_it_is(name):
    style = find_style(name)
    assert style.name == name
    assert style.about.endswith(".") and "\n" not in style.about and len(style.about) < 130
    assert all(sentence.endswith(".") for sentence in style.differences)


@NAMES
def test_every_wire_ends_at_a_role_and_every_role_has_a_worker(name):
    program, plan = program_of(name)
    ends = {role.name for role in program.roles} | {SUPERVISOR, "1/learner"}
    for wire in program.wires:
        assert wire.sources and wire.targets and wire.capacity > 0
        assert set(wire.sources) | set(wire.targets) <= ends
    assert {role.worker for role in program.roles} == {w.name for w in program.workers}
    assert len(program.of_kind("actor")) == plan.num_actors
    assert len({wire.name for wire in program.wires}) == len(program.wires)


@NAMES
def test_its_settings_stay_what_they_are_when_they_are_read_again(name):
    config = config_of(name)
    for given in ((), ("style",), ("style", "num_actors")):
        assert styled(config, given=given) == flat(config.model_dump())


@NAMES
def test_it_trains_is_saved_with_its_name_and_goes_on(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    is_served = config_of(name).inference == "served"  # which takes processes
    place = {"engine": "local" if is_served else "inline", "num_actors": 2}
    summary = train_config(config_of(name, **place, max_env_steps=600))
    assert (summary["style"], summary["stopped_because"]) == (name, "max_env_steps")
    assert math.isfinite(summary["mean_return_100"]) and summary["updates"] > 0
    assert summary["discarded_items"] == 0
    saved = load_config(tmp_path / summary["run_dir"] / CONFIG_FILE)
    assert saved.style == name
    longer = resume(summary["run_dir"], max_env_steps=900)
    assert longer["style"] == name and longer["env_steps"] >= 900


SERIAL = [  # the style, what its serial loop has instead, and what only pacing keeps
    ("tianji", {}, []),
    ("impala", {"balance": "paced"}, [".state.buffer.gate.ahead"]),
]


@pytest.mark.parametrize(("name", "reference", "pacing"), SERIAL)
def test_without_lag_it_is_the_serial_loop_of_its_algorithm(
    name, reference, pacing, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    shared = {"max_lag": 0, "num_actors": 2, "max_env_steps": 1500, "learner_threads": 1}
    config = config_of(name, engine="inline", **shared)
    serial = config.model_copy(update={"style": "serial", **reference})
    one, other = (saved_state(train_config(run)["run_dir"]) for run in (config, serial))
    clocks = [key for key in one if key.endswith(("row_ns", "wall_s"))]
    assert differences(one, other, but=[*clocks, *pacing]) == []
    assert any(key.startswith(".weights") for key in one)


REFUSED = [
    ("serial", "cartpole-ppo", {"engine": "local"}, "one process acts and learns in turn"),
    ("serial", "cartpole-ppo", {"max_lag": 2}, "nothing is asynchronous"),
    ("serial", "cartpole-ppo", {"num_groups": 2}, "one process"),
    ("impala", "cartpole-dqn", {}, "V-trace learns from unrolls"),
    ("impala", "rennala-nigt", {}, "V-trace learns from unrolls"),
    ("impala", "cartpole-ppo", {"algorithm": "ppo"}, "learns with V-trace"),
    ("impala", "cartpole-ppo", {"balance": "paced"}, "a queue of fixed size"),
    ("impala", "cartpole-ppo", {"inference": "served"}, "their own copy of the policy"),
    ("impala", "cartpole-ppo", {"clip": 0.1}, "ppo has it; this run uses impala"),
    ("seed", "cartpole-ppo", {"inference": "actor-cpu"}, "actors hold only environments"),
    ("seed", "cartpole-dqn", {}, "V-trace learns from unrolls"),
    ("apex", "cartpole-ppo", {}, "replay store"),
    ("apex", "cartpole-dqn", {"balance": "paced"}, "wait"),
    ("gala", "cartpole-ppo", {"num_groups": 1}, "nobody to gossip with"),
    ("gala", "cartpole-ppo", {"combine": "average"}, "gossip"),
    ("gala", "pendulum-sac", {}, "SAC publishes its policy without the critics. Use a preset"),
    ("sample-factory", "cartpole-ppo", {"inference": "actor-cpu"}, "a server infers"),
    ("sample-factory", "cartpole-ppo", {"plan.actors_per_worker": 1}, "the other half"),
    ("sample-factory", "cartpole-ppo", {"plan.actors_per_worker": "auto"}, "actors-per-worker 2"),
    ("sample-factory", "cartpole-ppo", {"num_actors": 1}, "the other half"),
    ("sample-factory", "cartpole-ppo", {"num_actors": 3}, "Use --num-actors 4"),
    ("apex", "pendulum-sac", {}, "Q values of discrete actions"),
    ("apex", "cartpole-gorila", {}, "from one replay store"),
    ("gorila", "pendulum-sac", {}, "Q values of discrete actions"),
    ("a3c", "cartpole-ppo", {"balance": "blocking"}, "each gradient makes a version"),
    ("a3c", "cartpole-ppo", {"num_groups": 2}, "one learner applies the gradients"),
    ("gorila", "cartpole-dqn", {"num_groups": 2}, "one learner applies the gradients"),
]


@pytest.mark.parametrize(("name", "preset", "values", "reason"), REFUSED)
def test_what_does_not_fit_it_is_refused_with_the_reason(name, preset, values, reason):
    with pytest.raises(UsageError, match=reason) as error:
        make_config(preset, style=name, **values)
    told = str(error.value)
    assert "ppo has it" in told or (f"style is '{name}'" in told and "Use " in told)


@pytest.mark.parametrize(
    ("name", "changes"),
    [("serial", {"engine": "local"}), ("seed", {"inference": "actor-cpu"})],
)
def test_a_resume_cannot_leave_the_style(name, changes):
    config = config_of(name)
    changed = config.model_copy(update=changes)
    with pytest.raises(UsageError, match=f"style is '{name}'"):
        styled(changed, given=changes)


def test_a_style_that_does_not_exist_is_refused_with_the_closest():
    with pytest.raises(UsageError, match=r"Unknown style 'impla'. Did you mean 'impala'"):
        make_config("cartpole-ppo", style="impla")
