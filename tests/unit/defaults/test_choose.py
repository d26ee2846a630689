"""From a command line without a preset to a config: rules, a file, the person's own settings."""

import shlex

import pytest

from tianji.config import overrides
from tianji.config.overrides import preset_and_assignments
from tianji.defaults import choose, look
from tianji.envs.worlds import Continuous, Counting
from tianji.errors import UsageError

EXITS = "--env pettingzoo:tianji.envs.exits --env-kwargs.num-agents 3"


def resolve(line, env=None):
    return choose.resolve(*preset_and_assignments(shlex.split(line)), env)


@pytest.fixture
def nothing_is_tried_out(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the environment was tried out")

    monkeypatch.setattr(look, "probe_all", refuse)


class Costly(Continuous):
    """Rewards are a cost of the action alone, until a goal is reached that no one reaches."""

    def act(self, action):
        super().act(action)
        return -0.1 * float(action[0]) ** 2


def test_an_environment_alone_gets_an_algorithm_and_a_reason():
    resolved = resolve("--env tianji.envs.worlds:Continuous")
    assert resolved.config.algorithm.name == "ppo"
    assert resolved.config.algorithm.noise_color == 0.0
    assert [reason.split(":")[0] for reason in resolved.reasons] == ["Algorithm ppo"]


@pytest.mark.parametrize("line", ["--env Acrobot", "acrobot-ppo --env=Acrobot"])
def test_an_environment_without_its_version_gets_the_newest_and_a_note(line):
    resolved = resolve(line)
    assert resolved.config == resolve(f"{line}-v1").config
    told, *others = resolved.notes
    assert told == "Environment 'Acrobot' has no version: its newest one is taken, 'Acrobot-v1'."
    assert tuple(others) == resolve(f"{line}-v1").notes, "the same preset is named for both"


def test_environments_of_a_list_get_their_versions_too():
    for written in ("CartPole,Acrobot-v1", "[CartPole,Acrobot-v1]"):
        found = resolve(f"malenia-nigt --envs {written}")
        assert found.config.envs == ("CartPole-v1", "Acrobot-v1")
    found = choose.make_config("malenia-nigt", envs=["CartPole", "Acrobot-v1"])
    assert found.envs == ("CartPole-v1", "Acrobot-v1")


def test_a_name_that_nothing_is_registered_under_stays_for_the_message():
    with pytest.raises(UsageError, match=r"Unknown environment 'Acrobt'.*'Acrobot-v1'"):
        resolve("--env Acrobt")


@pytest.mark.parametrize("at_step", [2, 100])
def test_an_environment_that_raises_while_it_is_tried_out_is_told_before_the_run(at_step):
    found = resolve(f"--env tianji.envs.worlds:Flaky --env-kwargs.at_step {at_step}")
    (note,) = found.notes
    assert note.startswith("The environment failed within the first steps, which were random: ")
    assert "RuntimeError: " in note and "`tianji doctor`" in note


class Picky(Counting):
    """Only action 2 is legal, and it does not say so; in its first step any action is."""

    def step(self, action):
        if action != 2 and self.total > 0:
            raise AssertionError
        return super().step(action)


def test_an_environment_that_refuses_actions_without_a_mask_in_reset_gets_a_hint():
    (note,) = resolve("--env mine", Picky).notes
    assert "were random: AssertionError (in step() of test_choose.py, line " in note
    assert note.endswith("give info['action_mask'] in reset() too, not only in step().")


class LateMask(Counting):
    """Only action 2 is legal, which it says from the first step on, but not in reset()."""

    def step(self, action):
        assert action == 2, action
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, info | {"action_mask": [0, 0, 1, 0]}


def test_a_mask_that_comes_with_the_first_legal_step_is_noticed():
    with pytest.raises(UsageError, match=r"no mask of legal actions in reset\(\), and one in step"):
        resolve("--env mine", LateMask)


def test_an_environment_that_is_a_callable_is_tried_out_itself():
    resolved = resolve("--env mine:Costly", Costly)
    assert resolved.config.algorithm.noise_color == 1.0
    assert len(resolved.reasons) == 2


def test_agents_fit_without_a_word_from_the_person():
    assert resolve(EXITS).config.num_envs == 9


@pytest.mark.parametrize("num_agents", [3, 8, 10])
def test_groups_of_gala_have_whole_environments_of_agents(num_agents):
    line = f"--env pettingzoo:tianji.envs.exits --env-kwargs.num-agents {num_agents} --style gala"
    config = resolve(line).config
    assert config.num_groups == 2 and config.num_envs % num_agents == 0
    assert resolve(f"{line} --num-envs {3 * num_agents}").config.num_envs == 3 * num_agents


def test_each_choice_can_be_overridden():
    assert resolve(f"{EXITS} --num-envs 12").config.num_envs == 12
    resolved = resolve("--env mine:Costly --noise-color 0 --gamma 0.9", Costly)
    assert (resolved.config.algorithm.noise_color, resolved.config.algorithm.gamma) == (0.0, 0.9)
    assert not any("noise_color" in reason for reason in resolved.reasons)


@pytest.mark.parametrize("word", ["auto", "dqn"])
def test_an_algorithm_may_be_named_and_auto_names_none(word):
    config = resolve(f"{EXITS} --algorithm {word}").config
    assert config.algorithm.name == {"auto": "ppo", "dqn": "dqn"}[word]
    assert config.num_envs == 9, "numbers are chosen either way"


@pytest.mark.usefixtures("nothing_is_tried_out")
@pytest.mark.parametrize(
    "line",
    ["", "--algorithm auto", "--algorithm dqn", "cartpole-dqn --algorithm auto", "hopper-sac"],
)
def test_presets_are_complete(line):
    found, plain = resolve(line), overrides.resolve_tokens(shlex.split(line))
    assert found.config == plain.config
    assert found.reasons == ()


def test_a_file_without_an_algorithm_is_completed_by_rules(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("env: pettingzoo:tianji.envs.exits\nenv_kwargs: {num_agents: 3}\nseed: 7\n")
    resolved = resolve(f"{path} --gamma 0.9")
    config = resolved.config
    assert (config.num_envs, config.seed, config.algorithm.gamma) == (9, 7, 0.9)
    path.write_text(path.read_text() + "num_envs: 6\nalgorithm: {name: auto, gamma: 0.8}\n")
    config = resolve(f"{path} --algorithm dqn").config
    assert (config.num_envs, config.algorithm.name, config.algorithm.gamma) == (6, "dqn", 0.8)


@pytest.mark.usefixtures("nothing_is_tried_out")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--gama 0.9", "Did you mean '--gamma'?"),
        ("--gamma 2", "gamma = 2: must be"),
        ("--algorithm ppp", "Unknown algorithm 'ppp'"),
        ("--epsilon-start 0.5", "dqn has it"),
    ],
)
def test_mistakes_are_found_before_the_environment_is_tried_out(line, message):
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        resolve(f"--env CartPole-v1 {line}")


