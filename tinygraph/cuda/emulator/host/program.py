"""The process of a program: started, watched, and what it says of its launches.

The program runs in a process of its own, so that a crash, `exit` or an endless loop ends that
process alone.  Its launches send findings through a pipe (runtime/report.c); this side knows the
source.
"""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, BinaryIO, ClassVar

from tinygraph.base.frozen import frozen
from tinygraph.base.text_file import source_text
from tinygraph.cuda.emulator.books import Found
from tinygraph.cuda.emulator.findings import Finding, Report
from tinygraph.cuda.emulator.host.building import Program
from tinygraph.cuda.emulator.lines import Lines
from tinygraph.cuda.emulator.native import Failure
from tinygraph.cuda.emulator.telling import CHECKED_WAYS_OUT, TellingKernel, kind_of

DEFAULT_TIMEOUT = 600.0  # seconds for the whole program


@frozen
class ProgramRun:
    """What came of a run.

    Attributes
    ----------
    status : int
        The exit status; 128 and the number of the signal that ended it.
    reports : list of Report
        One for each kernel with findings, each finding once.
    notes : list of str
        Why a kernel, or the program, ended early.
    stopped : bool
        Whether a kernel was stopped for another reason than a finding, or one that the program gave
        itself (an assertion, `__trap`): then its results are none, whatever its exit status says.
    """

    status: int
    reports: list[Report] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stopped: bool = False

    @property
    def ok(self) -> bool:
        return not self.stopped and all(report.ok for report in self.reports)


def run(
    program: Program,
    arguments: Sequence[str] = (),
    timeout: float = DEFAULT_TIMEOUT,
    stdout: int | None = None,
    stderr: int | None = None,
) -> ProgramRun:
    """Run a program to its end.

    Parameters
    ----------
    program : Program
    arguments : sequence of str
        The program's own.
    timeout : float
        Seconds after which it is ended.
    stdout, stderr : file descriptor, optional
        Where what it prints goes; where this process prints by default.
    """
    reading, writing = os.pipe()
    with tempfile.NamedTemporaryFile("w", suffix=".variables", encoding="utf-8") as variables:
        for name, address, size, constant in program.variables:
            variables.write(f"{name[:63]} {address} {size} {int(constant)}\n")
        variables.flush()
        environment = {
            **os.environ,
            "TINYGRAPH_PROGRAM_CHECK": str(int(program.checked)),
            "TINYGRAPH_PROGRAM_REPORT": str(writing),
            "TINYGRAPH_PROGRAM_VARIABLES": variables.name,
        }
        child = subprocess.Popen(
            [program.sources[0].name.rpartition(".")[0], *arguments],
            executable=str(program.path),
            pass_fds=[writing],
            env=environment,
            stdout=stdout,
            stderr=stderr,
        )
        os.close(writing)
        reader = _Reader(program, reading)
        reader.start()
        notes = _wait(child, timeout)
        reader.join()
    status = child.returncode
    if status < 0:
        name = signal.Signals(-status).name
        notes = notes or [f"the program was ended by {name}"]
        status = 128 - status
    return ProgramRun(status, reader.reports(), [*reader.notes, *notes], reader.stopped)


def _wait(child: subprocess.Popen[bytes], timeout: float) -> list[str]:
    """Wait for the end; a note if it did not come in time."""
    end = time.monotonic() + timeout
    while True:
        try:
            child.wait(max(0.0, end - time.monotonic()))
            return []
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            return [f"the program was not done after {timeout:g} s; --timeout gives it more"]
        except KeyboardInterrupt:  # the child has got the same signal
            end = min(end, time.monotonic() + 2.0)


class _Reader(Thread):
    """Reads what a program sends of its launches."""

    def __init__(self, program: Program, descriptor: int) -> None:
        super().__init__(daemon=True)
        self.program, self.notes, self.stopped = program, list[str](), False
        self._descriptor = descriptor
        self._found: dict[str, dict[tuple[Any, ...], Finding]] = {}
        self._raw: list[tuple[str, str, bytes, bytes, bytes]] = []
        self._base = 0

    def run(self) -> None:
        with os.fdopen(self._descriptor, "rb") as pipe:
            while letter := pipe.read(1):
                if letter == b"B":
                    (self._base,) = struct.unpack("=Q", pipe.read(8))
                    continue
                name = _block(pipe).decode(errors="replace")
                body = _block(pipe)
                files = (_block(pipe), _block(pipe)) if letter == b"F" else (b"", b"")
                record = (letter.decode(), name, body, *files)
                if len(self._raw) < 10000:
                    self._raw.append(record)

    def reports(self) -> list[Report]:
        """The findings by kernel; one for each mistake, however many launches have met it."""
        for letter, name, body, file, other in self._raw:
            kind = _CheckedTeller if self.program.checked else _Teller
            teller = kind(self.program, name, self._base)
            if letter == "E":
                self.stopped = True
                self.notes.append(teller.failure(Failure.from_buffer_copy(body)))
                continue
            raw = Found.from_buffer_copy(body)
            raw.place.file, raw.other.file = file or None, other or None
            found = teller.finding(raw)
            if found:
                place = (found.kind, found.file, found.line, found.array)
                kept = self._found.setdefault(name, {}).setdefault(place, found)
                if (kept.note and not found.note) or (kept.same_value and not found.same_value):
                    self._found[name][place] = found
        return [Report(name or "host", list(found.values())) for name, found in self._found.items()]


def _block(pipe: BinaryIO) -> bytes:
    size = pipe.read(4)
    return pipe.read(struct.unpack("=I", size)[0]) if len(size) == 4 else b""


_CHECKED = "run it without --no-check"
_WAYS_OUT = {
    1: f"{_CHECKED}: the checker stops before the access and names the array and the index",
    6: f"let all lanes of a mask reach the same call; {_CHECKED} to see who waits where",
    7: "change that line, or run the program on a GPU",
}


class _Teller(TellingKernel):
    """Turns what came of a program into words: its lines are those of the program."""

    ways_out: ClassVar[Mapping[int, str]] = {**TellingKernel.ways_out, **_WAYS_OUT}

    def __init__(self, program: Program, name: str, base: int) -> None:
        self.program, self.source, self.checked = program, program.sources[0], program.checked
        self.signature: Any = SimpleNamespace(name=name, function=name, parameters=())
        self.path, self.base = program.path, base

    @property
    def lines(self) -> Lines:
        return _lines(self.path)

    def finding(self, raw: Any) -> Finding | None:
        kind = kind_of(raw)
        if kind == "barrier-divergence" and self.is_same_barrier(raw):
            return None
        return self.told(raw, kind, ())

    def failure(self, failure: Failure) -> str:
        """Why a kernel was stopped, or how the host met memory of the device."""
        if self.signature.name == "host":
            place = self.place_at(failure.pc + 1)
            where = f" at {self.quoted(*place)}" if place else ""
            return f"the host touched {failure.text.decode()}, memory of the device,{where}"
        return str(self.error(failure, b""))

    def line_text(self, file: str, line: int) -> str:
        if Path(file).is_absolute() and Path(file).is_file():
            lines = source_text(Path(file), warn=False).split("\n")
            return lines[line - 1].strip() if 1 <= line <= len(lines) else ""
        return super().line_text(file, line)


class _CheckedTeller(_Teller):
    """The same, where the checker was on."""

    ways_out: ClassVar[Mapping[int, str]] = {**_Teller.ways_out, **CHECKED_WAYS_OUT}


_known: dict[Path, Lines] = {}


def _lines(path: Path) -> Lines:
    return _known.setdefault(path, Lines(path))
