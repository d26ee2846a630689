"""Stacks of frames stored and sent whole, in place of each frame once."""

from __future__ import annotations

from contextlib import closing

from tianji.config.schema import ENV_KWARGS
from tianji.config.values import Values
from tianji.errors import UsageError
from tianji.programs.style import Given, Style
from tianji.programs.styles import tianji


def settings(values: Values, given: Given) -> Values:
    """Let the environments give whole stacks; UsageError where they give no stacks."""
    from tianji.envs.build import build_world  # it loads the environment's package
    from tianji.envs.find import WHOLE_STACKS
    from tianji.envs.spaces import Frames

    with closing(build_world(values["env"], values[ENV_KWARGS], 1)) as world:
        has_frames = isinstance(world.spaces.observation, Frames)
    if not has_frames:
        raise UsageError(
            f"style is 'stacks', and env is '{values['env']}', whose observations are no stacks of "
            "frames that are stored once. Use a preset such as pong-ppo or catch-frames-ppo, or "
            "another --style."
        )
    return {**values, ENV_KWARGS: {**values[ENV_KWARGS], WHOLE_STACKS: True}}


STYLE = Style(
    name="stacks",
    about="Observations of several frames are stored and sent whole, not each frame once.",
    settings=settings,
    program=tianji.program,
    differences=("Memory: about as many times the bytes as a stack has frames, for equal stacks.",),
    kind="ablation",
)
