"""The C++ compiler of this machine, and what it makes: the run time and the kernels.

The order of search: $CXX, g++, clang++, and the compiler of the `ziglang` wheel.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tinygraph.base.build_cache import compiled, key
from tinygraph.base.errors import KernelCompileError
from tinygraph.cuda.emulator.branches import add_branches
from tinygraph.cuda.emulator.operations import FLAGS, add_table
from tinygraph.cuda.reading.source import Source, compile_error

HERE = Path(__file__).resolve().parent
INCLUDE, RUNTIME = HERE / "include", HERE / "runtime"

# A kernel that stands alone has no C++ library: the headers in freestanding/ take its place.
_ERRORS = "surrogateescape"  # names may be no UTF-8
_COMMON = ["-std=c++17", "-fPIC", "-w", "-fstack-clash-protection", f"-I{INCLUDE}"]
_KERNEL = [f"-I{INCLUDE / 'freestanding'}"]
_FAST = shlex.split("-O3 -g1 -march=native -ffp-contract=fast -fno-math-errno -fno-trapping-math")
if os.uname().machine == "x86_64":
    # The inner loops of a register tile are 4 elements long: wider vectors would be half empty.
    _FAST.append("-mprefer-vector-width=128")
# Without this, static variables of templates (the slots of shared arrays) that have the same name
# in two libraries are one variable of the process.  Kernels throw nothing.
_FAMILY = {"gcc": ["-fno-gnu-unique", "-fno-exceptions"], "clang": []}
# Nothing of the C++ library is used.  The compiler of the wheel would build all of it for its first
# link, which takes minutes; with g++ two thirds of a link go into it.  Without -O1 it would add
# functions of its own for what the checker's run time defines.
_LIBRARIES = {"gcc": ["-nodefaultlibs", "-lm", "-lgcc", "-lc"], "clang": ["-nostdlib++", "-O1"]}
# Calls stay calls (a barrier is told by the calls that led to it) and every access is announced.
_CHECKED = shlex.split(
    "-O1 -g -gdwarf-4 -fno-inline -fno-optimize-sibling-calls -ffp-contract=fast "
    "-fno-math-errno -DTINYGRAPH_CHECK=1 -fsanitize=thread"
)
# Accesses to volatile variables are announced by hooks of their own.  Equal code of two branches
# stays where it stands: a barrier in each of them is two barriers (g++ -O1 leaves it there).  And
# a sum in memory is not kept in a register during a loop: its accesses would belong to no line.
# What throws nothing needs no library that unwinds.
_CHECKED_BY_FAMILY = {
    "gcc": shlex.split("--param tsan-distinguish-volatile=1"),
    "clang": shlex.split(
        "-mllvm -tsan-distinguish-volatile=1 -mllvm -tsan-instrument-atomics=0 "
        "-mllvm -tsan-instrument-read-before-write=1 -mllvm -sink-common-insts=0 "
        "-mllvm -hoist-common-insts=0 -mllvm -enable-tail-merge=0 "
        "-mllvm -disable-licm-promotion -mllvm -tsan-handle-cxx-exceptions=0"
    ),
}
# Arithmetic of integers, and indices of arrays in registers.  A product that nobody uses is formed
# all the same, for it may overflow.  Not where operations are counted: what is looked at cannot be
# moved out of a loop.
_ARITHMETIC = "-fsanitize=signed-integer-overflow,shift-exponent,integer-divide-by-zero"
_ARITHMETIC_BY_FAMILY = {
    "gcc": shlex.split(
        f"{_ARITHMETIC} -fsanitize=bounds "
        "-fno-tree-dce -fno-tree-dse -fno-tree-sink -fno-ipa-pure-const"
    ),
    "clang": shlex.split(f"{_ARITHMETIC} -fsanitize=array-bounds"),
}
# Each variable in memory, where the compiler keeps the shadow of a value that is undefined: nothing
# of it is optimised away.  A call may be handed such a value.
_FOLLOWED = shlex.split(
    "-O0 -g -gdwarf-4 -ffp-contract=fast -fno-math-errno -DTINYGRAPH_CHECK=1 -DTINYGRAPH_FOLLOW=1 "
    "-fsanitize=kernel-memory -fno-sanitize-memory-param-retval -mllvm -msan-track-origins=1 "
    "-fno-sanitize=undefined -fno-stack-protector"
)


# Behind the others: what stands last counts.  A switch is a chain of branches.
_TRACED = ["-O0", "-fno-jump-tables", "-DTINYGRAPH_TRACE=2"]
# Before the others: without optimisation the compiler of the wheel would add checks of its own.
_TRACED_FIRST = {"gcc": [], "clang": ["-fno-sanitize=undefined"]}


@dataclass(frozen=True)
class Compiler:
    """A command that compiles C and C++, and its family: "gcc" or "clang".

    `identity` changes when the compiler, or the processor that it compiles for, is another one.
    """

    command: tuple[str, ...]
    family: str
    identity: str

    @property
    def name(self) -> str:
        return "ziglang" if "ziglang" in self.command else Path(self.command[0]).name

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the compiler; it never asks and never speaks another language than English."""
        return subprocess.run(
            [*self.command, *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=300.0,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
        )

    def make(self, target: Path, purpose: str, *arguments: str) -> None:
        """Write a file of the emulator's own."""
        result = self.run(*arguments, "-o", str(target))
        if result.returncode or not target.exists():
            raise KernelCompileError(
                f"emulator: {self.name} cannot {purpose}:\n{result.stderr[-3000:]}"
            )


def find_compiler() -> Compiler:
    """The first compiler that is there.

    Raises
    ------
    KernelCompileError
        There is none, or $CXX names something that does not run.
    """
    return _find(os.environ.get("CXX", ""), os.environ.get("PATH", ""))


@cache
def find_follower() -> Compiler | None:
    """The clang that follows values: the compiler of kernels, clang++, or that of the wheel."""
    first = find_compiler()
    if first.family == "clang":
        return first
    commands = ["clang++"]
    if find_spec("ziglang"):
        commands.append(f"{shlex.quote(sys.executable)} -m ziglang c++")
    for command in commands:
        try:
            return _find(command, os.environ.get("PATH", ""))
        except KernelCompileError:
            continue
    return None


@cache
def _find(named: str, path: str) -> Compiler:
    candidates = [_words(named)] if named else [["g++"], ["clang++"]]
    if not named and find_spec("ziglang"):
        candidates.append([sys.executable, "-m", "ziglang", "c++"])
    for command in candidates:
        if not command or shutil.which(command[0], path=path) is None:
            continue
        try:
            said = subprocess.run(
                [*command, "--version"], capture_output=True, timeout=120, check=True
            )
        except (OSError, subprocess.SubprocessError):
            continue
        version = said.stdout.decode("utf-8", "replace")
        family = "clang" if "clang" in version or "ziglang" in command else "gcc"
        return Compiler(tuple(command), family, key([*command, version, _processor()]))
    found = f"$CXX is {named!r}, which does not run" if named else "none was found"
    raise KernelCompileError(
        f"emulator: expected a C++ compiler, {found}. Ways out: pip install ziglang (a compiler "
        "from PyPI); or install g++ or clang++ (Debian, Ubuntu: apt install g++); or name one with "
        "the environment variable CXX"
    )


def _words(command: str) -> list[str]:
    """A command as a shell reads it; none of one that a shell would not accept."""
    try:
        return shlex.split(command)
    except ValueError:  # a quotation mark that is not closed
        return []


def _processor() -> str:
    """What -march=native depends on: a cache may be shared by different machines."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return os.uname().machine
    wanted = ("flags", "Features", "model name", "CPU part", "CPU implementer")
    return "\n".join(sorted({line for line in text.splitlines() if line.startswith(wanted)}))


@cache
def runtime_library() -> Path:
    """The compiled run time (runtime/*.c); built at its first use, a second or two."""
    compiler = find_compiler()
    sources = sorted(RUNTIME.glob("*.c"))
    flags = ["-std=gnu11", "-O2", "-g1", "-fPIC", "-pthread", "-ftls-model=initial-exec", "-shared"]
    flags += ["-nostdlib++"] if compiler.family == "clang" else []
    # Kernels name the run time, not where it lay when they were linked: a cache may move.
    flags += ["-Wl,-soname,tinygraph-emulator.so"]
    texts = [path.read_text(encoding="utf-8") for path in sorted(RUNTIME.glob("*.[ch]"))]

    def build(target: Path) -> None:
        # g++ forgets after each file that it was to compile C.
        files = [argument for path in sources for argument in ("-x", "c", str(path))]
        compiler.make(target, "build the run time", *flags, *files)

    return compiled([compiler.identity, *flags, *texts], ".so", build)


@cache
def headers() -> str:
    """All headers of the emulator: a kernel depends on them."""
    return key(
        [path.read_text(encoding="utf-8") for path in sorted(INCLUDE.rglob("*")) if path.is_file()]
    )


def _flags(compiler: Compiler, build: str) -> list[str]:
    """Options for a kernel; see `kernel_library`."""
    family = compiler.family
    flags = [*_COMMON, *_KERNEL, *_FAMILY[family], *(_FAST if build == "fast" else _CHECKED)]
    if build != "fast":
        flags += _CHECKED_BY_FAMILY[family]
    if build in ("checked", "traced"):
        flags += _ARITHMETIC_BY_FAMILY[family]
    return flags + (FLAGS[family] if build in ("profiled", "traced") else [])


def program_flags(compiler: Compiler, checked: bool) -> list[str]:
    """Options for a whole program: it has the C++ library, and may throw."""
    family = compiler.family
    kept = [flag for flag in _FAMILY[family] if flag != "-fno-exceptions"]
    flags = [*_COMMON, *kept, *(_CHECKED if checked else _FAST)]
    hooks = [*_CHECKED_BY_FAMILY[family], *_ARITHMETIC_BY_FAMILY[family]]
    # A call in the last place stays a call: where it returns to says at which line it stood.
    return [*flags, "-fno-optimize-sibling-calls", *(hooks if checked else [])]


def read_headers(checked: bool) -> list[str]:
    """Options with which the compiler finds the emulator's headers read already.

    A third of a kernel's compilation would go into them.  Only g++ takes such options; where it
    does not like what it finds, it reads the headers themselves.
    """
    compiler = find_compiler()
    if compiler.family != "gcc":
        return []
    header = _precompiled(compiler, checked)
    if not header.exists():  # somebody has emptied the cache
        _precompiled.cache_clear()
        header = _precompiled(compiler, checked)
    return ["-include", str(header)]


@cache
def _precompiled(compiler: Compiler, checked: bool) -> Path:
    """A header without text; g++ takes what lies beside it under its name with `.gch`."""
    flags = _flags(compiler, "checked" if checked else "fast")

    def build(target: Path) -> None:
        text = target.with_suffix(".h")
        text.write_text('#include "cuda_emulator.h"\n', encoding="utf-8")
        try:
            compiler.make(target, "read the headers", *flags, "-x", "c++-header", str(text))
        finally:
            text.unlink()

    found = compiled(["headers", compiler.identity, headers(), *flags], ".h.gch", build)
    header = found.with_suffix("")
    header.write_bytes(b"")
    return header


def kernel_library(source: Source, unit: str, build: str) -> Path:
    """A kernel as a shared library: `unit` is its translated text with an entry function.

    Parameters
    ----------
    build : str
        "fast"; "checked", with the hooks of the checker; "profiled", also with those that count
        operations; "traced", these too, without optimisation: steps follow the source;
        "followed", by clang, with a shadow for each value that tells whether it is defined.

    Raises
    ------
    KernelCompileError
        With file, line, source line and the compiler's words.
    """
    compiler = find_follower() if build == "followed" else find_compiler()
    if compiler is None:
        raise KernelCompileError("emulator: no clang is there, which alone can follow values")
    runtime = runtime_library()
    if not runtime.exists():  # the cache was another folder meanwhile, or somebody emptied it
        runtime_library.cache_clear()
        runtime = runtime_library()
    checked, counted = build != "fast", build in ("profiled", "traced")
    flags = _flags(compiler, build)
    if build == "traced":
        flags = [*_TRACED_FIRST[compiler.family], *flags, *_TRACED]
    if build == "followed":
        flags = [*_COMMON, *_FOLLOWED]
    libraries = _LIBRARIES[compiler.family]

    def run(*arguments: str) -> None:
        result = compiler.run(*arguments)
        if result.returncode:
            raise compile_error(source, result.stderr, compiler.name)

    def write(target: Path) -> None:
        text, part = target.with_suffix(".cpp"), target.with_suffix(".o")
        assembly = target.with_suffix(".s")
        text.write_text(unit, encoding="utf-8", errors=_ERRORS)  # it names the file of the source
        try:
            # Compiled and linked apart: with -fsanitize=thread the linker would add the library
            # whose functions the run time defines itself.
            if counted:
                run(*flags, "-S", str(text), "-o", str(assembly))
                made = add_table(assembly.read_text(encoding="utf-8", errors=_ERRORS))
                made = add_branches(made) if build == "traced" else made
                assembly.write_text(made, encoding="utf-8", errors=_ERRORS)
                run("-c", str(assembly), "-o", str(part))
            else:
                read = [] if build == "followed" else read_headers(checked)
                run(*flags, *read, "-c", str(text), "-o", str(part))
            run("-shared", "-o", str(target), str(part), str(runtime), *libraries)
            if not target.exists():
                raise KernelCompileError(f"emulator: {compiler.name} wrote no file: no compiler?")
        finally:
            for path in (text, part, assembly):
                path.unlink(missing_ok=True)

    parts = [compiler.identity, runtime.name, headers(), unit, *flags, *libraries]
    return compiled(parts, ".so", write)
