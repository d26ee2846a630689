"""Which GPUs a process may use, and which number each has."""

import pytest

from tests.unit.devices.fake_nvml import GIB, FakeGpu, FakeNvml
from tianji.devices import nvml

THREE = [FakeGpu(f"GPU-{letter}0-{letter}1", free=n * GIB) for n, letter in enumerate("abc", 1)]


@pytest.fixture
def installed(monkeypatch):
    """Install a library of these GPUs."""
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)

    def install(*gpus, cuda=None):
        library = FakeNvml(*gpus)
        monkeypatch.setattr(nvml, "_library", lambda: library)
        monkeypatch.setattr(nvml, "cuda_bus_ids", lambda: cuda)

    return install


@pytest.mark.parametrize(
    ("visible", "found"),
    [
        (None, [1, 2, 3]),
        ("", []),
        ("-1", []),
        ("2, 0", [3, 1]),
        ("1,7,0", [2]),
        ("0,-1,1", [1]),
        ("0,0", []),
        ("GPU-b0-b1", [2]),
        ("GPU-c,GPU-a", [3, 1]),
        ("GPU-", []),
        ("GPU-a,0", []),
        ("2,GPU-a", [3, 1]),
        ("MIG-x", []),
    ],
)
def test_gpus_are_those_that_cuda_shows(visible, found, installed, monkeypatch):
    installed(*THREE)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    gpus = nvml.list_gpus()
    assert [gpu.free_bytes // GIB for gpu in gpus] == found
    assert [gpu.index for gpu in gpus] == list(range(len(found)))
    shares = [nvml.busy_share(index) for index in range(len(found))]
    assert shares == [number / 100 for number in found]
    assert nvml.busy_share(len(found)) is None


def test_a_part_of_a_gpu_is_found_by_its_name(installed, monkeypatch):
    installed(FakeGpu("GPU-a"), FakeGpu("MIG-b", free=5 * GIB))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-b")
    assert [gpu.free_bytes for gpu in nvml.list_gpus()] == [5 * GIB]


SLOW = FakeGpu("GPU-s", name="a slow one", bus_id=b"0000:01:00.0")
FAST = FakeGpu("GPU-f", name="a fast one", bus_id=b"0000:02:00.0")


def test_cuda_decides_the_order_of_gpus_that_differ(installed):
    installed(SLOW, FAST, cuda=(FAST.bus_id, SLOW.bus_id))
    assert [gpu.name for gpu in nvml.list_gpus()] == ["a fast one", "a slow one"]


def test_the_order_of_the_slots_counts_where_it_is_asked_for(installed, monkeypatch):
    installed(SLOW, FAST, cuda=(FAST.bus_id, SLOW.bus_id))
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    assert [gpu.name for gpu in nvml.list_gpus()] == ["a slow one", "a fast one"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert [gpu.name for gpu in nvml.list_gpus()] == ["a fast one"]


def test_without_cuda_the_order_is_that_of_the_slots(installed):
    installed(SLOW, FAST, cuda=None)
    assert [gpu.name for gpu in nvml.list_gpus()] == ["a slow one", "a fast one"]


def test_a_machine_without_the_driver_of_cuda_has_no_order(monkeypatch):
    monkeypatch.setattr(nvml, "CUDA_LIBRARY", "libno-such-library.so")
    nvml.cuda_bus_ids.cache_clear()
    assert nvml.cuda_bus_ids() is None
    nvml.cuda_bus_ids.cache_clear()
