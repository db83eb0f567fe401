"""What becomes of a mutant: compiled, launched under the checker, compared with numpy.

It all happens in a process of its own, which a mutant may bring down; see `Sandbox`.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from unittest import mock

from tests.cuda.launch import Launch
from tests.cuda.launches import families, launches_of, own_families
from tests.cuda.mutants import Mutant, called, mutants
from tinygraph.base.errors import KernelCompileError, KernelLaunchError
from tinygraph.cuda import Kernel
from tinygraph.cuda.emulator.checker import CheckedKernel
from tinygraph.cuda.emulator.compiler import read_headers, runtime_library
from tinygraph.cuda.reading.preprocessor import preprocess
from tinygraph.cuda.reading.signature import kernels
from tinygraph.cuda.reading.source import Source, kernel_file, kernel_files

# A kernel that never ends: seconds of computing until the watchdog stops it, and seconds until the
# process is ended.
KERNEL_SECONDS, SANDBOX_SECONDS = 0.5, 240.0
# The mutants of a .cuh are tried through no more .cu files than this: these first, where named.
MOST_FILES = 2
PREFERRED = {
    "axes.cuh": ("sum.cu", "mean.cu"),
    "broadcast.cuh": ("expand.cu", "comparison.cu"),
    "gemm.cuh": ("matmul.cu", "linear.cu"),
    "gemm_loader.cuh": ("matmul.cu", "linear.cu"),
    "gemm_mma.cuh": ("matmul.cu", "linear.cu"),
    "gemm_pipelined.cuh": ("matmul.cu", "linear.cu"),
    "gemm_problem.cuh": ("matmul.cu", "linear.cu"),
    "optimizer.cuh": ("sgd.cu", "adam.cu"),
    "packs.cuh": ("relu.cu", "rmsprop.cu"),
    "parameters.cuh": ("sgd.cu", "clipping.cu"),
    "philox.cuh": ("random.cu",),
    "prelude.cuh": ("max_pool2d.cu", "max.cu"),
    "reduce.cuh": ("sum.cu", "softmax_cross_entropy.cu"),
}
ORIGINAL = "original"  # the kind of what is no mutant
CHECKER, NUMBERS, SURVIVED, UNLAUNCHED, CRASHED, REFUSED = (
    "checker",
    "numbers",
    "survived",
    "unlaunched",
    "crashed",
    "refused",
)


@dataclass(frozen=True)
class Outcome:
    """How a mutant was caught, or not.

    Attributes
    ----------
    how : str
        "checker": a finding, or a launch that the emulator stopped with an error.
        "numbers": no finding in any launch, but results that are not numpy's.
        "survived": neither.  "unlaunched": no launch reaches its function.
        "crashed": the process died.  "refused": it does not compile.
    what : str
        The kind of the finding, or the error.
    where : str
        The launch.
    """

    how: str
    what: str = ""
    where: str = ""


@cache
def mutated_files() -> tuple[Path, ...]:
    """The .cu files, and the .cuh files that some .cu includes."""
    sources = [Source.read(path) for path in kernel_files()]
    included = {path for source in sources for path in source.includes}
    own = [source.path for source in sources if source.path]
    return (*own, *sorted(included, key=lambda path: path.name))


@cache
def all_mutants() -> dict[str, Mutant]:
    """Every mutant of every kernel file, by its name."""
    found = [m for path in mutated_files() for m in mutants(path.name, path.read_text())]
    return {mutant.name: mutant for mutant in found}


@cache
def included_by(file: str) -> frozenset[str]:
    """The name of a .cu file, and those of what it includes."""
    return frozenset({file, *(path.name for path in Source.read(kernel_file(file)).includes)})


@cache
def _reached(file: str, function: str, defines: tuple[tuple[str, int], ...]) -> frozenset[str]:
    """The functions that a kernel may call, with what `#if` leaves of its source."""
    tokens = preprocess(Source.read(kernel_file(file), dict(defines)))
    return frozenset(called(" ".join(tokens), function))


def _launches_of(mutant: Mutant) -> list[list[Launch]]:
    """Launches that may execute the line of a mutant, by compiled kernel."""
    first = PREFERRED.get(mutant.file, ())
    found: dict[str, list[list[Launch]]] = {}
    own = own_families()  # those before launches that no one chose
    rest = sorted(families().keys() - set(first), key=lambda file: (file not in own, file))
    if mutant.kind == ORIGINAL:
        return list(launches_of(mutant.file).values())
    for file in [*first, *rest]:
        if mutant.file in included_by(file) and len(found) < MOST_FILES:
            for launches in launches_of(file).values():
                macros = tuple(launches[0].defines.items())
                if mutant.function in _reached(file, launches[0].function, macros):
                    found.setdefault(file, []).append(launches)
    groups = [launches for of_file in found.values() for launches in of_file]
    if mutant.owner:  # members of one name: those whose struct a template argument names
        named = [g for g in groups if re.search(rf"\b{mutant.owner}\b", g[0].name)]
        return named or groups
    return groups


def kernels_without_launch() -> dict[str, set[str]]:
    """By file, the kernels of those files that have launches, of which there is none."""
    found: dict[str, set[str]] = {}
    for file in families():
        launched = {launches[0].function for launches in launches_of(file).values()}
        for kernel in kernels(Source.read(kernel_file(file))):
            if kernel.name not in launched:
                found.setdefault(file, set()).add(kernel.name)
    return found


def mutants_to_try() -> dict[str, Mutant]:
    """All mutants by name, but for those of files that no launched .cu file includes."""
    reached = {name for file in families() for name in included_by(file)}
    return {name: mutant for name, mutant in all_mutants().items() if mutant.file in reached}


@cache
def originals() -> dict[str, Mutant]:
    """Each launched .cu file as it stands: it has to survive what its mutants do not."""
    found = [
        Mutant(file, "", ORIGINAL, 0, "", "nothing", kernel_file(file).read_text())
        for file in sorted(families())
    ]
    return {mutant.name: mutant for mutant in found}


def to_try() -> dict[str, Mutant]:
    """All mutants and originals."""
    return originals() | mutants_to_try()


def run(name: str) -> Outcome:
    """Try one mutant on one compiled kernel after the other, until one of them catches it.

    The first finding ends it; numbers count where no launch of that kernel gives a finding.
    """
    mutant = to_try()[name]
    groups = _launches_of(mutant)
    folder = Path(tempfile.mkdtemp(prefix="mutant-"))
    try:
        for path in mutated_files():
            text = mutant.source if path.name == mutant.file else path.read_text()
            (folder / path.name).write_text(text)
        with mock.patch.dict(os.environ, {"TINYGRAPH_CACHE": str(folder / "compiled")}):
            for launches in groups:
                outcome = _run_launches(folder, launches)
                if outcome:
                    return outcome
        return Outcome(SURVIVED if groups else UNLAUNCHED)
    finally:
        shutil.rmtree(folder)


def _run_launches(folder: Path, launches: list[Launch]) -> Outcome | None:
    """The launches of one compiled kernel, small ones first; None if all are clean and right."""
    first = launches[0]
    kernel = Kernel(folder / first.file, first.name, first.defines)
    wrong = None
    for launch in sorted(launches, key=lambda launch: launch.threads):
        try:
            with mock.patch.object(CheckedKernel, "follows", False):  # it takes a build more
                report, differences = launch.check(kernel)
        except KernelCompileError as error:
            return Outcome(REFUSED, str(error), str(launch))
        except KernelLaunchError as error:
            return Outcome(CHECKER, f"error: {error}", str(launch))
        if report.findings:
            return Outcome(CHECKER, report.findings[0].kind, str(launch))
        if differences and not wrong:
            wrong = Outcome(NUMBERS, differences[0], str(launch))
    return wrong


def prepare() -> None:
    """Compile what all mutants share: each of them compiles into a folder of its own."""
    runtime_library(), read_headers(True)


def _serve(requests: Connection, work: Callable[[str], Outcome]) -> None:
    """Work on names until the other side hangs up."""
    prepare()
    os.environ["TINYGRAPH_KERNEL_TIMEOUT"] = str(KERNEL_SECONDS)
    while True:
        try:
            name = requests.recv()
        except EOFError:
            return
        requests.send(work(name))


class Sandbox:
    """A process that tries mutants one after the other; replaced when one has brought it down.

    Parameters
    ----------
    work : function of a name
        What the process does; `run` by default.
    seconds : float
        After this an answer is no longer waited for, and the process is ended.
    """

    def __init__(
        self, work: Callable[[str], Outcome] = run, seconds: float = SANDBOX_SECONDS
    ) -> None:
        self._work, self._seconds = work, seconds
        self._process: BaseProcess | None = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._requests, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._work), daemon=True)
        self._process.start()
        theirs.close()

    def run(self, name: str) -> Outcome:
        if self._process is None:
            self._start()
        try:
            self._requests.send(name)
            if self._requests.poll(self._seconds):
                outcome: Outcome = self._requests.recv()
                return outcome
            ended = f"no answer after {self._seconds:.0f} seconds"
        except (EOFError, OSError):
            ended = "the process died"
        self.close()
        return Outcome(CRASHED, ended)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._requests.close()
            self._process = None
