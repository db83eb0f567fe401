"""RawModule: tinygraph's emulator in the place of NVRTC and the driver."""

from pathlib import Path

import numpy as np

from cupy._array import ndarray
from cupy._stream import get_current_stream
from tinygraph.cuda.emulator.loading import load
from tinygraph.cuda.launch import ArgumentList
from tinygraph.cuda.reading.signature import parse
from tinygraph.cuda.reading.source import Source

launches = []  # the name of every launch that was queued or captured


class RawModule:
    def __init__(self, *, code, options=(), name_expressions=None, backend="nvrtc"):
        folders = [o[2:] for o in options if o.startswith("-I")]
        defines = tuple(tuple(o[2:].split("=", 1)) for o in options if o.startswith("-D"))
        self._source = Source(code, Path(folders[0]) / "rehearsed.cu", defines)
        self._names = name_expressions

    def get_function(self, name):
        assert name in self._names
        return _Function(self._source, name)


class _Function:
    def __init__(self, source, name):
        self.name = name
        self._signature = parse(source, name, None)
        self._arguments = ArgumentList(self._signature)
        self._module = load(source, self._signature, False)
        self.max_dynamic_shared_size_bytes = 0

    def __call__(self, grid, block, args, *, shared_mem=0):
        hosts = []
        for parameter, value in zip(self._signature.parameters, args, strict=True):
            if parameter.pointer:
                assert isinstance(value, ndarray), parameter
                hosts.append(value._host)
            else:
                assert isinstance(value, np.generic) and value.dtype == parameter.dtype, parameter
                hosts.append(value.item())
        packed = self._arguments.pack(hosts)
        launches.append(self.name)

        def work(keep=hosts):
            self._module.launch(packed, grid, block, shared_mem)

        get_current_stream().add(work)
