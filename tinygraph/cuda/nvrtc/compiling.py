"""Compiling kernels without a GPU: NVIDIA's run-time compiler NVRTC alone, through ctypes.

It needs the wheel `nvidia-cuda-nvrtc` or an installed CUDA toolkit, but no driver and no CuPy.
With the option `--ptxas-options=-v` the assembler writes what a kernel takes into the log:

    registers   32-bit registers of one thread
    spills      bytes that did not fit into registers and go to local memory and back
    stack       bytes of local memory of one thread (also arrays with an index only known at run
                time, which is no spill)
    shared      bytes of static shared memory of one block

The machine code itself tells the rest:

    constant    bytes of constant memory: `__constant__` variables and the compiler's own numbers,
                which the kernels of one program share; the arguments of the launch are not counted

Occupancy is arithmetic from there (occupancy.py).  Which kernels a file holds, and the `instances`
lines that say so, is instances.py.

Source: NVIDIA, "NVRTC", CUDA Toolkit documentation.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import io
import json
import math
import os
import re
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tinygraph.base import KernelCompileError
from tinygraph.base.build_cache import compiled
from tinygraph.base.json_text import to_json
from tinygraph.cuda.nvrtc.built import built, runs_on, store
from tinygraph.cuda.nvrtc.library import (
    PACKAGES,
    architectures,
    error_text,
    headers,
    library,
    must,
    output,
    version,
)
from tinygraph.cuda.nvrtc.occupancy import (
    MAX_BLOCK,
    MULTIPROCESSORS,
    Occupancy,
    largest_block,
    multiprocessor,
    occupancy,
)
from tinygraph.cuda.reading.source import STANDARD, Source, compile_error

ARCHITECTURES = tuple(MULTIPROCESSORS)
VERBOSE = "--ptxas-options=-v"
# Where there is a driver, NVRTC from 12.9 on has a cache of its own.  What lies there comes with an
# empty log; ours keeps the log.
NO_CACHE, HAS_NO_CACHE = "--no-cache", (12, 9)
# A generic lambda in a function of the device is one too, which NVRTC 13.0 does not see by itself.
SPACE = "-default-device"
LINES = "-lineinfo"  # for compute-sanitizer and profilers; the instructions stay the same
USUAL_BLOCK = 256  # threads, for the occupancy of a kernel without __launch_bounds__


@dataclass(frozen=True)
class Compiled:
    """Machine code of one kernel for one architecture."""

    arch: str  # as in "sm_90"
    symbol: str  # the kernel's name in the machine code
    cubin: bytes  # what a driver loads; PTX text where `arch` is "compute_90"
    log: str  # what compiler and assembler said
    launch_bound: int | None  # threads of a block that `__launch_bounds__` allows
    nvrtc: str  # the version that compiled it


@dataclass(frozen=True)
class Resources:
    """What a kernel takes of a multiprocessor; the first numbers are those of the module's page."""

    arch: str  # as in "sm_90"
    registers: int
    spill_stores: int  # bytes
    spill_loads: int
    stack: int
    shared: int
    constant: int
    threads: int  # the block of `occupancy`: `__launch_bounds__`, else 256 or what fits
    max_threads: int  # the largest block that can be launched
    occupancy: Occupancy  # with static shared memory only

    @property
    def spills(self) -> int:
        """Bytes spilled, stores and loads together."""
        return self.spill_stores + self.spill_loads


def resources(source: Source, name: str, arch: str) -> Resources:
    """What a kernel takes on an architecture.

    Parameters
    ----------
    source : Source
        The kernel's file with its macros.
    name : str
        The function with its template arguments, as in "unary_forward<float, Relu>".
    arch : str
        One of `ARCHITECTURES`.

    Returns
    -------
    Resources

    Raises
    ------
    KernelCompileError
        NVRTC is missing, or the kernel does not compile.
    ArgumentError
        An unknown architecture.

    Examples
    --------
    >>> from tinygraph.cuda.reading.source import Source
    >>> source = Source.read("__global__ void one(float* y) { y[threadIdx.x] = 1.0f; }")
    >>> found = resources(source, "one", "sm_90")
    >>> found.spills, found.shared, found.max_threads, found.occupancy.share
    (0, 0, 1024, 1.0)
    """
    return resources_of_all(source, [name], arch)[0]


def resources_of_all(source: Source, names: Sequence[str], arch: str) -> list[Resources]:
    """What several kernels of one source take, compiled together: that is faster than one by one.

    Parameters and errors are those of `resources`; one kernel that does not compile fails them all.
    """
    multiprocessor(arch)  # raises for an unknown architecture
    return [_resources(machine_code) for machine_code in compile(source, names, arch)]


