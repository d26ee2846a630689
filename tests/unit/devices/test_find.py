"""Which device a run gets, and what it is told if there is none."""

import pytest

from tianji.devices import find, nvml
from tianji.devices.find import find_device
from tianji.devices.nvml import Gpu
from tianji.errors import UsageError


@pytest.fixture
def two_gpus(monkeypatch):
    gpus = [Gpu(index, "a GPU", 2**34, 2**33) for index in range(2)]
    monkeypatch.setattr(find, "list_gpus", lambda: gpus)
    monkeypatch.setattr(find, "torch_has_cuda", lambda: True)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(find, "list_gpus", list)
    monkeypatch.setattr(find, "torch_has_cuda", lambda: True)


@pytest.mark.parametrize(
    ("asked", "found"),
    [("auto", "cuda:0"), ("cuda", "cuda:0"), ("cuda:1", "cuda:1"), ("cpu", "cpu")],
)
def test_a_gpu_is_found_by_its_name(asked, found, two_gpus):
    assert find_device(asked) == found


def test_auto_leaves_small_networks_on_the_cpu(two_gpus):
    assert find_device("auto", is_worthwhile=False) == "cpu"
    assert find_device("cuda", is_worthwhile=False) == "cuda:0"


def test_auto_is_the_cpu_where_there_is_no_gpu(no_gpu):
    assert find_device("auto") == "cpu"


@pytest.mark.parametrize("asked", ["gpu", "cuda:", "cuda:x", "CUDA", "cuda:0 "])
def test_another_name_is_refused_with_those_allowed(asked):
    with pytest.raises(UsageError, match=r"auto, cpu, cuda, and cuda:N"):
        find_device(asked)


def test_a_gpu_that_is_not_there_is_refused_with_those_that_are(two_gpus):
    with pytest.raises(UsageError, match=r"only cuda:0, cuda:1"):
        find_device("cuda:2")


def test_without_a_driver_the_advice_is_to_look_at_it(no_gpu):
    with pytest.raises(UsageError, match="nvidia-smi"):
        find_device("cuda")


def test_a_torch_without_cuda_is_named(monkeypatch, two_gpus):
    monkeypatch.setattr(find, "torch_has_cuda", lambda: False)
    with pytest.raises(UsageError, match="built without CUDA"):
        find_device("cuda")
    assert find_device("auto") == "cpu"


def test_a_machine_without_the_library_has_no_gpus(monkeypatch):
    monkeypatch.setattr(nvml, "LIBRARY", "libno-such-library.so")
    nvml._library.cache_clear()
    assert nvml.list_gpus() == []
    assert nvml.busy_share(0) is None
    nvml._library.cache_clear()
