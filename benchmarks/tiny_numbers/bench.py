"""What numbers under the normal range cost the optimiser. One thread.

python -m benchmarks.tiny_numbers.bench            10 rounds, some seconds
python -m benchmarks.tiny_numbers.bench --quick
"""

from __future__ import annotations

import statistics
import sys
import time

import torch

from benchmarks.harness import Report, alternate, parser, spread
from tianji.engines.arithmetic import flush_tiny_numbers

SIZE = 70_000  # the parameters of a 256 x 256 network on CartPole
DECAY_STEPS = 1_200  # 0.9^1200 is far below the smallest float32
TIMED_STEPS = 200
KEPT, FLUSHED = "kept", "flushed"


def step_ms(is_flushed: bool) -> float:
    """One step of fused Adam, long after the gradients of all units became zero."""
    torch.set_flush_denormal(False)
    if is_flushed:
        flush_tiny_numbers()
    weights = torch.nn.Parameter(torch.randn(SIZE))
    adam = torch.optim.Adam([weights], lr=1e-3, fused=True)
    weights.grad = torch.randn(SIZE)
    adam.step()
    weights.grad.zero_()
    for _ in range(DECAY_STEPS):
        adam.step()
    started = time.perf_counter()
    for _ in range(TIMED_STEPS):
        adam.step()
    return (time.perf_counter() - started) / TIMED_STEPS * 1e3


def main() -> int:
    args = parser(__doc__ or "").parse_args()
    torch.set_num_threads(1)
    report = Report("tiny_numbers", args)
    found: dict[str, list[float]] = {KEPT: [], FLUSHED: []}
    for contestant, turn in alternate((KEPT, FLUSHED), range(1 if args.quick else 10)):
        found[contestant].append(step_ms(contestant == FLUSHED))
        report.add(contestant, turn, {"step_ms": found[contestant][-1]})
    rows = [[name, spread(values, 3)] for name, values in found.items()]
    report.table("A step of Adam, ms", ["tiny numbers are", "median (range)"], rows)
    gain = statistics.median(found[KEPT]) / statistics.median(found[FLUSHED])
    report.check("kept / flushed", gain, ">=", 1.0)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