def _resources(machine_code: Compiled) -> Resources:
    arch, numbers = machine_code.arch, _numbers(machine_code)
    numbers["constant"] = _constant_bytes(machine_code)
    registers, shared = numbers["registers"], numbers["shared"]
    max_threads = min(machine_code.launch_bound or MAX_BLOCK, largest_block(registers))
    threads = machine_code.launch_bound or min(USUAL_BLOCK, max_threads)
    resident = occupancy(arch, threads, registers, shared)
    return Resources(
        arch=arch, **numbers, threads=threads, max_threads=max_threads, occupancy=resident
    )


_FIELDS = {
    "registers": r"Used (\d+) registers",
    "spill_stores": r"(\d+) bytes spill stores",
    "spill_loads": r"(\d+) bytes spill loads",
    "stack": r"(\d+) bytes stack frame",
    "shared": r"(\d+) bytes smem",
}


def _numbers(machine_code: Compiled) -> dict[str, int]:
    """The numbers that the assembler's log gives for one kernel."""
    # a section for each function: "Compiling entry function 'NAME' for 'sm_90'" and on
    sections = re.split(r"^ptxas info\s*: Compiling entry function ", machine_code.log, flags=re.M)
    about = [text for text in sections[1:] if text.startswith(f"'{machine_code.symbol}'")]
    if not about:
        expected = "an assembler log that names the kernel"
        got = repr(machine_code.log)
        way_out = "report this NVRTC version: " + version()
        raise KernelCompileError("nvrtc", machine_code.symbol, expected, got, way_out)
    found = {name: re.search(pattern, about[0]) for name, pattern in _FIELDS.items()}
    numbers = {name: int(match[1]) if match else 0 for name, match in found.items()}
    return numbers


def registers_and_shared(machine_code: Compiled) -> tuple[int, int]:
    """Registers of a thread, and bytes of static shared memory of a block; PTX has neither yet."""
    if machine_code.arch.startswith("compute_"):
        return 0, 0
    numbers = _numbers(machine_code)
    return numbers["registers"], numbers["shared"]


def _constant_bytes(machine_code: Compiled) -> int:
    """Constant memory that a kernel can read: sections .nv.constantBANK and .nv.constantBANK.NAME.

    Bank 0 holds the arguments of the launch, behind room that differs between architectures.
    """
    from elftools.elf.elffile import ELFFile

    total = 0
    for section in ELFFile(io.BytesIO(machine_code.cubin)).iter_sections():
        bank = re.fullmatch(r"\.nv\.constant([1-9]\d*)(?:\.(.*))?", section.name)
        if bank and bank[2] in (None, machine_code.symbol):
            total += section["sh_size"]
    return total


def compile(source: Source, names: Sequence[str], arch: str) -> list[Compiled]:
    """Machine code of several kernels as one program, if need be compiled: see built.py, and cache.

    Parameters
    ----------
    source : Source
    names : sequence of str
    arch : str
        "sm_90" and the like; or "compute_90" for PTX, which the driver of any later GPU compiles.

    Returns
    -------
    list of Compiled
        Each names one kernel of the same cubin and log.

    Raises
    ------
    KernelCompileError
        NVRTC is missing or does not know the architecture, or a kernel does not compile.

    Examples
    --------
    >>> from tinygraph.cuda.reading.source import Source
    >>> text = "template <typename T> __global__ void one(T* y) { y[threadIdx.x] = 1; }"
    >>> [found.cubin[:4] for found in compile(Source.read(text), ["one<double>"], "sm_75")]
    [b'\\x7fELF']
    """

    path = built(_parts(source, names, arch)) or _cached(source, names, arch)
    with zipfile.ZipFile(path) as archive:
        cubin, log = archive.read("cubin"), archive.read("log").decode()
        about = json.loads(archive.read("about"))
    return [
        Compiled(arch, symbol, cubin, log, bound, about["nvrtc"])
        for symbol, bound in about["kernels"]
    ]


def build(source: Source, name: str, arch: str, folder: Path | str) -> None:
    """Compile a kernel into a folder of machine code that was built ahead of time."""
    store(_cached(source, [name], arch), folder, _parts(source, [name], arch))


def _parts(source: Source, names: Sequence[str], arch: str) -> list[str]:
    """All that machine code depends on but the compiler's version."""
    # Another word than before: what lies in older caches says less of itself.
    return ["machine code", STANDARD, SPACE, LINES, VERBOSE, arch, source.digest, *names]


def _cached(source: Source, names: Sequence[str], arch: str) -> Path:
    """The file in the cache, compiled by whoever asks first."""

    def write(path: Path) -> None:
        cubin, log, kernels = _compile(source, names, arch)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("cubin", cubin)
            archive.writestr("log", log)
            archive.writestr("about", to_json("about", {"nvrtc": version(), "kernels": kernels}))

    return compiled([version(), *_parts(source, names, arch)], ".nvrtc.zip", write)


