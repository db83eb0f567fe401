"""Module and its functions: tinygraph's emulator in the place of the driver."""

import math
from weakref import WeakValueDictionary

import numpy as np

from cupy._array import ndarray
from cupy._stream import CUDADriverError, get_current_stream
from tests import cubins
from tinygraph.cuda import nvrtc
from tinygraph.cuda.arguments import ArgumentList

cubins.watch()

ARCHITECTURE = "sm_90"
_functions = WeakValueDictionary()  # by the number that the driver knows them by


def set_attribute(function, attribute, value):
    """CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""
    found = _functions[function]
    if attribute != 8 or value > found._limits.dynamic:
        raise CUDADriverError("CUDA_ERROR_INVALID_VALUE: invalid argument")
    found._dynamic = value


class CNumpyArray:
    """An argument as it lies in an array of the host."""

    def __init__(self, array):
        self.array = array


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
        # What the driver reads in the machine code.
        self._limits = nvrtc.limits(cubins.made(cubin, symbol).compiled, ARCHITECTURE)
        self._dynamic = 48 * 1024 - self._limits.static
        _functions[self.ptr] = self

    def __call__(self, grid, block, args, shared_mem=0, stream=None):
        if math.prod(block) > self._limits.threads:
            raise CUDADriverError(
                "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: too many resources requested for launch"
            )
        if shared_mem > self._dynamic:
            raise CUDADriverError("CUDA_ERROR_INVALID_VALUE: invalid argument")
        values, keep = [], []
        for parameter, value in zip(self._signature.parameters, args, strict=True):
            if not parameter.pointer:
                number = value.array if isinstance(value, CNumpyArray) else value
                assert isinstance(number, (np.generic, np.ndarray)), parameter
                assert number.dtype == parameter.dtype, parameter
                values.append(number.item())
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
