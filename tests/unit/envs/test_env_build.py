"""Finding, making and looking at environments, and what is said when that fails."""

import re
import sys
import textwrap

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import WrapperSpec
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import PassiveEnvChecker, TimeLimit

from tianji.envs.build import build_world, make_rows, probe
from tianji.envs.single import SingleWorld
from tianji.envs.vector import NextStepWorld, SameStepWorld
from tianji.envs.worlds import Chain, Counting, Pixels
from tianji.errors import UsageError

CARTPOLE = "gymnasium.envs.classic_control.cartpole:"


@pytest.fixture
def registered():
    """Ids that a test registers, taken out of the registry afterwards."""
    before = set(gym.registry)
    yield
    for env_id in set(gym.registry) - before:
        del gym.registry[env_id]


@pytest.fixture
def write_module(tmp_path, monkeypatch):
    """A module of the user's in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        monkeypatch.delitem(sys.modules, name, raising=False)

    return write


# What is chosen


def test_an_id_with_its_own_vector_environment_uses_it():
    world = build_world("CartPole-v1", {"sutton_barto_reward": True}, 3)
    assert isinstance(world, NextStepWorld)
    assert type(world.env).__name__ == "CartPoleVectorEnv"
    assert world.num_envs == 3


@pytest.mark.parametrize("limit", [None, 500])
def test_a_time_limit_that_is_not_changed_keeps_the_vector_environment(limit):
    seen = probe("CartPole-v1", {"max_episode_steps": limit})
    assert "own vector environment" in seen.vectorised
    assert seen.max_episode_steps == 500


def test_a_time_limit_reaches_the_vector_environment():
    world = build_world("CartPole-v1", {"max_episode_steps": 2}, 2)
    rows = make_rows(world, 2)
    world.reset(1, rows)
    for t in range(2):
        world.step(np.zeros(2, np.int64), rows, t)
    assert rows["truncated"].tolist() == [[False, False], [True, True]]


def test_no_time_limit_at_all_goes_one_by_one():
    world = build_world("CartPole-v1", {"max_episode_steps": -1}, 2)
    assert isinstance(world, SingleWorld)
    assert "without a time limit" in probe("CartPole-v1", {"max_episode_steps": -1}).vectorised


def test_an_option_that_its_vector_environment_lacks_goes_one_by_one(registered):
    gym.register(
        "Optional-v0",
        entry_point="tianji.envs.worlds:Counting",
        vector_entry_point=CARTPOLE + "CartPoleVectorEnv",
    )
    seen = probe("Optional-v0", {"spread": 3})
    assert "does not know spread" in seen.vectorised
    assert seen.spaces == probe(Counting, {}).spaces


def test_an_id_with_wrappers_of_its_own_goes_one_by_one(registered):
    limit = WrapperSpec("TimeLimit", "gymnasium.wrappers:TimeLimit", {"max_episode_steps": 5})
    gym.register(
        "Wrapped-v0",
        entry_point=CARTPOLE + "CartPoleEnv",
        vector_entry_point=CARTPOLE + "CartPoleVectorEnv",
        additional_wrappers=(limit,),
    )
    assert "lacks the wrappers" in probe("Wrapped-v0", {}).vectorised


def test_native_vector_environments_get_one_thread_unless_told_otherwise(registered):
    asked = []

    def make_native(num_envs, num_threads=0):
        asked.append(num_threads)
        return SyncVectorEnv([Counting] * num_envs)

    gym.register("Native-v0", vector_entry_point=make_native)
    build_world("Native-v0", {}, 2)
    build_world("Native-v0", {"num_threads": 4}, 2)
    assert asked == [1, 4]


def test_environments_are_made_without_gymnasiums_checker():
    (env,) = build_world("Acrobot-v1", {}, 1).envs
    while isinstance(env, gym.Wrapper):
        assert not isinstance(env, PassiveEnvChecker)
        env = env.env


def test_an_id_without_a_version_is_its_newest_version():
    assert probe("CartPole", {}).max_episode_steps == 500


def test_a_factory_with_num_envs_makes_one_vector_environment():
    def make(num_envs, length):
        envs = [lambda: Counting(length)] * num_envs
        return SyncVectorEnv(envs, autoreset_mode=AutoresetMode.DISABLED)

    world = build_world(make, {"length": 3}, 4)
    assert isinstance(world, SameStepWorld)
    assert world.num_envs == 4
    assert probe(make, {"length": 3}).keeps_final


def test_a_factory_without_num_envs_is_called_for_each_environment():
    made = []

    def make(length):
        made.append(Counting(length))
        return made[-1]

    assert build_world(make, {"length": 3}, 4).envs == tuple(made)


def test_a_module_of_the_current_folder_can_hold_the_factory(write_module):
    write_module(
        "my_games",
        """
        from tianji.envs.worlds import Chain
        def make_chain(length):
            return Chain(length)
        """,
    )
    assert probe("my_games:make_chain", {"length": 7}).spaces == probe(Chain, {"length": 7}).spaces


def test_a_module_can_register_the_id_that_follows_it(write_module, registered):
    write_module(
        "my_registry",
        """
        import gymnasium
        gymnasium.register("mine/Chain-v0", entry_point="tianji.envs.worlds:Chain",
                           max_episode_steps=4)
        """,
    )
    assert probe("my_registry:mine/Chain-v0", {}).max_episode_steps == 4
    assert probe("my_registry:mine/Chain", {}).max_episode_steps == 4


# What a probe says


def test_a_probe_finds_the_time_limit_of_a_factorys_environment():
    assert probe(lambda: TimeLimit(Counting(), 6), {}).max_episode_steps == 6
    assert probe(Counting, {}).max_episode_steps is None


def test_a_probe_says_whether_the_state_is_offered():
    assert probe("CartPole-v1", {}).offers_state
    assert not probe("FrozenLake-v1", {}).offers_state


def test_a_probe_says_when_the_autoreset_mode_is_a_guess():
    class Silent(SyncVectorEnv):
        def __init__(self, num_envs):
            super().__init__([Counting] * num_envs)
            self.metadata = {}

    assert "does not say when it resets, so next step is assumed" in probe(Silent, {}).vectorised


# What is said when it fails


@pytest.mark.parametrize(
    ("env", "kwargs", "words"),
    [
        ("CartPol-v1", {}, "Unknown environment 'CartPol-v1'. Did you mean 'CartPole-v1'"),
        ("cartpole-v1", {}, "Did you mean 'CartPole-v1'"),
        ("LunarLander-v2", {}, "Did you mean 'LunarLander-v3'"),
        ("CartPole-v1", {"gravity": 3}, "unexpected keyword argument 'gravity'"),
        ("CartPole-v1", {"num_envs": 3}, "use `num_envs` there"),
        ("no_such_module:make", {}, "No module named 'no_such_module'"),
        ("tianji.envs.worlds:Countin", {}, "nor has a function or class of that name"),
        ("tianji.envs.worlds:Countin", {}, "Did you mean 'Counting'"),
        ("math:pi", {}, "is a float, not a function"),
        ("tianji.envs.build:MORE_ENVS", {}, "is an int, not a function"),
        ("tianji.envs.worlds:Counting", {"size": 3}, "unexpected keyword argument 'size'"),
        (lambda: 3, {}, "makes an int, not a gymnasium.Env"),
        (lambda num_envs: Counting(), {}, "must make a gymnasium.vector.VectorEnv"),
        (lambda num_envs: SyncVectorEnv([Counting] * 2), {}, "asked for 1 environments and made 2"),
        (lambda: SyncVectorEnv([Counting]), {}, "must take a parameter `num_envs`"),
    ],
)
def test_what_cannot_be_made_is_explained_before_anything_starts(env, kwargs, words):
    with pytest.raises(UsageError) as raised:
        probe(env, kwargs)
    assert words in str(raised.value)


def test_an_environment_of_a_script_that_has_ended_is_answered_with_the_ways_out():
    with pytest.raises(UsageError) as raised:
        probe("__main__:Chase", {})
    assert str(raised.value) == (
        "Environment '__main__:Chase' was defined in the script that trained, and cannot be found "
        "from here. In Python, pass it: tianji.load(RUN, env=Chase), or tianji.run.resume_run("
        "RUN_DIR, {}, env=Chase). For the commands, move it into a module, such as chase.py, and "
        "train with --env chase:Chase."
    )


def test_a_nameless_environment_of_a_script_is_answered_too():
    with pytest.raises(UsageError, match=r"load\(RUN, env=MAKER\).* --env chase:MAKER"):
        probe("__main__:run.<locals>.<lambda>#2", {})


MIXED = """
    import gymnasium as gym
    import numpy as np
    from tianji.envs.worlds import Counting

    class Base(gym.Env):
        pass

    def notenv():
        return 3
