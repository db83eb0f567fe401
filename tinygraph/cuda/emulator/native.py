"""A kernel on the CPU: compiled once, loaded once, launched with packed arguments."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar

from tinygraph.base.build_cache import discard
from tinygraph.base.errors import KernelCompileError, KernelLaunchError
from tinygraph.base.variables import count_of, seconds_of
from tinygraph.cuda.emulator.compiler import kernel_library, runtime_library
from tinygraph.cuda.emulator.translate import Translation, translate
from tinygraph.cuda.reading.signature import Signature, kernels, parse
from tinygraph.cuda.reading.source import Source

Three = tuple[int, int, int]
_THREE = ctypes.c_uint32 * 3

DEFAULT_TIMEOUT = 60.0  # seconds for one block


class Failure(ctypes.Structure):
    """Why a launch ended early; `Failure` in runtime/runtime.h."""

    _fields_ = [
        ("kind", ctypes.c_int32),
        ("line", ctypes.c_int32),
        ("pc", ctypes.c_size_t),
        ("block", _THREE),
        ("thread", _THREE),
        ("argument", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("file", ctypes.c_char * 256),
        ("text", ctypes.c_char * 256),
    ]


POINTER, STOPPED_BY_CHECKER = 1, 8
_WAYS_OUT = {
    1: "run kernel.check(...) with the same arguments: it stops before the access and names the "
    "array and the index",
    2: "use smaller local arrays, shared memory, or a loop instead of recursion",
    3: "guard the division; a GPU gives an undefined result here",
    4: "set the flag that the loop waits for, or raise TINYGRAPH_KERNEL_TIMEOUT (seconds)",
    5: "use smaller tiles",
    6: "let all lanes of a mask reach the same call; kernel.check(...) shows who waits where",
    7: "see the condition at that line",
    9: "give back once what malloc or new of a kernel gave",
}
MOST_THREADS = 1024


def timeout(default: float = DEFAULT_TIMEOUT) -> float:
    """Seconds of computing until a block counts as endless: $TINYGRAPH_KERNEL_TIMEOUT, or 60."""
    found = seconds_of("emulator", "TINYGRAPH_KERNEL_TIMEOUT", None)
    return default if found is None else max(0.05, found)


@cache
def _thread_count(named: str | None) -> int:
    """`named` is what the variable says, so that it is read once for each text."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    usual = max(1, cores or 1)
    asked = count_of("emulator", "TINYGRAPH_EMULATOR_THREADS", usual, 1, MOST_THREADS)
    return usual if asked is None else asked


def threads() -> int:
    """Threads of the operating system that share the blocks: $TINYGRAPH_EMULATOR_THREADS, or all
    cores."""
    return _thread_count(os.environ.get("TINYGRAPH_EMULATOR_THREADS"))


_TYPES = {
    **{"p": ctypes.c_void_p, "s": ctypes.c_char_p, "z": ctypes.c_size_t},
    **{"u": ctypes.c_uint32, "i": ctypes.c_int, "d": ctypes.c_double},
}


def declare(library: Any, **functions: str) -> None:
    """Say what functions of a library take, a letter of `_TYPES` for each argument."""
    for name, letters in functions.items():
        getattr(library, name).argtypes = [_TYPES[letter] for letter in letters]


def _loaded(compiled: Callable[[], Path], mode: int) -> tuple[Path, ctypes.CDLL]:
    """A library out of the cache, built again where it cannot be loaded; but once."""
    path = compiled()
    try:
        return path, ctypes.CDLL(str(path), mode)
    except OSError as error:  # it was damaged just now, or built for a system that was another
        discard(path, error)
    path = compiled()
    try:
        return path, ctypes.CDLL(str(path), mode)
    except OSError as error:
        expected = "a library that can be loaded"
        way_out = "in TINYGRAPH_CACHE a folder where code may run, or another compiler in CXX"
        raise KernelCompileError("emulator", str(path), expected, error, way_out) from None


@cache
def runtime() -> Any:
    """The run time, loaded for kernels to find its functions."""

    def compiled() -> Path:
        runtime_library.cache_clear()  # the file may have gone since
        return runtime_library()

    _, library = _loaded(compiled, ctypes.RTLD_GLOBAL)
    declare(library, tg_launch="psuppuidpp", tg_module="zp")
    if library.tg_failure_size() != ctypes.sizeof(Failure):
        raise KernelLaunchError("emulator: run time and native.py disagree on struct Failure")
    return library