def _compile(
    source: Source, names: Sequence[str], arch: str, verbose: bool = True
) -> tuple[bytes, str, list[tuple[str, int | None]]]:
    """One run of NVRTC, and a second one where the assembler refuses the code.

    Cubin and log; for each name its symbol in them and its `__launch_bounds__`.
    """
    nvrtc = library()
    program = ctypes.c_void_p()
    texts = [text.encode() for text in source.decoded.values()]
    files = [file.encode() for file in source.decoded]
    listed = ctypes.c_char_p * len(files)
    header_texts, header_names = listed(*texts), listed(*files)
    text, file = source.text.encode(), os.fsencode(source.name)
    must(
        nvrtc.nvrtcCreateProgram(
            ctypes.byref(program), text, file, len(files), header_texts, header_names
        )
    )
    try:
        for name in names:
            must(nvrtc.nvrtcAddNameExpression(program, name.encode()))
        options = [f"-arch={arch}", SPACE, LINES, *source.options, *([VERBOSE] if verbose else [])]
        if tuple(map(int, version().split("."))) >= HAS_NO_CACHE:
            options.append(NO_CACHE)
        options += [f"-I{place}" for place in headers()]
        encoded = [os.fsencode(option) for option in options]
        status = nvrtc.nvrtcCompileProgram(
            program, len(encoded), (ctypes.c_char_p * len(encoded))(*encoded)
        )
        log = output(program, "ProgramLog").decode(errors="replace")
        if status != 0 and verbose and "error" not in log:
            return _compile(source, names, arch, verbose=False)  # -v hides its errors
        if status != 0:
            raise _refused(source, log or error_text(status), arch)
        ptx = output(program, "PTX").decode()
        symbols = [_symbol(program, name) for name in names]
        kernels = [(symbol, _launch_bound(ptx, symbol)) for symbol in symbols]
        return output(program, "CUBIN") if arch.startswith("sm_") else ptx.encode(), log, kernels
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def architecture_for(source: Source, name: str, gpu: str) -> str:
    """The architecture for which a kernel is compiled, or was built ahead of time, for a GPU.

    For a GPU that is newer than NVRTC it is PTX of the last one that NVRTC knows; a warning tells.

    Raises
    ------
    KernelCompileError
        NVRTC is missing, or no longer compiles for so old a GPU.

    >>> from tinygraph.cuda.reading.source import Source
    >>> architecture_for(Source.read("__global__ void one() {}"), "one", "sm_90")
    'sm_90'
    """
    for arch in runs_on(gpu):
        if built(_parts(source, [name], arch)):
            return arch
    known, number = architectures(), int(gpu.removeprefix("sm_"))
    if number in known:
        return gpu
    older = [other for other in known if other < number]
    if not older:
        expected = f"sm_{known[0]} or later, which NVRTC {version()} compiles for"
        way_out = f"an older NVRTC: pip install {PACKAGES[1]}, and no newer one beside it"
        raise KernelCompileError("nvrtc", "arch", expected, gpu, way_out)
    warnings.warn(
        f"NVRTC {version()} does not know {gpu}: the driver compiles PTX of compute_{older[-1]}; "
        f"a later one may give faster kernels: pip install --upgrade {PACKAGES[0]}",
        RuntimeWarning,
        stacklevel=2,
    )
    return f"compute_{older[-1]}"


def _symbol(program: ctypes.c_void_p, name: str) -> str:
    """The name of a kernel in the machine code."""
    symbol = ctypes.c_char_p()
    must(library().nvrtcGetLoweredName(program, name.encode(), ctypes.byref(symbol)))
    return (symbol.value or b"").decode()


def _refused(source: Source, log: str, arch: str) -> KernelCompileError:
    if "--gpu-architecture" in log:  # the one option that a version of NVRTC may not know
        return KernelCompileError(
            "nvrtc",
            "arch",
            f"one that NVRTC {version()} compiles for",
            arch,
            f"another version: pip install --upgrade {PACKAGES[0]}",
        )
    return compile_error(source, log, "nvrtc")


def _launch_bound(ptx: str, symbol: str) -> int | None:
    """The threads of `.maxntid x, y, z` in the kernel's head; None without one."""
    head = re.search(rf"\.entry\s+{re.escape(symbol)}\(.*?^\{{", ptx, re.S | re.M)
    bound = re.search(r"\.maxntid\s+([\d, ]+)", head[0]) if head else None
    if not bound:
        return None
    return math.prod(map(int, bound[1].split(",")))
