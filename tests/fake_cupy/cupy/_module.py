"""Module and its functions: tinygraph's emulator in the place of the driver."""

import numpy as np

from cupy._array import ndarray
from cupy._stream import get_current_stream
from tests import cubins
from tinygraph.cuda.launch import ArgumentList

cubins.watch()

launches = []  # the name of every launch that was queued or captured


class Module:
    """Machine code that was loaded."""

    def load(self, cubin):
        self._cubin = cubin

    def get_function(self, symbol):
        return Function(self._cubin, symbol)


class Function:
    """A kernel that was loaded."""

    def __init__(self, cubin, symbol):
        self.name = cubins.made(cubin, symbol).name
        self._signature, self._module = cubins.emulated(cubin, symbol)
        self._arguments = ArgumentList(self._signature)
        self.ptr = id(self)

    def __call__(self, grid, block, args, shared_mem=0, stream=None):
        values, keep = [], []
        for parameter, value in zip(self._signature.parameters, args, strict=True):
            if not parameter.pointer:
                assert isinstance(value, np.generic) and value.dtype == parameter.dtype, parameter
                values.append(value.item())
            elif isinstance(value, ndarray):  # its address, also where it has no elements
                values.append(value._host if value.size else value.data.ptr)
                keep.append(value._host)
            else:
                assert isinstance(value, np.uint64), parameter
                values.append(int(value))
        packed = self._arguments.pack(values)
        launches.append(self.name)

        def work(keep=keep):
            self._module.launch(packed, grid, block, shared_mem)

        get_current_stream().add(work)