"""


def test_only_names_that_may_make_environments_are_suggested(write_module):
    write_module("weird", MIXED)
    with pytest.raises(UsageError) as raised:
        probe("weird:Nope", {})
    assert "'np'" not in str(raised.value)
    for wrong, right in (("Bass", "Base"), ("notenw", "notenv"), ("Countin", "Counting")):
        with pytest.raises(UsageError, match=f"Did you mean '{right}'"):
            probe(f"weird:{wrong}", {})


@pytest.mark.parametrize("named", ["./weird.py:Base", "weird.py:Base"])
def test_a_file_in_place_of_a_module_is_answered_with_the_module(named, write_module):
    write_module("weird", MIXED)
    with pytest.raises(UsageError, match=r"names a file\. Name its module: 'weird:Base'"):
        probe(named, {})


@pytest.mark.parametrize("named", ["weird", "weird.py", "./weird.py"])
def test_a_module_without_a_name_in_it_is_answered_with_its_environments(named, write_module):
    write_module("weird", MIXED)
    with pytest.raises(UsageError) as raised:
        probe(named, {})
    assert str(raised.value) == (
        f"'{named}' is a module: write 'weird:NAME', with the name of a class or function in it "
        "that makes an environment. It has weird:Counting and weird:Base."
    )


def test_a_module_that_cannot_be_imported_is_answered_without_its_environments(write_module):
    write_module("weird", "raise ValueError('no display')")
    with pytest.raises(UsageError, match=r"write 'weird:NAME', .* makes an environment\.$"):
        probe("weird", {})


def test_the_first_cause_of_a_factorys_error_is_named():
    def make():
        try:
            raise FileNotFoundError("maze.txt is missing")
        except FileNotFoundError as error:
            raise RuntimeError("could not start") from error

    with pytest.raises(UsageError, match=r"FileNotFoundError: maze\.txt is missing"):
        probe(make, {})


def test_an_error_in_reset_is_found_too():
    class Broken(Counting):
        def begin(self, seeded):
            raise ValueError("no level 3")

    with pytest.raises(UsageError, match="ValueError: no level 3"):
        probe(Broken, {})


def test_a_first_observation_of_the_wrong_shape_is_found_too():
    class Thin(Counting):
        def observe(self):
            return super().observe()[:1]

    with pytest.raises(UsageError, match=r"shape \(1,\)"):
        probe(Thin, {})


def test_a_wrapper_without_opencv_is_answered_with_the_command_that_installs_it(monkeypatch):
    """Gymnasium's wrappers for images import it when they are made or first used."""

    def small():
        return gym.wrappers.ResizeObservation(Pixels(), (20, 20))

    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(UsageError, match="pip install opencv-python-headless"):
        probe(small, {})


