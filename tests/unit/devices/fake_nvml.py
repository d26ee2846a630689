"""A management library of made-up GPUs, called as NVIDIA's own is."""

from dataclasses import dataclass

GIB = 1 << 30


@dataclass
class FakeGpu:
    uuid: str
    name: str = "NVIDIA H200"
    total: int = 140 * GIB
    free: int = 139 * GIB
    bus_id: bytes = b""


class FakeNvml:
    """GPUs in the order of their slots. A handle is the number of a GPU, plus 1."""

    def __init__(self, *gpus):
        self.gpus = gpus

    def _gpu(self, handle):
        return self.gpus[handle.value - 1]

    def nvmlDeviceGetCount_v2(self, count):
        count._obj.value = len(self.gpus)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, handle):
        handle._obj.value = index + 1
        return 0

    def nvmlDeviceGetName(self, handle, text, size):
        text.value = self._gpu(handle).name.encode()
        return 0

    def nvmlDeviceGetUUID(self, handle, text, size):
        text.value = self._gpu(handle).uuid.encode()
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle, memory):
        memory._obj.total, memory._obj.free = self._gpu(handle).total, self._gpu(handle).free
        return 0

    def nvmlDeviceGetHandleByPciBusId_v2(self, bus_id, handle):
        handle._obj.value = [gpu.bus_id for gpu in self.gpus].index(bus_id) + 1
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid, handle):
        known = [gpu.uuid for gpu in self.gpus]
        if uuid.decode() not in known:
            return 6
        handle._obj.value = known.index(uuid.decode()) + 1
        return 0

    def nvmlDeviceGetUtilizationRates(self, handle, used):
        used._obj.gpu = handle.value
        return 0
