"""Kernel: a typed launch of one `__global__` function, on a GPU or on the emulator.

    numpy arrays -> tinygraph.cuda.emulator        cupy arrays -> tinygraph.cuda.gpu

The arguments say where it runs.  Count, dtype, layout, device, grid and block are checked before
every launch against the signature that stands in the source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinygraph.base import KernelLaunchError
from tinygraph.cuda.extents import check_blocks
from tinygraph.cuda.launch import BoundLaunch, Launch, is_cupy
from tinygraph.cuda.reading.source import Source

if TYPE_CHECKING:
    from tinygraph.base import AnyPath
    from tinygraph.cuda.arguments import ArgumentList
    from tinygraph.cuda.emulator.findings import Report
    from tinygraph.cuda.emulator.trace import Trace
    from tinygraph.cuda.reading.signature import Signature

Extents = int | Sequence[int]


class Kernel:
    """One `__global__` function.

    Nothing is compiled before the first launch; a file that is missing is an error at once.

    Parameters
    ----------
    path_or_source : str or Path
        A `.cu` file; or CUDA C++ itself: a str with a line break or the word `__global__`.
    name : str
        The function, with its template arguments: "unary_forward<float, Relu>".
    defines : mapping of str to value, optional
        Macros: {"TILE": 16}.
    parameters : mapping of name to C type, optional
        Declares the parameters, in their order, where the source cannot be read:
        {"x": "const float*", "n": "int"}.

    Raises
    ------
    KernelCompileError
        For a file that cannot be read.

    Examples
    --------
    >>> scale = Kernel('''
    ... __global__ void scale(float* x, float alpha, int n) {
    ...     int i = blockIdx.x * blockDim.x + threadIdx.x;
    ...     if (i < n) x[i] *= alpha;
    ... }''', "scale")
    >>> print(scale.signature)
    scale(float* x, float alpha, int n)
    """

    def __init__(
        self,
        path_or_source: AnyPath,
        name: str,
        defines: Mapping[str, object] | None = None,
        parameters: Mapping[str, str] | None = None,
    ) -> None:
        self.source = Source.read(path_or_source, defines)
        self.name = name
        self._declared = dict(parameters) if parameters is not None else None
        self._modules: dict[bool, Any] = {}  # of the emulator: fast, and checked
        self._on_gpus: dict[int, Any] = {}  # by the number of the GPU
        self._on_the_gpu: Any = None  # where there is but one

    @cached_property
    def signature(self) -> Signature:
        """Name and parameters; KernelCompileError if the source has no such kernel."""
        # Here, not above, as below for the emulator: what is not used costs no time at import.
        reader = import_module("tinygraph.cuda.reading.signature")
        found: Signature = reader.parse(self.source, self.name, self._declared)
        return found

    @cached_property
    def arguments(self) -> ArgumentList:
        """The parameters, made ready to check arguments."""
        checks = import_module("tinygraph.cuda.arguments")
        made: ArgumentList = checks.ArgumentList(self.signature)
        return made

    def __repr__(self) -> str:
        return f"Kernel({self.source.name!r}, {self.name!r})"

    def __call__(self, grid: Extents, block: Extents, *args: Any, shared: int = 0) -> None:
        """Launch the kernel.

        Parameters
        ----------
        grid, block : int or tuple of 1 to 3 ints
            Blocks of the grid and threads of a block.
        *args : arrays and numbers
            One for each parameter of the kernel, in order.  Arrays are C-contiguous and of the
            pointer's dtype, all of numpy or all of cupy; numbers are cast to the declared type.
            `In(array)`, `Out(array)` and `InOut(array)` stand for the array; they tell `check` what
            is meant: it is only read, wholly written, or written in part.
        shared : int
            Bytes of dynamic shared memory.

        Raises
        ------
        KernelLaunchError
            For arguments, a grid, a block or shared memory that do not fit.
        KernelCompileError
            At the first launch, if the kernel does not compile.
        DeviceError
            If the device is missing.
        """
        BoundLaunch(self, grid, block, (), shared)(*args)

    def bind(self, grid: Extents, block: Extents, *last: Any, shared: int = 0) -> BoundLaunch:
        """The launch but for its first arguments, checked once; call it with these.

        Parameters
        ----------
        grid, block, shared
            As in a launch.
        *last : numbers
            For the last parameters of the kernel.

        Raises
        ------
        KernelLaunchError
            For what does not fit, arrays among the last parameters too.

        Examples
        --------
        >>> import numpy as np
        >>> fill = Kernel('''
        ... __global__ void fill(float* x, float value, int n) {
        ...     for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = value;
        ... }''', "fill")
        >>> of_four, x = fill.bind(1, 32, 4), np.zeros(4, np.float32)
        >>> of_four(x, 1.5)
        >>> x
        array([1.5, 1.5, 1.5, 1.5], dtype=float32)
        """
        return BoundLaunch(self, grid, block, last, shared)

    def run(self, launch: Launch) -> None:
        """Make a launch, which every runner has seen."""
        if launch.on_gpu:
            if self._on_the_gpu is not None:
                self._on_the_gpu.launch(launch)
            else:
                self._bind(launch).launch_there(launch)
        elif launch.checked:
            report = self._report(launch)
            if not report.ok:
                raise KernelLaunchError(report.text())
        else:
            packed = self.arguments.pack(launch.values)
            module = self._module(checked=False)
            module.launch(packed, launch.grid, launch.block, launch.shared)

    def check(
        self,
        grid: Extents,
        block: Extents,
        *args: Any,
        shared: int = 0,
        profile: bool = False,
        arch: str | None = None,
        trace: bool = False,
        timeout: float | None = None,
    ) -> Report:
        """Launch the kernel on the emulator under the checker; the arrays are written as usual.

        Parameters
        ----------
        grid, block, *args, shared
            As in a launch; arrays of numpy.
        profile : bool
            Also count memory requests and operations for each source line; arithmetic of integers
            is not looked at then.
        arch : str, optional
            "sm_75" and the like: hold the launch to the limits of that architecture, which are
            shared memory and, with the registers that NVRTC gives the kernel, threads of a block.
        trace : bool
            Also record what happens in the first block, in the order in which it happens: see
            `Kernel.trace`, which takes other blocks as well.
        timeout : float, optional
            Seconds of computing after which a block counts as endless; by default those of the
            variable TINYGRAPH_KERNEL_TIMEOUT, else 10.

        Returns
        -------
        Report
            Mistakes are in `findings`; none of them is raised.

        Raises
        ------
        KernelLaunchError, KernelCompileError
            As in a launch.
        """
        launch = self._to_check(grid, block, args, shared)
        if arch is not None:
            nvrtc = import_module("tinygraph.cuda.nvrtc")
            (compiled,) = nvrtc.compile(self.source, [self.name], arch)
            nvrtc.limits(compiled, arch).check(self.name, launch.block, launch.shared)
        wish = import_module("tinygraph.cuda.emulator.record").Wish() if trace else None
        return self._report(launch, profile, wish, timeout)

    def trace(
        self,
        grid: Extents,
        block: Extents,
        *args: Any,
        shared: int = 0,
        blocks: Sequence[Extents] = ((0, 0, 0),),
        limit: int = 100_000,
        reverse: bool = False,
        timeout: float | None = None,
    ) -> Trace:
        """Launch the kernel as `check` does, and record what each thread of a few blocks does.

        The kernel is built without optimisation, so that it goes through the source line by line.

        Parameters
        ----------
        grid, block, *args, shared
            As in a launch; arrays of numpy.
        blocks : sequence of block indices
            Each is an int or a tuple of up to 3 ints, as `blockIdx` is: (x, y, z).
        limit : int
            Events to record, branches not counted; `Trace.cut` counts those that came later.
            Blocks of code that belong to no line of the source count in both, and are left out.
        reverse : bool
            Let the last lane of the last warp run first: threads that race come to other values.
        timeout : float, optional
            As in `check`.

        Returns
        -------
        Trace

        Raises
        ------
        KernelLaunchError, KernelCompileError
            As in a launch; and for a block that the grid does not have.

        Examples
        --------
        >>> import numpy as np
        >>> shift = Kernel('''
        ... __global__ void shift(float* x) {
        ...     float right = x[threadIdx.x + 1];
        ...     x[threadIdx.x] = right;
        ... }''', "shift")
        >>> trace = shift.trace(1, 2, np.arange(3, dtype=np.float32))
        >>> for number in np.flatnonzero(trace.events["array"] == 0):
        ...     event = trace.events[number]
        ...     line, thread = trace.places[event["place"]].line, event["thread"]
        ...     print(f"line {line}, thread {thread}: {trace.kind(number)} {trace.value(number)}")
        line 3, thread 0: load 1.0
        line 4, thread 0: store 1.0
        line 3, thread 1: load 2.0
        line 4, thread 1: store 2.0
        """
        launch = self._to_check(grid, block, args, shared)
        numbers = check_blocks(self.name, launch.grid, blocks)
        if not isinstance(limit, int) or limit < 1:
            raise KernelLaunchError(self.name, "limit", "a number of events from 1 on", repr(limit))
        wish = import_module("tinygraph.cuda.emulator.record").Wish(numbers, limit, reverse)
        trace = self._report(launch, wish=wish, timeout=timeout).trace
        assert trace is not None
        return trace

    def steps(
        self,
        path: AnyPath,
        grid: Extents,
        block: Extents,
        *args: Any,
        shared: int = 0,
        blocks: Sequence[Extents] | None = None,
        limit: int = 100_000,
        timeout: float | None = None,
    ) -> Path:
        """Write a page on which a launch can be gone through, warp by warp.

        Each step shows a line of the source, the lanes of the warp that execute it together, what
        they read or write, shared memory as 32 banks and global memory as sectors of 32 bytes with
        what the request costs, and a mistake where it happens, with both threads.  Where the other
        order of the threads leaves other values, as in a race, both orders are on the page.

        The page is one file, which loads nothing.  Keys: arrows, Home, End, space.
        `page.html#step=7&block=2` opens block 2 at step 7.

        Parameters
        ----------
        path : str or Path
            The page: a file `.html`.
        grid, block, *args, shared
            As in a launch; arrays of numpy.  They are written as usual.
        blocks : sequence of block indices, optional
            As in `trace`; by default the first 8, and those in which a mistake is found.
        limit : int
            Events to keep; the page says what is left out.
        timeout : float, optional
            As in `check`.

        Returns
        -------
        Path
            That of the page.

        Raises
        ------
        ArgumentError
            The file is no `.html`, or its folder does not exist.
        KernelLaunchError, KernelCompileError
            As in `trace`.

        Examples
        --------
        >>> import tempfile, numpy as np
        >>> twice = Kernel('''
        ... __global__ void twice(float* x) { x[threadIdx.x] *= 2; }''', "twice")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     twice.steps(f"{folder}/twice.html", 1, 32, np.ones(32, np.float32)).name
        'twice.html'
        """
        pages = import_module("tinygraph.cuda.stepping.page")  # the one room above this one
        trace = {"shared": shared, "limit": limit, "timeout": timeout}
        written: Path = pages.kernel_steps(self, path, grid, block, args, blocks, **trace)
        return written

    def resources(self, arch: str) -> Any:
        """Registers, spills, shared memory and occupancy, as NVIDIA's compiler tells; no GPU.

        Parameters
        ----------
        arch : str
            The architecture: "sm_90".
        """
        nvrtc = import_module("tinygraph.cuda.nvrtc")
        return nvrtc.resources(self.source, self.name, arch)

    def build(self, folder: AnyPath, arch: str) -> None:
        """Compile the kernel into a folder of machine code: see `tinygraph kernels --build`.

        Parameters
        ----------
        folder : str or Path
            A launch looks there where it stands in the variable TINYGRAPH_CUBINS.
        arch : str
            The architecture: "sm_90".

        Raises
        ------
        KernelCompileError
            Without NVRTC, or if the kernel does not compile.
        """
        nvrtc = import_module("tinygraph.cuda.nvrtc")
        place = import_module("tinygraph.base.paths").as_path("Kernel.build", "folder", folder)
        nvrtc.build(self.source, self.name, arch, place)

    # ---- the emulator

    def _module(self, checked: bool) -> Any:
        if checked not in self._modules:
            loading = import_module("tinygraph.cuda.emulator.loading")
            self._modules[checked] = loading.load(self.source, self.signature, checked)
        return self._modules[checked]

    def _to_check(self, grid: Extents, block: Extents, args: Sequence[Any], shared: int) -> Launch:
        launch = Launch(self.bind(grid, block, shared=shared), tuple(args))
        if launch.on_gpu:
            expected = "numpy arrays: the checker runs on the CPU"
            way_out = "copy them to the host with x.get()"
            raise KernelLaunchError(self.name, "arguments", expected, "cupy arrays", way_out)
        return launch

    def _report(
        self,
        launch: Launch,
        profile: bool = False,
        wish: Any = None,
        timeout: float | None = None,
    ) -> Report:
        arguments = self.arguments.for_checker(launch.args, launch.values)
        module = self._module(checked=True)
        report: Report = module.check(
            arguments, launch.grid, launch.block, launch.shared, profile, wish, timeout
        )
        return report

    # ---- a GPU

    def _bind(self, launch: Launch) -> Any:
        """This kernel on the arrays' GPU; on a machine of one GPU it is kept for all launches."""
        arrays = [value for value in launch.values if is_cupy(value)]
        gpus = sorted({array.data.device_id for array in arrays})
        if len(gpus) > 1:
            got = f"GPUs {gpus}"
            way_out = "copy them to one GPU"
            raise KernelLaunchError(self.name, "arguments", "arrays of one GPU", got, way_out)
        (gpu,) = gpus
        cupy = import_module("cupy")
        if gpu not in self._on_gpus:
            room = import_module("tinygraph.cuda.gpu")
            self._on_gpus[gpu] = room.GpuKernel(self, cupy, gpu)
        if cupy.cuda.runtime.getDeviceCount() == 1:
            self._on_the_gpu = self._on_gpus[gpu]
        return self._on_gpus[gpu]
