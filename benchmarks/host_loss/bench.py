"""A host is killed: how long until the others work at their share again?

    python -m benchmarks.host_loss.bench            3 hosts, each kind of run twice, about 4 minutes
    python -m benchmarks.host_loss.bench --quick

Three hosts (network namespaces) with Ray; environments sleep 5 ms a step, so that hosts that share
the cores of one machine do not take them from each other. Two kinds of run: a group on each host,
mixed by `average`, and one group with actors on two other hosts. One host is killed, and none takes
its place. The share that remains is that of the actors that are left. The rest is back after the
last five seconds in which its rate was below 0.9 of that share.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.harness import Report, alternate, median, parser, say, tianji_command
from benchmarks.namespaces import why_not
from benchmarks.ray_nodes import RayNodes, ray_nodes

NUM_HOSTS = 3
MUST_S = 15.0
ENOUGH = 0.9
"""Of the remaining share; rates of single seconds vary."""
WINDOW_S = 5.0
SERIES = ("seconds", "env_steps")
SAMPLE_S = 0.2
AFTER_S = 25.0
"""How long rates are looked at after the loss."""
LIMIT_S = 90.0
SIZES = (
    "--env", "tianji.envs.worlds:Slow", "--env-kwargs", '{"seconds": 0.005, "length": 50}',
    "--algorithm", "ppo", "--unroll-length", "8", "--minibatch-size", "64", "--epochs", "1",
    "--learner-threads", "1", "--plan.source", "rule", "--observe.period-s", "0.2",
    "--no-tensorboard", "--target-return", "none", "--max-env-steps", "1000000000", "--run", "run",
)  # fmt: skip
KINDS = {
    "a group on each host": (
        "--num-groups", "3", "--combine", "average", "--num-envs", "4", "--num-actors", "2",
    ),
    "actors on other hosts": ("--actor-hosts", "2", "--num-envs", "12", "--num-actors", "6"),
}  # fmt: skip


class Progress(NamedTuple):
    """Environment steps over the time of this process."""

    at_s: float
    env_steps: int


class Run:
    """A run on the cluster that is watched from outside."""

    def __init__(self, nodes: RayNodes, words: Sequence[str]) -> None:
        command = tianji_command("train", *SIZES, *words, "--engine", "ray")
        self.folder = nodes.folder / "runs" / "run"
        self.process = subprocess.Popen(
            [*nodes.prefix, *command, "--ray-address", nodes.address],
            cwd=nodes.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def lines(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / name
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]

    def look(self) -> Progress:
        if self.process.poll() is not None:
            assert self.process.stderr is not None
            raise RuntimeError(f"the run has ended: {self.process.stderr.read()}")
        records = self.lines("metrics.jsonl")
        return Progress(time.monotonic(), records[-1]["env_steps"] if records else 0)

    def rate(self, seconds: float) -> float:
        before = self.look()
        time.sleep(seconds)
        after = self.look()
        return (after.env_steps - before.env_steps) / (after.at_s - before.at_s)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)


def settled_rate(run: Run, seconds: float) -> float:
    """Return the rate once it no longer grows: all hosts have begun."""
    deadline_s = time.monotonic() + LIMIT_S
    before = 0.0
    while True:
        rate = run.rate(seconds)
        if before and rate < 1.05 * before:
            return max(rate, before)
        before = rate
        if time.monotonic() > deadline_s:
            raise RuntimeError("the rates do not settle")


def share_left(run: Run, kind: str, nodes: RayNodes) -> tuple[int, float]:
    """Return the host to kill, and the share of the actors that is left then."""
    if "group" in kind:
        return NUM_HOSTS, (NUM_HOSTS - 1) / NUM_HOSTS
    told = [event["text"].split() for event in run.lines("events.jsonl")]
    (host, num_actors) = next((words[0], int(words[2])) for words in told if words[1:2] == ["runs"])
    plan = json.loads((run.folder / "plan.json").read_text())
    return nodes.network.addresses.index(host), 1 - num_actors / plan["num_actors"]


def back_after(seen: Sequence[Progress], enough: float) -> float:
    """Return the end of the last window with a lower rate than that; 0 if there is none."""
    lows = [0.0]
    for first in seen:
        last = next((one for one in seen if one.at_s >= first.at_s + WINDOW_S), None)
        if last is None:
            break
        rate = (last.env_steps - first.env_steps) / (last.at_s - first.at_s)
        if rate < enough:
            lows.append(last.at_s - seen[0].at_s)
    return lows[-1]


def measure(kind: str, seconds: float) -> dict[str, Any]:
    """Return the rates before and after the loss, and the time until the rest is back."""
    with ray_nodes(1 + NUM_HOSTS) as nodes:
        for host in range(1, 1 + NUM_HOSTS):
            nodes.join(host)
        run = Run(nodes, KINDS[kind])
        try:
            before = settled_rate(run, seconds)
            host, share = share_left(run, kind, nodes)
            nodes.network.kill(host)
            seen = [run.look()]
            while seen[-1].at_s < seen[0].at_s + AFTER_S:
                time.sleep(SAMPLE_S)
                seen.append(run.look())
            after = run.rate(seconds)
        finally:
            run.stop()
        return {
            "rate_before": before,
            "rate_after": after,
            "share": share,
            "seconds": [round(one.at_s - seen[0].at_s, 2) for one in seen],
            "env_steps": [one.env_steps - seen[0].env_steps for one in seen],
            "back_after_s": back_after(seen, ENOUGH * share * before),
            "stopped_because": json.loads((run.folder / "summary.json").read_text())[
                "stopped_because"
            ],
        }


def main(argv: Sequence[str] | None = None) -> int:
    made = parser(__doc__ or "")
    made.add_argument("--rounds", type=int, default=2)
    made.add_argument("--seconds", type=float, default=6.0, help="for each rate")
    args = made.parse_args(argv)
    if args.quick:
        args.rounds, args.seconds = 1, 3.0
    report = Report("host_loss", args, ("ray",))
    if reason := why_not():
        say(f"skipped: {reason}")
        return 0
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for kind, number in alternate(list(KINDS), range(1, args.rounds + 1)):
        found[kind].append(measure(kind, args.seconds))
        report.add(kind, number, found[kind][-1])
        told = {name: value for name, value in found[kind][-1].items() if name not in SERIES}
        say(f"{kind}: {told}")
    rows = []
    for kind, results in found.items():
        backs = [one["back_after_s"] for one in results]
        shares = [one["rate_after"] / one["rate_before"] / one["share"] for one in results]
        rows.append([kind, f"{results[0]['share']:.2f}", f"{median(backs) or 0:.1f}",
                     f"{median(shares) or 0:.2f}"])  # fmt: skip
        report.check(f"{kind}: seconds until that share", max(backs), "<=", MUST_S)
    headers = ["run", "share that remains", "back after s", "x that share, later"]
    report.table("A host is killed", headers, rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
