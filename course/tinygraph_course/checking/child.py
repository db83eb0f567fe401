"""The process that holds the learner's code: it loads one file and answers calls, nothing else.

It knows no expected value, no test and no grade.  Once a Python file is loaded, it can open no
other file, and the framework's own answers to the exercise are gone.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import numpy as np

import tinygraph as tg
from tinygraph.base.lazy import above
from tinygraph.cuda import Kernel, Out
from tinygraph.cuda.emulator.trace import ATOMIC, LOAD, RELEASE, STORE, Trace
from tinygraph.engine.op import registry
from tinygraph.testing import memory
from tinygraph_course.checking import wire

# What is loaded when it is first asked for: later no file can be opened.  A room that needs another
# library may be without it, and takes a second where it is not.
for _place in (tg, tg.nn, tg.nn.functional, tg.training, tg.Tensor):
    for _name in {*dir(_place)} - {"sklearn", "TensorBoard"}:
        getattr(_place, _name, None)
for _name in above.homes:
    getattr(above, _name)
# np.median takes numpy.ma
for _name in (
    "tinygraph.interop.torch_names",
    *(f"numpy.{n}" for n in ("fft", "linalg", "ma", "random")),
):
    import_module(_name)


BEFORE = 7.25  # what arrays hold that a kernel shall write
_COMPILING = 60.0  # seconds; a kernel that runs has a limit of its own, the emulator's
_COMPILE = ("launch", "record", "page", "run")


class Limits(NamedTuple):
    """What the process may use."""

    seconds: float = 3.0  # for one call
    megabytes: int = 4096

    def of(self, request: dict[str, Any]) -> float:
        """The seconds that one request may take."""
        return max(self.seconds, _COMPILING) if request["do"] in _COMPILE else self.seconds


_OURS = ("tinygraph", "tinygraph_course")
_ANSWERS = tuple(f"tinygraph_course.{room}" for room in ("content", "exercises", "grading"))
HANG = "Hang"  # what an answer that did not come is called


class _Hang(BaseException):
    """A call took too long; no Exception, which code is used to catch."""


class Child:
    """The learner's functions by name, and what his ops have saved."""

    def __init__(self, path: Path, source: str, limits: Limits) -> None:
        self.path, self.source, self.limits = str(path), source, limits
        self.names: dict[str, Any] = {}
        self.saved: list[tuple[Any, Any]] = []
        self.kernels: dict[Any, Kernel] = {}

    def answers(self, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What several requests give.  After one without an end nothing is tried any more."""
        replies: list[dict[str, Any]] = []
        for request in requests:
            hangs = bool(replies) and replies[-1].get("error", {}).get("kind") == HANG
            replies.append(replies[-1] if hangs else self.answer(request))
        return replies

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """What one request gives, or the error with the learner's line."""
        verbs: dict[str, Callable[..., Any]] = {
            "load": self.load,
            "call": self.call,
            "op": self.op,
            "backward": self.backward,
            "launch": self.launch,
            "record": self.record,
            "page": self.page,
            "run": self.run,
        }
        seconds = self.limits.of(request)
        verb = request.pop("do")
        signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)
        try:
            value = verbs[verb](**request)
        except BaseException as error:  # SystemExit as well: it is an answer
            return {"error": self.describe(error, seconds)}
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if wire.fits(value):
            return {"value": value}
        inner = value[0] if isinstance(value, list) and not wire.fits(value[0]) else value
        return {"odd": _type(inner)}

    def load(self, harness: str) -> None:
        """Run the file, and behind it what tries its functions; lines of that are not told.

        What it draws without a seed of its own is the same in each check.
        """
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002 - the one that learners draw from
        module = ModuleType("exercise")
        module.__file__ = self.path
        sys.modules["exercise"] = module  # dataclasses look their module up
        self.names = vars(module)
        exec(compile(self.source, self.path, "exec"), self.names)
        exec(compile(harness, "harness", "exec"), self.names)

    def call(self, name: str, arguments: list[Any]) -> Any:
        """A function of the file: its value, and the arguments as they are after it."""
        return [self._named(name)(*arguments), arguments]

    def op(self, name: str, settings: list[Any], arrays: list[Any], needs: list[bool]) -> Any:
        """The forward of an op, the arrays after it, and the number and bytes of what it saves."""
        op = self._named(name)(*settings)
        y, saved = op.forward(memory(*needs), *arrays)
        self.saved.append((op, saved))
        return [y, arrays, len(self.saved) - 1, held(saved)]

    def _named(self, name: str) -> Any:
        if name not in self.names:
            raise NameError(f"the file defines no {name}")
        return self.names[name]

    def backward(self, number: int, grad: Any, needs: list[bool]) -> Any:
        """The backward of that op."""
        op, saved = self.saved[number]
        return list(op.backward(memory(*needs), grad, saved, tuple(needs)))

    def launch(self, name: str, defines: dict[str, Any], **launch: Any) -> dict[str, Any]:
        """A launch of a kernel under the checker."""
        return launched(self._kernel(name, defines), **launch)

    def record(self, name: str, defines: dict[str, Any], **launch: Any) -> dict[str, Any]:
        """What happens in one of its blocks."""
        return recorded(self._kernel(name, defines), **launch)

    def page(self, name: str, defines: dict[str, Any], **launch: Any) -> str:
        """The page on which that launch can be gone through."""
        return stepped(self._kernel(name, defines), Path(self.path).with_suffix(".html"), **launch)

    def run(
        self,
        name: str,
        defines: dict[str, Any],
        grid: list[int],
        block: list[int],
        arguments: list[Any],
        written: list[int],
    ) -> list[Any]:
        """A launch of a kernel as it would be made on a GPU: what it has written."""
        self._kernel(name, defines)(tuple(grid), tuple(block), *arguments)
        return [arguments[i] for i in written]

    def _kernel(self, name: str, defines: dict[str, Any]) -> Kernel:
        key = (name, *sorted(defines.items()))
        if key not in self.kernels:
            made = Kernel(Path(self.path), name, defines)
            # What is compiled is found again by its text, where the path stands too: the file lies
            # in another folder at each check.
            made.source = replace(made.source, path=Path("/exercise") / Path(self.path).name)
            self.kernels[key] = made
        return self.kernels[key]

    def warned(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        line: str | None = None,
    ) -> str:
        """A warning as it is printed, without the path of a library, which fills a line."""
        place = f"line {lineno}, " if filename == self.path else ""
        return f"{place}{category.__name__}: {message}\n"

    def describe(self, error: BaseException, seconds: float) -> dict[str, Any]:
        """An error as its class, its words, and the learner's line in which it came up."""
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == self.path]
        line = frames[-1].lineno if frames else getattr(error, "lineno", None)
        lines = self.source.splitlines()
        text = lines[line - 1].strip() if line and 0 < line <= len(lines) else ""
        words = f"no end after {seconds:g} seconds" if isinstance(error, _Hang) else ""
        kind = HANG if words else type(error).__name__
        if isinstance(error, SyntaxError):
            words = error.msg  # its place is told beside it
        return {"kind": kind, "words": words or str(error)[:500], "line": line, "text": text}