@pytest.mark.parametrize(
    ("setting", "name"), [("--initial-temperature 0.1", "sac"), ("--epochs 3", "ppo")]
)
def test_a_setting_that_one_algorithm_alone_has_decides_for_it(setting, name):
    resolved = resolve(f"--env tianji.envs.worlds:Continuous {setting}")
    assert resolved.config.algorithm.name == name
    assert resolved.reasons[0] == f"Algorithm {name}: it has all the settings that you gave."


@pytest.mark.parametrize("style", ["impala", "a3c", "seed", "serial"])
def test_a_style_may_bring_its_algorithm(style, tmp_path):
    line = f"--env CartPole-v1 --style {style}"
    resolved = resolve(line)
    assert resolved.config == overrides.resolve_tokens(shlex.split(line)).config
    assert resolved.reasons[0].startswith(f"Algorithm {resolved.config.algorithm.name}: ")
    path = tmp_path / "mine.yaml"
    path.write_text(f"env: CartPole-v1\nstyle: {style}\n")
    assert resolve(str(path)).config.algorithm.name == resolved.config.algorithm.name


@pytest.mark.parametrize(("style", "num_reasons"), [("impala", 2), ("a3c", 1)])
def test_rules_count_for_the_algorithm_of_the_style(style, num_reasons):
    assert len(resolve(f"--env mine:Costly --style {style}", Costly).reasons) == num_reasons


def test_a_setting_in_a_file_decides_for_the_algorithm_that_alone_has_it(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("env: tianji.envs.worlds:Continuous\ninitial_temperature: 0.1\n")
    config = resolve(str(path)).config
    assert (config.algorithm.name, config.algorithm.initial_temperature) == ("sac", 0.1)


def test_what_a_config_was_made_from_gives_it_again_without_a_look(monkeypatch):
    words = preset_and_assignments(shlex.split(EXITS))
    resolved = choose.resolve(*words)
    monkeypatch.setattr(look, "probe_all", None)
    assert overrides.resolve(resolved.base, words[1]).config == resolved.config


def test_python_gets_the_same_config():
    config = choose.make_config(env="pettingzoo:tianji.envs.exits", env_kwargs={"num_agents": 3})
    assert config == resolve(EXITS).config
