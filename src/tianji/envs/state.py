"""Exact resume: reads and restores the state of environments that offer it.

An environment offers its state with two methods (`Stateful`), its own or those of a wrapper.
Gymnasium's classic control and MuJoCo environments, its vector CartPole and the Arcade Learning
Environment have no such methods, but their state can be reached. A wrapper that has a state of its
own, other than TimeLimit, makes the environment one without exact resume: a part of the state would
be worse than none.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import wrappers
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.vector import SyncVectorEnv, VectorEnv

from tianji.envs.masks import MaskedEnv, MaskedVector
from tianji.envs.remembering import PositionsOfCartPole
from tianji.envs.twins import Twin

STATELESS_WRAPPERS = (
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.FlattenObservation,
    wrappers.FilterObservation,
    wrappers.ReshapeObservation,
    wrappers.RescaleObservation,
    wrappers.GrayscaleObservation,
    wrappers.ResizeObservation,
    wrappers.DtypeObservation,
    wrappers.ClipAction,
    wrappers.RescaleAction,
    wrappers.ClipReward,
    Twin,
    MaskedEnv,
)
"""Compared by exact type, because a subclass may have a state."""

MUJOCO_DERIVED = (
    *("xpos", "xquat", "xmat", "xipos", "ximat", "xanchor", "xaxis"),
    *("geom_xpos", "geom_xmat", "site_xpos", "site_xmat", "cam_xpos", "cam_xmat"),
    *("subtree_com", "subtree_linvel", "subtree_angmom", "cinert", "cvel", "cacc", "cfrc_ext"),
    *("cfrc_int", "qfrc_actuator", "qfrc_constraint", "actuator_force", "sensordata", "qacc"),
)
"""Values that MuJoCo computes from its state at the start of a step. Rewards read some of them
before the next step (Ant: xpos), when they still belong to the step before: they are saved too."""


def get_env_state(env: gym.Env[Any, Any]) -> dict[str, Any] | None:
    """Return the state of one environment with its wrappers; None if it offers none."""
    keeper = _keeper(env)
    if keeper is None:
        return None
    generator = getattr(env.unwrapped, "_np_random", None)
    return {
        "inner": _read(keeper),
        "elapsed_steps": [limit._elapsed_steps for limit in time_limits(env)],
        "random": None if generator is None else generator.bit_generator.state,
    }


def set_env_state(env: gym.Env[Any, Any], state: dict[str, Any]) -> None:
    """Restore the result of get_env_state() in an environment that has been reset once."""
    keeper = _keeper(env)
    assert keeper is not None, "set_env_state() needs an environment that offers its state"
    _write(keeper, state["inner"])
    for limit, elapsed in zip(time_limits(env), state["elapsed_steps"], strict=True):
        limit._elapsed_steps = elapsed
    if state["random"] is not None:
        env.unwrapped.np_random.bit_generator.state = state["random"]


def get_vector_state(env: VectorEnv[Any, Any, Any]) -> dict[str, Any] | None:
    """Return the state of a vector environment; None if it offers none."""
    if isinstance(env, MaskedVector):
        return get_vector_state(env.env)
    if _offers(env):
        state: dict[str, Any] = env.get_state()  # type: ignore[attr-defined]  # just checked
        return state
    if type(env) in (CartPoleVectorEnv, PositionsOfCartPole):
        assert isinstance(env, CartPoleVectorEnv)
        return {
            "state": np.array(env.state),
            "steps": env.steps.copy(),
            "prev_done": env.prev_done.copy(),
            "bounds": [float(env.low), float(env.high)],
            "random": env.np_random.bit_generator.state,
        }
    if type(env) is SyncVectorEnv:
        states = [get_env_state(one) for one in env.envs]
        autoreset = env._autoreset_envs.copy()
        return None if None in states else {"envs": states, "autoreset": autoreset}
    return None


def set_vector_state(env: VectorEnv[Any, Any, Any], state: dict[str, Any]) -> None:
    """Restore the result of get_vector_state() in an environment that has been reset once."""
    if isinstance(env, MaskedVector):
        set_vector_state(env.env, state)
    elif isinstance(env, CartPoleVectorEnv):
        env.state = np.array(state["state"])  # type: ignore[assignment]  # declared as None there
        env.steps = np.array(state["steps"])
        env.prev_done = np.array(state["prev_done"])
        env.low, env.high = state["bounds"]
        env.np_random.bit_generator.state = state["random"]
    elif isinstance(env, SyncVectorEnv):
        for one, one_state in zip(env.envs, state["envs"], strict=True):
            set_env_state(one, one_state)
        env._autoreset_envs = np.array(state["autoreset"])
    else:
        env.set_state(state)  # type: ignore[attr-defined]  # get_vector_state() found it


def _layers(env: gym.Env[Any, Any]) -> Iterator[gym.Env[Any, Any]]:
    """Yield the wrappers from the outermost one inwards, then the environment itself."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env
    yield env