def held(saved: Any) -> int:
    """The bytes of the arrays in what an op saves."""
    if isinstance(saved, (list, tuple)):
        return sum(map(held, saved))
    return saved.nbytes if isinstance(saved, np.ndarray) else 0


def launched(
    kernel: Kernel,
    grid: list[int],
    block: list[int],
    arguments: list[Any],
    written: list[int],
    unset: list[int],
    counted: bool,
    seconds: float,
) -> dict[str, Any]:
    """One launch: what the checker finds, what was written, and what was counted or recorded.

    Recorded: who touched what in the first block, and when.  What is counted is a build of its own.
    """
    given = _given(arguments, unset)
    report = kernel.check(
        *(tuple(grid), tuple(block), *given), profile=counted, trace=not counted, timeout=seconds
    )
    names = ("kind", "message", "line", "array", "index", "block", "thread", "other_thread")
    counts = ("line", "space", "access", "requests", "sectors", "wavefronts", "least_wavefronts")
    return {
        "findings": [{key: getattr(f, key) for key in names} for f in report.findings],
        "out": [arguments[i] for i in written],
        "bytes": report.bytes,
        "operations": report.operations,
        "lines": [{key: getattr(line, key) for key in counts} for line in report.lines],
        **_recorded(report.trace),
    }


def recorded(
    kernel: Kernel,
    grid: list[int],
    block: list[int],
    arguments: list[Any],
    unset: list[int],
    seconds: float,
    of: list[int],
    **launch: Any,
) -> dict[str, Any]:
    """The launch once more: who touched what in block `of`."""
    given = _given(arguments, unset)
    blocks = [tuple(of)]
    trace = kernel.trace(tuple(grid), tuple(block), *given, blocks=blocks, timeout=seconds)
    return _recorded(trace)


