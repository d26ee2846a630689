"""An environment that crashes the interpreter, before a run has processes of its own."""

import signal

import pytest

from tests.system.commands import Command

CRASHES = """
import ctypes
import gymnasium as gym

class Crashes(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        ctypes.string_at(0)
"""


@pytest.mark.parametrize("verb", ["train", "doctor"])
def test_a_crash_in_native_code_names_the_line_of_the_environment(verb, tmp_path):
    (tmp_path / "crashing.py").write_text(CRASHES)
    command = Command(tmp_path, verb, "--env", "crashing:Crashes")
    code, _, err = command.finish()
    assert code == -signal.SIGSEGV
    assert "Segmentation fault" in err
    assert 'crashing.py", line 13 in step' in err