def time_limits(env: gym.Env[Any, Any]) -> list[Any]:
    """Return the TimeLimit wrappers around an environment."""
    return [layer for layer in _layers(env) if isinstance(layer, wrappers.TimeLimit)]


def _keeper(env: gym.Env[Any, Any]) -> gym.Env[Any, Any] | None:
    """Return the outermost layer that offers its own state and that of all layers inside it."""
    for layer in _layers(env):
        if _offers(layer) or _is_classic(layer) or _is_mujoco(layer) or _is_ale(layer):
            return layer
        if not isinstance(layer, wrappers.TimeLimit) and type(layer) not in STATELESS_WRAPPERS:
            return None
    return None


def _offers(env: object) -> bool:
    """Return whether it has get_state() and set_state(state); MuJoCo's takes (qpos, qvel)."""
    getter, setter = getattr(env, "get_state", None), getattr(env, "set_state", None)
    if not (callable(getter) and callable(setter)):
        return False
    parameters = inspect.signature(setter).parameters.values()
    return sum(parameter.default is parameter.empty for parameter in parameters) == 1


# Only the packages' own classes match: a person's subclass may have more state.
def _is_classic(env: gym.Env[Any, Any]) -> bool:
    return type(env).__module__.startswith("gymnasium.envs.classic_control.")


def _is_mujoco(env: gym.Env[Any, Any]) -> bool:
    return type(env).__module__.startswith("gymnasium.envs.mujoco.") and hasattr(env, "data")


def _is_ale(env: gym.Env[Any, Any]) -> bool:
    return type(env).__module__ == "ale_py.env"


def _read(keeper: Any) -> dict[str, Any]:
    if _offers(keeper):
        state: dict[str, Any] = keeper.get_state()
        return state
    if _is_classic(keeper):
        return {"state": np.array(keeper.state)}
    if _is_ale(keeper):
        emulator = keeper.ale.cloneState(include_rng=True).serialize()
        return {"emulator": np.frombuffer(emulator, np.uint8).copy()}
    import mujoco

    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    physics = np.empty(mujoco.mj_stateSize(keeper.model, kind), np.float64)
    mujoco.mj_getState(keeper.model, keeper.data, physics, kind)
    derived = {name: np.array(getattr(keeper.data, name)) for name in MUJOCO_DERIVED}
    return {"physics": physics, "derived": derived}


def _write(keeper: Any, state: dict[str, Any]) -> None:
    if _offers(keeper):
        keeper.set_state(state)
    elif _is_classic(keeper):
        keeper.state = np.array(state["state"])
    elif _is_ale(keeper):
        import ale_py

        keeper.ale.restoreState(ale_py.ALEState(state["emulator"].tobytes()))
    else:
        import mujoco

        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        mujoco.mj_setState(keeper.model, keeper.data, state["physics"], kind)
        for name, value in state["derived"].items():
            getattr(keeper.data, name)[...] = value
