"""Checks of this machine. Each check looks at one thing and says what it found.

No check changes anything. A check that cannot look (another system, a missing package) says so
instead of failing.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import resource
import shutil
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from tianji.channels.memory import HUGE_PAGE, Segment
from tianji.config.machine import cpu_quota, read_machine
from tianji.devices.find import torch_has_cuda
from tianji.devices.nvml import list_gpus
from tianji.envs.check import Finding
from tianji.errors import ChannelError
from tianji.run_folder.paths import RUNS

MIB = 2**20
GIB = 2**30
PACKAGES = ("torch", "gymnasium", "numpy", "pydantic", "rich", "pyyaml", "safetensors")
EXTRAS = {
    "atari": ("ale_py",),
    "envpool": ("envpool",),
    "box2d": ("Box2D",),
    "mujoco": ("mujoco",),
    "export": ("onnx", "onnxruntime", "onnxscript"),
    "video": ("imageio_ffmpeg", "pygame"),
    "ray": ("ray",),
    "mpi": ("mpi4py",),
    "pettingzoo": ("pettingzoo",),
}
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def check_machine() -> list[Finding]:
    """Check everything about the machine that a run depends on."""
    checks = (
        check_packages,
        check_extras,
        check_cores,
        check_memory,
        check_shared_memory,
        check_huge_pages,
        check_leftovers,
        check_limits,
        check_thread_variables,
        check_gpu,
        check_collectives,
        check_trust,
        check_disk,
    )
    return [finding for check in checks for finding in check()]


def _judge(is_good: bool, what: str, advice: str) -> Finding:
    """Return a finding that is good, or a warning with advice."""
    return Finding("ok", what) if is_good else Finding("warn", what, advice)


def check_packages() -> Iterator[Finding]:
    """Check Python and the packages that TianJi needs."""
    versions = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            yield Finding("error", f"{name} is not installed.", f"pip install {name}")
    yield Finding("ok", ", ".join(versions))


def check_extras() -> Iterator[Finding]:
    """Check the packages that some environments and commands need."""
    for extra, modules in EXTRAS.items():
        missing = [module for module in modules if importlib.util.find_spec(module) is None]
        what = f"not installed ({', '.join(missing)} missing)" if missing else "installed"
        advice = f'pip install "tianji[{extra}]"' if missing else ""
        yield Finding("ok", f"Extra '{extra}' is {what}.", advice)


def check_cores() -> Iterator[Finding]:
    """Check the cores that this process may use, which may be fewer than there are."""
    usable, present = len(read_machine().cores), os.cpu_count() or 1
    quota = cpu_quota()
    what = f"{usable} of {present} cores usable"
    what += f" (the control group allows {quota:g})." if quota else "."
    advice = "With one core, actors and learner take turns: the local engine is as fast as inline."
    yield _judge(usable > 1, what, advice)


def check_memory() -> Iterator[Finding]:
    """Check the available memory, limits of the control group included."""
    available = read_machine().memory_bytes
    what = f"{available / GIB:.1f} GiB of memory are available."
    advice = "Use few actors: each process takes about 0.3 GiB."
    yield _judge(available >= 2 * GIB, what, advice)


def check_shared_memory(folder: Path = Path("/dev/shm")) -> Iterator[Finding]:
    """Check memfds, which TianJi uses, and /dev/shm, which environments may use."""
    try:
        os.close(os.memfd_create("tianji-doctor"))
        yield Finding("ok", "Shared memory (memfd) works; it counts as ordinary memory.")
    except (AttributeError, OSError) as error:
        advice = "The local engine needs Linux 3.17 or later; use --engine inline."
        yield Finding("error", f"Shared memory (memfd) does not work: {error}", advice)
    try:
        space = shutil.disk_usage(folder)
    except OSError as error:
        yield Finding("ok", f"{folder} cannot be read: {error}")
        return
    what = f"{folder}: {space.free / MIB:,.0f} of {space.total / MIB:,.0f} MiB free."
    advice = "Environments with processes of their own may need it; docker run --shm-size=1g"
    yield _judge(space.free >= 64 * MIB, what, advice)


def check_huge_pages(rollup: Path = Path("/proc/self/smaps_rollup")) -> Iterator[Finding]:
    """Check whether large segments get huge pages, on which copying is faster."""
    try:
        segment = Segment.create("doctor", HUGE_PAGE)
        segment.close()  # the memory stays until `segment` goes
        lines = rollup.read_text().splitlines()
        mapped_kb = sum(int(x.split()[1]) for x in lines if x.startswith("ShmemPmdMapped:"))
    except (AttributeError, OSError, ChannelError) as error:
        yield Finding("ok", f"Cannot check whether shared memory uses huge pages: {error}")
        return
    if mapped_kb:
        yield Finding("ok", "Large segments of shared memory use huge pages.")
    else:
        advice = "Everything works; Linux 6.1 or later copies unrolls above 64 KB faster."
        yield Finding("ok", "Shared memory uses small pages.", advice)


def check_leftovers(proc: Path = Path("/proc")) -> Iterator[Finding]:
    """Look for processes that hold shared memory although their run is gone."""
    holders = {int(p.parent.name) for p in proc.glob("[0-9]*/fd") if _holds_segment(p)}
    orphans = sorted(pid for pid in holders if _parent(proc / str(pid)) == 1)
    if orphans:
        pids = " ".join(map(str, orphans))
        what = f"Processes of an earlier run still hold shared memory: {pids}."
        yield Finding("warn", what, f"If none of your runs is going on: kill {pids}")
    elif holders:
        yield Finding("ok", f"{len(holders)} processes of running trainings use shared memory.")
    else:
        yield Finding("ok", "No shared memory left over from earlier runs.")


def _holds_segment(descriptors: Path) -> bool:
    try:
        return any(os.readlink(fd).startswith("/memfd:tianji-") for fd in descriptors.iterdir())
    except OSError:  # another user's process, or one that just ended
        return False


def _parent(process: Path) -> int:
    try:
        status = (process / "status").read_text()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:"))


def check_limits() -> Iterator[Finding]:
    """Check the limits of open files and processes: every worker needs some of both."""
    limits = (
        ("Open files", resource.RLIMIT_NOFILE, 512, "-n"),
        ("Processes and threads", resource.RLIMIT_NPROC, 256, "-u"),
    )
    for name, limit, enough, flag in limits:
        soft, _ = resource.getrlimit(limit)
        has_limit = soft != resource.RLIM_INFINITY
        text = f"{soft:,} at most" if has_limit else "no limit"
        is_good = not has_limit or soft >= enough
        yield _judge(is_good, f"{name}: {text}.", f"ulimit {flag} {2 * enough}")


def check_thread_variables() -> Iterator[Finding]:
    """Look for thread variables: TianJi sets its own in its workers."""
    found = [f"{name}={os.environ[name]}" for name in THREAD_VARIABLES if name in os.environ]
    if found:
        what = f"Set in your environment: {', '.join(found)}."
        yield Finding("ok", what, "Workers ignore this; set --learner-threads instead.")


def check_gpu() -> Iterator[Finding]:
    """Check whether torch loads, and which GPUs it can use."""
    try:
        import torch
    except (ImportError, OSError) as error:
        yield Finding("error", f"torch cannot be loaded: {error}", "pip install torch")
        return
    gpus = list_gpus()
    if not gpus:
        yield Finding("ok", "There is no GPU; training runs on the CPU.")
    elif not torch_has_cuda():
        what = f"There is a GPU ({gpus[0].name}), but torch {torch.__version__} has no CUDA."
        yield Finding("warn", what, "Install a torch that is built with CUDA.")
    elif not torch.cuda.is_available():
        what = f"There is a GPU ({gpus[0].name}), but torch cannot use it."
        yield Finding("warn", what, "Compare the driver (`nvidia-smi`) with torch.version.cuda.")
    else:
        for gpu in gpus:
            free, total = gpu.free_bytes / GIB, gpu.total_bytes / GIB
            what = f"cuda:{gpu.index} is a {gpu.name} with {free:.0f} of {total:.0f} GiB free."
            yield _judge(free > total / 10, what, "Another program uses its memory: end it.")


def check_collectives() -> Iterator[Finding]:
    """Check whether actors can add up their gradients by all-reduce."""
    try:
        from torch import distributed
    except (ImportError, OSError):
        return  # said before
    if distributed.is_available() and distributed.is_gloo_available():
        advice = (
            "It is neither authenticated nor encrypted: use algorithm.realisation all-reduce only "
            "where you trust all users of this machine. The server realisation opens no ports."
        )
        yield Finding("ok", "All-reduce with gloo works on the loopback interface.", advice)
    else:
        advice = "Use --algorithm.realisation server (the default), or install torch from PyPI."
        yield Finding("ok", "This build of torch has no gloo, so there is no all-reduce.", advice)


def check_trust() -> Iterator[Finding]:
    """Warn of what crosses between hosts in clear, where an engine for several is installed."""
    engines = {"ray": "Ray", "mpi": "MPI"}
    found = [
        name
        for extra, name in engines.items()
        if all(importlib.util.find_spec(module) is not None for module in EXTRAS[extra])
    ]
    if not found:
        return
    what = (
        f"{' and '.join(found)} can be used. Between hosts, MPI and the collectives of `--combine "
        "gradients` are neither authenticated nor encrypted; Ray has its token, and encrypts only "
        "with TLS of its own."
    )
    yield Finding("warn", what, "Train on several hosts only in a network that you trust.")


def check_disk(folder: Path = RUNS) -> Iterator[Finding]:
    """Check the space for checkpoints where runs are written."""
    place = folder if folder.is_dir() else Path()
    free = shutil.disk_usage(place).free
    what = f"{free / GIB:.1f} GiB free on the disk of {folder}/."
    if not os.access(place, os.W_OK):
        yield Finding("error", f"Runs cannot be written to {place.resolve()}.", "cd elsewhere")
    else:
        advice = "Checkpoints and replay may not fit; free some space."
        yield _judge(free >= GIB, what, advice)