def _recorded(trace: Trace | None) -> dict[str, Any]:
    """Of a launch that was recorded: its arrays, how often a barrier opened, every access."""
    if trace is None:
        return {"arrays": [], "shared": [], "barriers": 0, "touched": np.zeros((0, 6), np.int64)}
    places = [place.line for place in trace.places]
    events = trace.events[np.isin(trace.events["kind"], (LOAD, STORE, ATOMIC))]
    events = events[(events["array"] >= 0) & ~events["refused"]]
    elements = np.array([array.element for array in trace.arrays] or [1])
    columns = [
        events["array"],
        events["offset"] // elements[events["array"]],
        events["epoch"],
        events["thread"],
        events["kind"] != LOAD,
        np.array([*places, 0])[events["place"]],
    ]
    return {
        "arrays": [array.name for array in trace.arrays],
        "shared": [array.name for array in trace.arrays if array.space == "shared"],
        "barriers": int(np.sum(trace.events["kind"] == RELEASE)),
        "touched": np.stack(columns, axis=1).astype(np.int64),
    }


def stepped(
    kernel: Kernel,
    path: Path,
    grid: list[int],
    block: list[int],
    arguments: list[Any],
    unset: list[int],
    seconds: float,
    **launch: Any,
) -> str:
    """The page of a launch: the one that was checked, from what its arrays held before."""
    given = _given(arguments, unset)
    kernel.steps(path, tuple(grid), tuple(block), *given, timeout=seconds)
    return path.read_text(encoding="utf-8")


def _given(arguments: list[Any], unset: list[int]) -> list[Any]:
    """The arguments of a launch.

    Arrays that are only written hold a number before that no kernel means: what nobody wrote shows.
    """
    for i in unset:
        arguments[i].fill(BEFORE)
    return [Out(a) if i in unset else a for i, a in enumerate(arguments)]


def serve(
    connection: Connection, path: Path, printed: Path, limits: Limits, forbidden: list[str]
) -> None:
    """Answer requests until the other side goes away; `printed` gets what the code prints."""
    # the fork server has it, unless others started it
    import_module("tinygraph_course.checking.warm")
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, _hang)
    out = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout, sys.stderr = (
        os.fdopen(number, "w", 1, encoding="utf-8", errors="backslashreplace") for number in (1, 2)
    )
    child = Child(path, path.read_text(encoding="utf-8"), limits)
    warnings.formatwarning = child.warned
    _confine(limits, forbidden, path.suffix == ".cu")
    while True:
        try:
            requests = wire.receive(connection)
        except (EOFError, wire.Garbled):
            os._exit(0)
        with np.errstate(all="ignore"):
            wire.send(connection, child.answers(requests))


def _confine(limits: Limits, forbidden: list[str], compiles: bool) -> None:
    """Limits of the process; nothing can be opened any more, unless it has to compile."""
    _take_away(set(forbidden))
    resource.setrlimit(resource.RLIMIT_AS, (limits.megabytes << 20,) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 20,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if compiles:
        return
    lowest = os.open(os.devnull, os.O_RDONLY)  # the lowest number that is free
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, lowest))


def _take_away(names: set[str]) -> None:
    """Of all modules of the framework, of its tensors, and of the ops that are known by name.

    Solutions, steps and mistakes are not loaded, and no import finds them.
    """
    loaded = [m for name, m in list(sys.modules.items()) if name.split(".")[0] in _OURS]
    modules: dict[str, Any] = sys.modules
    for name in [name for name in modules if name.startswith(_ANSWERS)]:
        del modules[name]
    modules.update(dict.fromkeys(_ANSWERS))  # None: an import of it fails
    for place in (*loaded, *tg.Tensor.__mro__[:-1], above):
        for name in names & set(vars(place)):
            delattr(place, name)
    for name in [name for name, op in registry.items() if op.__name__ in names]:
        op = registry.pop(name)  # which every class can be asked for: it computes nothing any more
        for method in {"forward", "backward"} & set(vars(op)):
            delattr(op, method)


def _hang(signal_: int, frame: FrameType | None) -> None:
    raise _Hang


def _type(value: Any) -> str:
    """The type of what cannot be sent."""
    if isinstance(value, np.ndarray):
        return f"array of {value.dtype}"
    if isinstance(value, (list, tuple)):
        inner = sorted({_type(x) for x in value if not wire.fits(x)})
        return f"{type(value).__name__} with {', '.join(inner)}"
    return type(value).__name__
