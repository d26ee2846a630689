"""Every package that `make train` and `make test` install has its version in constraints.txt."""

from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
EXTRAS = ("all", "test", "docs")
OF_CUDA = ("cuda-", "nvidia-", "triton")
"""What torch needs for GPUs. Its builds differ in that, and each names the versions itself."""


def pins():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


def required(name, extras):
    """The requirements of an installed package that apply here, by name."""
    for line in metadata.requires(name) or []:
        requirement = Requirement(line)
        if name == "torch" and requirement.name.startswith(OF_CUDA):
            continue
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield canonicalize_name(requirement.name), frozenset(requirement.extras)


def test_make_train_installs_nothing_of_a_version_that_nobody_tried():
    pinned, missing, seen = pins(), set(), set()
    queue = [("tianji", frozenset(EXTRAS)), ("pip", frozenset()), ("setuptools", frozenset())]
    while queue:
        name, extras = entry = queue.pop()
        if entry in seen:
            continue
        seen.add(entry)
        if name not in pinned and name != "tianji":
            missing.add(name)
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # pip, where something else made the virtual environment
        # With another version than the pinned one (make test-newest) requirements may differ.
        if name == "tianji" or version.partition("+")[0] == pinned.get(name):
            queue += required(name, extras)
    assert not missing


def test_pins_name_no_build_of_one_machine():
    assert all("+" not in version for version in pins().values())
