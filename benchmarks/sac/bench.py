"""SAC's updates per second: our learner with its replay store, the same update in plain torch,
Stable-Baselines3's train(), if it is installed, and the limit: the matrix products of an update
alone. The same sizes, threads and device for all.

    python -m benchmarks.sac.bench                     20 rounds, about 3 minutes
    python -m benchmarks.sac.bench --device cuda
    python -m benchmarks.sac.bench --quick
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box

from benchmarks.harness import ROOT, Report, alternate, median, parser, run_json, say, spread
from benchmarks.rooms import ActorRoom, make_spec
from benchmarks.sac.plain_sac import PlainSAC, Sizes
from benchmarks.sac.products import Products
from tianji.algorithms.interface import ReplayCadence
from tianji.algorithms.registry import load_algorithm
from tianji.engines.assembly.model import build_model, on_device
from tianji.engines.assembly.replay import build_replay
from tianji.engines.spec import RunSpec
from tianji.models.tensors import Snapshot

OURS, PLAIN, SB3, LIMIT = "ours", "plain torch", "stable-baselines3", "products alone"
PEERS_PYTHON = ROOT / ".peers" / "bin" / "python"
PEER = ROOT / "benchmarks" / "sac" / "peers" / "sb3_sac.py"
NUM_STEPS = 4000
MIN_OF_PLAIN = 0.75
MIN_OF_SB3 = {"cpu": 1.5, "cuda": 5.0}

Rate = Callable[[float], float]
"""Seconds to updates per second."""


def sizes_of(spec: RunSpec) -> Sizes:
    obs, action = spec.spaces.observation, spec.spaces.action
    assert isinstance(obs, Box) and isinstance(action, Box), "a preset with plain numbers"
    hidden = spec.config.model.hidden
    batch_size = spec.config.algorithm.model_dump()["batch_size"]
    return Sizes(obs.shape[0], action.shape[0], tuple(hidden), batch_size)


def ours(spec: RunSpec) -> Rate:
    """Versions as the learner makes them: take a batch, make its updates, publish, read metrics."""
    algorithm = load_algorithm(spec.config.algorithm.name)
    cadence = algorithm.cadence(spec.config)
    assert isinstance(cadence, ReplayCadence)
    room = ActorRoom(spec)
    store = build_replay(spec, room.receiver, lambda x: np.zeros(x.nbytes, np.uint8), cadence, 1)
    for _ in range(NUM_STEPS // spec.plan.steps_per_unroll):
        slot = room.make_unroll()
        store.put(slot, room.receiver.stamp(slot))
    model = on_device(build_model(spec), spec, spec.plan.device)
    update = algorithm.build_update(model, spec.spaces, spec.config)
    snapshot = Snapshot(model)
    payload = np.empty(snapshot.nbytes, np.uint8)

    def version() -> int:
        num_updates = 0
        for minibatch in update.minibatches(store.take(0), 0.0):
            minibatch.gradient()
            minibatch.step()
            num_updates += 1
        snapshot.write_to(payload)
        update.metrics()
        return num_updates

    return lambda seconds: _rate(version, seconds)


def bare(made: PlainSAC | Products, device: str) -> Rate:
    def version() -> int:
        made.run(32)
        if device != "cpu":
            torch.cuda.synchronize()
        return 32

    return lambda seconds: _rate(version, seconds)


def _rate(version: Callable[[], int], seconds: float) -> float:
    updates, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        updates += version()
    return updates / elapsed


def stable_baselines(sizes: Sizes, args: argparse.Namespace) -> Rate:
    def rate(seconds: float) -> float:
        words: dict[str, Any] = {
            "obs": sizes.num_obs, "numbers": sizes.num_numbers, "batch-size": sizes.batch_size,
            "seconds": seconds, "threads": args.threads, "device": args.device,
        }  # fmt: skip
        options = [word for name, value in words.items() for word in (f"--{name}", str(value))]
        found = run_json([PEERS_PYTHON, PEER, *options], timeout_s=120.0)
        return float(found["updates_per_s"])

    return rate


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--preset", default="halfcheetah-sac")
    made.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    made.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    made.add_argument("--rounds", type=int, default=20)
    args = made.parse_args()
    report = Report("sac", args)
    torch.set_num_threads(args.threads)
    # A free balance makes every version of the same number of updates, whatever was put.
    few = {"replay_size": NUM_STEPS, "warmup_steps": 1, "learning_rate": 1e-6}
    more = {"device": args.device, "checkpoint": {"replay": False}, "algorithm": few}
    spec = make_spec(args.preset, balance="free", **more)
    sizes = sizes_of(spec)
    report.note(sizes=sizes._asdict(), threads=args.threads, device=args.device)
    runs = {
        OURS: ours(spec),
        PLAIN: bare(PlainSAC(sizes, args.device), args.device),
        LIMIT: bare(Products(sizes, args.device), args.device),
    }
    if PEERS_PYTHON.exists():
        runs[SB3] = stable_baselines(sizes, args)
    else:
        say("Stable-Baselines3 is not installed, and left out: run `make peers`.")
    rounds, seconds = (2, 0.5) if args.quick else (args.rounds, 2.0)
    for run in (runs[OURS], runs[PLAIN], runs[LIMIT]):
        run(0.2)  # the first updates allocate, or record
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for name, turn in alternate(list(runs), range(rounds)):
        rates[name].append(runs[name](seconds))
        report.add(name, turn, {"updates_per_s": rates[name][-1]})
    of = {
        other: [mine / theirs for mine, theirs in zip(rates[OURS], rates[other], strict=True)]
        for other in runs
    }
    rows = [[name, spread(rates[name], 0), spread(of[name])] for name in runs]
    title = f"SAC, {sizes}, {args.threads} threads, {args.device}"
    report.table(title, ["contestant", "updates/s", "ours / this"], rows)
    report.check("updates/s, ours / plain torch", median(of[PLAIN]), ">=", MIN_OF_PLAIN)
    if SB3 in runs:
        what = f"updates/s on {args.device}, ours / Stable-Baselines3"
        report.check(what, median(of[SB3]), ">=", MIN_OF_SB3[args.device])
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
