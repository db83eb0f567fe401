"""What a launch does: a kernel of tinygraph runs in the emulator, one of CuPy's own in numpy.

The driver knows a kernel as a name in a cubin.  What it was compiled from, tests/cubins.py
remembers for tinygraph's; CuPy's compiler is watched here.  An exception in a launch is the
launch's error, with its words.
"""

from __future__ import annotations

import ctypes
import struct
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tests import cubins
from tests.real_cupy.cupy_kernels import CupyKernel
from tests.real_cupy.machine import Machine
from tinygraph.base.errors import KernelLaunchError

ILLEGAL_ADDRESS, LAUNCH_FAILED = 700, 719  # errors of CUDA

Work = Callable[[], None]
Three = tuple[int, int, int]

_UNSIGNED, _VOID = ctypes.c_uint, ctypes.c_void_p
_LAUNCHED = ctypes.CFUNCTYPE(
    ctypes.c_long,
    _VOID,
    ctypes.POINTER(_UNSIGNED),
    ctypes.POINTER(_UNSIGNED),
    _UNSIGNED,
    ctypes.POINTER(_VOID),
    ctypes.c_int,
)
_REPLAYED = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_long)
_kept: list[Launches] = []  # the driver calls them to the end of the process


class Emulated:
    """A kernel of tinygraph."""

    def __init__(self, machine: Machine, cubin: bytes, symbol: str) -> None:
        self.name = cubins.made(cubin, symbol).name
        self.signature, self._module = cubins.emulated(cubin, symbol)
        self._on_device = machine.library.machine_on_device

    def work(self, grid: Three, block: Three, shared: int, parameters: Sequence[int]) -> Work:
        """The launch, with its arguments as they are now."""
        slots, pointers = [], []
        for parameter, address in zip(self.signature.parameters, parameters, strict=False):
            if parameter.pointer:
                pointer = ctypes.c_uint64.from_address(address).value
                slots.append(struct.pack("<Q", pointer))
                if pointer:
                    pointers.append((parameter, pointer))
            else:
                slots.append(ctypes.string_at(address, parameter.dtype.itemsize).ljust(8, b"\0"))
        # arrays of no known size: the emulator puts no guards around them
        packed = b"".join(slots) + bytes(8 * len(slots))

        def launch() -> None:
            for parameter, pointer in pointers:  # at each replay: what is freed is gone
                if not self._on_device(pointer, parameter.dtype.itemsize):
                    said = f"{self.name}: {parameter.name} is no memory of the device"
                    raise KernelLaunchError(said)
                if pointer % parameter.alignment:
                    raise KernelLaunchError(f"{self.name}: {parameter.name} is misaligned")
            self._module.launch(packed, grid, block, shared)

        return launch


class Launches:
    """Hears of every launch of the driver, and runs it.

    Attributes
    ----------
    count : Counter of str
        Launches by the kernel's name.
    """

    def __init__(self, machine: Machine) -> None:
        self.count: Counter[str] = Counter()
        self._machine, self._driver = machine, machine.library
        self._of_cupy: dict[int, str] = {}  # sources, by module of the driver
        self._kernels: dict[int, Emulated | CupyKernel] = {}  # by function of the driver
        self._captured: list[Work] = []
        cubins.watch()
        self._watch_cupy()
        self._hooks = _LAUNCHED(self._launched), _REPLAYED(self._replayed)
        self._driver.machine_hooks(*self._hooks)
        _kept.append(self)

    def _watch_cupy(self) -> None:
        compiler = self._machine.cupy.cuda.compiler
        compile_module = compiler._compile_module_with_cache

        def watched(source: str, *others: Any, **named: Any) -> Any:
            module = compile_module(source, *others, **named)
            self._of_cupy[module.ptr] = source
            return module

        compiler._compile_module_with_cache = watched

    # ---- what the driver calls

    def _launched(
        self, function: int, grid: Any, block: Any, shared: int, parameters: Any, captured: int
    ) -> int:
        try:
            if function not in self._kernels:
                self._kernels[function] = self._kernel(function)
            kernel = self._kernels[function]
            self.count[kernel.name] += 1
            work = kernel.work(tuple(grid[0:3]), tuple(block[0:3]), shared, parameters)
            if captured:
                self._captured.append(work)
                return len(self._captured) - 1
            work()
            return 0
        except BaseException as error:  # C++ called: nobody above here would see it
            return -self._failed(error)

    def _replayed(self, number: int) -> int:
        try:
            self._captured[number]()
            return 0
        except BaseException as error:
            return self._failed(error)

    def _failed(self, error: BaseException) -> int:
        """Tell the driver the words of an error; CUDA's number for it."""
        words = "".join(traceback.format_exception_only(error)).strip()
        self._driver.machine_failed(words.encode())
        return ILLEGAL_ADDRESS if isinstance(error, KernelLaunchError) else LAUNCH_FAILED

    def _kernel(self, function: int) -> Emulated | CupyKernel:
        symbol = self._driver.machine_function_name(function).decode()
        module = self._driver.machine_function_module(function)
        if module in self._of_cupy:
            return CupyKernel(symbol, self._of_cupy[module])
        image, size = self._driver.machine_image(module), self._driver.machine_image_size(module)
        return Emulated(self._machine, ctypes.string_at(image, size), symbol)
