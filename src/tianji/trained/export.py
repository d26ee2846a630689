"""A trained policy as ONNX, checked against the policy before the file is kept."""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tianji.algorithms.memory import greedy_actions, state_size
from tianji.envs.build import EnvSource, EnvSources, build_world, make_rows, to_tasks
from tianji.envs.frames import ObservationReader
from tianji.envs.masks import to_legal
from tianji.envs.spaces import make_action_cast
from tianji.errors import TianjiError, UsageError
from tianji.trained.policy import LoadedPolicy, load_policy
from tianji.types import OBS, Array, leaf_name

if TYPE_CHECKING:
    import torch

ONNX_FILE = "policy.onnx"
OUTPUT = "action"
STATE, NEXT_STATE = "state", "next_state"
"""Input and output of a policy with a memory; an episode begins with zeros."""
TOLERANCE = 1e-4
"""Most that continuous actions may differ, as a share of the largest where that is above 1;
other actions must be the same."""
CHECK_STEPS, CHECK_ENVS = 64, 4


def export_run(
    run_dir: Path,
    output: Path | None = None,
    checkpoint: str = "best",
    env: EnvSources | None = None,
) -> dict[str, Any]:
    """Write the greedy policy of a run as ONNX, from observation leaves by name to the actions that
    its environment takes.

    The file is only kept if it acts as the policy does, on observations of its environment and
    for several batch sizes.
    """
    missing = [n for n in ("onnx", "onnxscript", "onnxruntime") if not importlib.util.find_spec(n)]
    if missing:
        raise UsageError(
            f"ONNX export needs {', '.join(missing)}. Install it with: pip install 'tianji[export]'"
        )
    path = output or run_dir / ONNX_FILE
    if path.is_dir() or (path.parent.exists() and not path.parent.is_dir()):
        raise UsageError(f"'{path}' cannot be written: it must be the path of a file, in a folder.")
    policy = load_policy(run_dir, checkpoint, env)
    config = policy.config
    tasks = to_tasks(config.tasks, env or config.envs or config.env)
    observations = _collect(next(iter(tasks.values())), policy)
    if size := state_size(policy.acting):
        num_rows = len(next(iter(observations.values())))
        states_NS = np.random.default_rng(0).uniform(-1.0, 1.0, (num_rows, size))
        observations[STATE] = states_NS.astype(np.float32)
    draft = path.with_name(f".{path.name}.draft")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        _write_onnx(policy, observations, draft)
        difference = _compare(policy, observations, draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return {
        "output": str(path),
        "checkpoint": policy.checkpoint.name,
        "version": policy.version,
        "note": policy.note,
        "inputs": {name: [None, *a.shape[1:]] for name, a in observations.items()},
        "outputs": _outputs(observations),
        "checked_observations": len(next(iter(observations.values()))),
        "max_difference": difference,
    }


def _outputs(observations: Mapping[str, Array]) -> list[str]:
    return [OUTPUT, NEXT_STATE] if STATE in observations else [OUTPUT]


def _collect(env: EnvSource, policy: LoadedPolicy) -> dict[str, Array]:
    """Collect observations with random actions: unbounded spaces cannot be sampled sensibly."""
    mask = policy.spaces.masked_by
    world = build_world(env, policy.config.env_kwargs, CHECK_ENVS, action_mask=mask)
    space = policy.spaces.action
    space.seed(0)
    start = getattr(space, "start", 0)  # policies count actions from 0
    try:
        rows = make_rows(world, CHECK_STEPS)
        world.reset(0, rows)
        for t in range(CHECK_STEPS):
            chosen = [np.asarray(space.sample()) - start for _ in range(world.num_envs)]
            world.step(to_legal(np.stack(chosen), rows, t, policy.spaces), rows, t)
    finally:
        world.close()
    reader = ObservationReader(world.spaces.observation)
    seen = [{key: a.copy() for key, a in reader.row(rows, t).items()} for t in range(CHECK_STEPS)]
    return {leaf_name(OBS, key): np.concatenate([row[key] for row in seen]) for key in seen[0]}


def _write_onnx(policy: LoadedPolicy, observations: Mapping[str, Array], path: Path) -> None:
    import torch

    module = policy.algorithm.export(policy.model, policy.spaces, policy.config).eval()
    # Two, because exporters take a size of one for a constant.
    example = tuple(torch.as_tensor(array[:2]) for array in observations.values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)  # the exporters' messages
        try:
            torch.onnx.export(
                _capture(module, example),
                (),
                path,
                input_names=list(observations),
                output_names=_outputs(observations),
                dynamo=True,
                external_data=False,
                verbose=False,
            )
        finally:
            logging.disable(logging.NOTSET)


def _capture(module: torch.nn.Module, example: tuple[torch.Tensor, ...]) -> Any:
    """Return the module as a graph for any batch size. The ONNX exporter alone would turn a batch
    size that it cannot keep open into a constant."""
    import torch

    class Positional(torch.nn.Module):
        """Gives the module inputs without names."""

        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *leaves: torch.Tensor) -> Any:
            return self.module(*leaves)

    batch = torch.export.Dim("batch", min=1)
    shapes = (tuple({0: batch} for _ in example),)
    causes = []
    for strict in (False, True):  # the second understands `len(tensor)`, too
        try:
            return torch.export.export(Positional(), example, dynamic_shapes=shapes, strict=strict)
        except (RuntimeError, ValueError, AssertionError) as error:
            causes.append(error)
    first_line = str(causes[0]).partition("\n")[0]
    raise TianjiError(f"This network cannot be written as ONNX: {first_line}") from causes[0]


def _compare(policy: LoadedPolicy, observations: Mapping[str, Array], path: Path) -> float:
    """Return the largest difference between the two; TianjiError where they do not act alike."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        path.read_bytes(), options, providers=["CPUExecutionProvider"]
    )
    total = len(next(iter(observations.values())))
    cast = make_action_cast(policy.spaces.action)
    exact = not np.issubdtype(np.dtype(policy.spaces.action.dtype or np.int64), np.floating)
    worst = worst_state = 0.0
    for batch in (slice(0, 1), slice(0, 7), slice(0, total)):
        part = {name: array[batch] for name, array in observations.items()}
        state = policy.start(len(next(iter(part.values()))))
        if STATE in part:
            state.array_NS[:] = part[STATE]
        ours = cast(greedy_actions(policy.acting, part, state))
        theirs, *states = (np.asarray(x) for x in session.run(_outputs(part), part))
        if ours.shape != theirs.shape:
            raise TianjiError(
                f"The ONNX policy gives actions of shape {theirs.shape}, the policy {ours.shape}; "
                "nothing was written."
            )
        size = 1.0 if exact else max(1.0, float(np.abs(ours).max()))
        worst = max(worst, float(np.abs(ours.astype(float) - theirs.astype(float)).max()) / size)
        for their_state in states:
            worst_state = max(worst_state, float(np.abs(state.array_NS - their_state).max()))
    if worst > (0.0 if exact else TOLERANCE) or worst_state > TOLERANCE:
        raise TianjiError(
            f"The ONNX policy differs from the policy: actions differ by up to {worst:g} "
            f"over {total} observations. Nothing was written."
        )
    return worst