class NativeKernel:
    """One kernel, compiled for the CPU.

    Attributes
    ----------
    build : str
        How it is compiled, as `kernel_library` says; of the class.
    path : Path
        The shared library.
    base : int
        Its load address: a program counter minus `base` is an address in the file.
    """

    build = "fast"
    ways_out: ClassVar[Mapping[int, str]] = _WAYS_OUT

    def __init__(self, source: Source, signature: Signature) -> None:
        self.source, self.signature = source, signature
        self.translation: Translation = translate(source)
        self._runtime = runtime()
        entry_name = ""

        def compiled() -> Path:
            nonlocal entry_name
            path, entry_name = self._compile()
            return path

        self.path, self.library = _loaded(compiled, os.RTLD_LOCAL | os.RTLD_NOW)
        entry = ctypes.cast(getattr(self.library, entry_name), ctypes.c_void_p).value or 0
        place = (ctypes.c_size_t * 3)()
        self._runtime.tg_module(entry, place)
        self.base: int = place[0]
        self.range = (ctypes.c_size_t * 2)(place[1], place[2])
        self._entry = ctypes.c_void_p(entry)

    def _compile(self) -> tuple[Path, str]:
        """The library with this kernel, and the name of its entry.

        All kernels of a file that are no templates are in one library: who checks one of them
        checks the others as well.
        """
        names, own = kernels_together(self.source), self.signature.name
        if own in names:
            try:
                unit = _unit(self.source, self.translation, names, self.build)
                path = kernel_library(self.source, unit, self.build)
                return path, f"tg_entry_{names.index(own)}"
            except KernelCompileError:
                if len(names) == 1:
                    raise
        return kernel_library(self.source, self.unit, self.build), "tg_entry_0"

    @property
    def unit(self) -> str:
        """What the compiler gets for this kernel alone."""
        return _unit(self.source, self.translation, [self.signature.name], self.build)

    def launch(self, packed: bytes, grid: Three, block: Three, shared: int) -> None:
        """Run the kernel and wait for it.

        Raises
        ------
        KernelLaunchError
            The kernel touched memory that is not there, never ended, or could not be run.
        """
        failure = Failure()
        if self.run(packed, grid, block, shared, failure):
            raise self.error(failure, packed)

    def run(
        self,
        packed: bytes,
        grid: Three,
        block: Three,
        shared: int,
        failure: Failure,
        seconds: float | None = None,
    ) -> int:
        """The launch itself; fills `failure` and returns its kind, 0 for none."""
        return int(
            self._runtime.tg_launch(
                self._entry,
                packed,
                len(self.signature.parameters),
                _THREE(*grid),
                _THREE(*block),
                shared,
                threads(),
                timeout() if seconds is None else max(0.05, seconds),
                self.range,
                ctypes.byref(failure),
            )
        )

    def error(self, failure: Failure, packed: bytes) -> KernelLaunchError:
        """The error that tells of a failure, with the source line."""
        from_pc = self._stopped_at(failure.pc) if failure.pc and not failure.line else None
        file, line = from_pc or (failure.file.decode(errors="replace"), failure.line)
        what = failure.text.decode(errors="replace")
        if failure.argument >= 0:
            what = self._outside(failure, packed)
        if line or failure.pc or failure.argument < 0:  # else: noticed after the launch
            what = f"block {tuple(failure.block)} thread {tuple(failure.thread)}: {what}"
        place = f" at {self.quoted(file, line)}" if line else ""
        way_out = self.ways_out.get(failure.kind, "")
        return KernelLaunchError(f"{self.signature.function}: {what}{place}. Way out: {way_out}")

    def _outside(self, failure: Failure, packed: bytes) -> str:
        """The element that a kernel went for beside an array between guards."""
        parameters = self.signature.parameters
        parameter = parameters[failure.argument]
        at = 8 * (len(parameters) + failure.argument)
        size = int.from_bytes(packed[at : at + 8], "little") // 2
        element = parameter.dtype.itemsize
        return (
            f"{parameter.name}[{failure.offset // element}] lies outside of the array, which has "
            f"{size // element} elements"
        )

    def _stopped_at(self, pc: int) -> tuple[str, int] | None:
        from tinygraph.cuda.emulator.lines import Lines  # parsing debug information takes time

        return Lines(self.path).find(pc - self.base + 1)  # +1: this is no return address

    def quoted(self, file: str, line: int) -> str:
        """Where a line stands, and the line."""
        return f"{Path(file).name}:{line}: {self.line_text(file, line)}"

    def line_text(self, file: str, line: int) -> str:
        """A line of the source or of one of its include files."""
        return self.source.line(file, line).strip()


@lru_cache(maxsize=64)
def kernels_together(source: Source) -> list[str]:
    """The kernels of a source that a name without template arguments means, as far as they can be
    read: those that one library holds."""
    found = []
    for name, template in kernels(source):
        if not template:
            with suppress(KernelCompileError):  # of two functions of one name, for instance
                found.append(parse(source, name).name)
    return found


def _unit(source: Source, translation: Translation, names: Sequence[str], build: str) -> str:
    """The translated source between the emulator's header and entries that unpack the arguments.

    Macros are defined after the header, which knows nothing of them: they may be called T or N.
    """
    defines = "".join(f"#define {name} {value}\n" for name, value in source.defines)
    ends, declared = "", ""
    if build == "traced":
        ends, declared = " tg_thread_ends();", 'extern "C" void tg_thread_ends();\n'
    entries = "".join(
        f'extern "C" void tg_entry_{number}(const char *packed) '
        f"{{ tg_call(&{name}, packed);{ends} }}\n"
        for number, name in enumerate(names)
    )
    return (
        f'#include "cuda_emulator.h"\n{defines}{translation.text}\n#line 1 "entry"\n{declared}'
        f"{entries}"
    )