@pytest.mark.parametrize(
    ("env", "module", "extra"),
    [
        ("LunarLander-v3", "Box2D", "box2d"),
        ("Hopper-v5", "mujoco", "mujoco"),
        ("ALE/Pong-v5", "ale_py", "atari"),
    ],
)
def test_a_missing_package_is_answered_with_the_command_that_installs_it(
    env, module, extra, monkeypatch, registered
):
    packages = ("gymnasium.envs.box2d", "gymnasium.envs.mujoco", module)
    for name in [name for name in sys.modules if name.startswith(packages)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    for env_id in [env_id for env_id in gym.registry if env_id.startswith("ALE/")]:
        monkeypatch.delitem(gym.registry, env_id)
    with pytest.raises(UsageError) as raised:
        probe(env, {})
    assert f". Install it with: pip install 'tianji[{extra}]'" in str(raised.value)


class Refusing(Counting):
    """Refuses actions from the first step on; of all environments, the first few steps fail."""

    failures = 0

    def __init__(self, error, num_failures=10**9):
        super().__init__(length=100)
        self.error, self.num_failures = error, num_failures

    def step(self, action):
        if self.failures < self.num_failures:
            self.failures += 1
            raise self.error
        return super().step(action)


def test_an_environment_in_which_no_random_step_succeeds_is_refused_with_its_line():
    with pytest.raises(UsageError) as refused:
        probe(Refusing, {"error": KeyError("speed")})
    assert re.search(
        r"failed in its first step with each of 8 random actions: KeyError: 'speed' "
        r"\(in step\(\) of test_env_build.py, line \d+\)\.$",
        str(refused.value),
    )


def test_an_environment_that_refuses_all_actions_may_lack_masks():
    with pytest.raises(UsageError, match=r"line \d+\)\. If not all actions are legal, give info"):
        probe(Refusing, {"error": AssertionError()})


def test_a_first_step_that_fails_with_some_actions_is_no_reason_to_refuse():
    found = probe(Refusing, {"error": AssertionError(), "num_failures": 3})
    assert found.step_failure.startswith("AssertionError (in step() of ")
