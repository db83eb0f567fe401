"""The GPUs of the machine: TINYGRAPH_REHEARSED_GPUS of them, by default one."""

import os
import threading

COUNT = int(os.environ.get("TINYGRAPH_REHEARSED_GPUS", "1"))


class _Here(threading.local):
    gpu = 0


_here = _Here()


def current():
    return _here.gpu


class Device:
    """One of them, by default the current one of this thread."""

    compute_capability = "90"

    def __init__(self, device=None):
        self.id = _here.gpu if device is None else int(device)
        assert 0 <= self.id < COUNT, f"cudaErrorInvalidDevice: {self.id}"
        self._before = []

    @property
    def pci_bus_id(self):
        return f"0000:{self.id:02X}:00.0"

    def use(self):
        _here.gpu = self.id

    def synchronize(self):
        from cupy._stream import synchronize

        synchronize()

    def __enter__(self):
        self._before.append(_here.gpu)
        self.use()
        return self

    def __exit__(self, *_):
        _here.gpu = self._before.pop()
