"""What becomes of a mutant: compiled, launched under the checker, compared with numpy.

It all happens in a process of its own, which a mutant may bring down; see `Sandbox`.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.cuda.launch import Launch
from tests.cuda.launches import all_launches
from tests.cuda.mutants import Mutant, called, mutants
from tinygraph.cuda import Kernel
from tinygraph.cuda.emulator.compiler import runtime_library
from tinygraph.cuda.preprocessor import preprocess
from tinygraph.cuda.signature import kernels
from tinygraph.cuda.source import HERE, Source
from tinygraph.errors import KernelCompileError, KernelLaunchError

# A kernel that never ends: seconds until the watchdog stops it, and until the process is ended.
KERNEL_SECONDS, SANDBOX_SECONDS = 1.0, 120.0
CHECKER, NUMBERS, SURVIVED, CRASHED, REFUSED = (
    "checker", "numbers", "survived", "crashed", "refused"
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """How a mutant was caught, or not.

    Attributes
    ----------
    how : str
        "checker": a finding, or a launch that the emulator stopped with an error.
        "numbers": no finding in any launch, but results that are not numpy's.
        "survived": neither.  "crashed": the process died.  "refused": it does not compile.
    what : str
        The kind of the finding, or the error.
    where : str
        The launch.
    """

    how: str
    what: str = ""
    where: str = ""


@cache
def kernel_files() -> tuple[Path, ...]:
    """The .cu files, and the .cuh files that some .cu includes."""
    sources = [Source.read(path) for path in sorted(HERE.glob("*.cu"))]
    included = {path for source in sources for path in source.includes}
    return (*(source.path for source in sources if source.path), *sorted(included))


@cache
def all_mutants() -> dict[str, Mutant]:
    """Every mutant of every kernel file, by its name."""
    found = [m for path in kernel_files() for m in mutants(path.name, path.read_text())]
    return {mutant.name: mutant for mutant in found}


@cache
def compiled_launches() -> dict[tuple[object, ...], list[Launch]]:
    """The launches that share one compiled kernel, by that."""
    groups: dict[tuple[object, ...], list[Launch]] = {}
    for launch in all_launches():
        groups.setdefault(launch.instance, []).append(launch)
    return groups


@cache
def _files(file: str) -> frozenset[str]:
    """A .cu file and what it includes."""
    return frozenset({file, *(path.name for path in Source.read(HERE / file).includes)})


@cache
def _reached(file: str, function: str, defines: tuple[tuple[str, int], ...]) -> frozenset[str]:
    """The functions that a kernel may call, with what `#if` leaves of its source."""
    tokens = preprocess(Source.read(HERE / file, dict(defines)))
    return frozenset(called(" ".join(tokens), function))


def _launches_of(mutant: Mutant) -> list[list[Launch]]:
    """The launches that may execute the line of a mutant, by compiled kernel."""
    found = []
    for launches in compiled_launches().values():
        first = launches[0]
        reached = _reached(first.file, first.function, tuple(first.defines.items()))
        if mutant.file in _files(first.file) and mutant.function in reached:
            found.append(launches)
    return found


def kernels_without_launch() -> dict[str, set[str]]:
    """By file, the kernels that no launch is of."""
    launched = {(ls[0].file, ls[0].function) for ls in compiled_launches().values()}
    found: dict[str, set[str]] = {}
    for path in kernel_files():
        for kernel in kernels(Source.read(path)):
            if (path.name, kernel.name) not in launched:
                found.setdefault(path.name, set()).add(kernel.name)
    return found


def mutants_to_try(waiting: Collection[str]) -> dict[str, Mutant]:
    """All mutants by name, but for those that only kernels of some .cu files can reach."""
    skipped = {name for file in waiting for name in _files(file)}
    return {
        name: mutant for name, mutant in all_mutants().items()
        if mutant.file not in skipped or _launches_of(mutant)
    }  # fmt: skip


def run(name: str) -> Outcome:
    """Try one mutant: the first finding ends the search; numbers count where there is none."""
    mutant = all_mutants()[name]
    wrong: Outcome | None = None
    folder = Path(tempfile.mkdtemp(prefix="mutant-"))
    os.environ["TINYGRAPH_CACHE"] = str(folder / "compiled")
    try:
        for path in kernel_files():
            text = mutant.source if path.name == mutant.file else path.read_text()
            (folder / path.name).write_text(text)
        for launches in _launches_of(mutant):
            outcome = _run_launches(folder, launches)
            if outcome and outcome.how != NUMBERS:
                return outcome
            wrong = wrong or outcome
        return wrong or Outcome(SURVIVED)
    finally:
        shutil.rmtree(folder)


def _run_launches(folder: Path, launches: list[Launch]) -> Outcome | None:
    """The launches of one compiled kernel; None if they all are clean and right."""
    first = launches[0]
    kernel = Kernel(folder / first.file, first.name, first.defines)
    wrong = None
    for launch in launches:
        try:
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


def _serve(requests: Connection, work: Callable[[str], Outcome]) -> None:
    """Work on names until the other side hangs up."""
    runtime_library()  # shared: what mutants compile goes to folders that are removed
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
