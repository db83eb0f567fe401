"""The checker: one launch in which every access to memory is looked at before it happens.

Arrays are copied to places far from each other, so that an index that goes astray meets nothing
else; the kernel runs on one thread of the operating system; findings come back with program
counters, which the debug information turns into lines.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

from tinygraph.base.errors import KernelCompileError
from tinygraph.cuda.arguments import Argument, ArgumentList
from tinygraph.cuda.emulator import again
from tinygraph.cuda.emulator.books import COUNTS, Counter, Found, checker_library
from tinygraph.cuda.emulator.compiler import find_follower
from tinygraph.cuda.emulator.copies import Copy, copy_apart, copy_back, copy_of, value_of
from tinygraph.cuda.emulator.findings import SECTOR, Finding, LineCounts, Report
from tinygraph.cuda.emulator.lines import symbols
from tinygraph.cuda.emulator.locals import declares_without_value
from tinygraph.cuda.emulator.native import (
    STOPPED_BY_CHECKER,
    Failure,
    Three,
)
from tinygraph.cuda.emulator.native import timeout as default_timeout
from tinygraph.cuda.emulator.operations import count as operations_executed
from tinygraph.cuda.emulator.record import Recorder, Wish, located
from tinygraph.cuda.emulator.telling import CHECKED_WAYS_OUT, TellingKernel, kind_of
from tinygraph.cuda.emulator.variables import Variables

# Flags of a region, as in runtime/check.h.
_READ_ONLY, _MUST_BE_WRITTEN, _OUTPUT_IF_ONLY_WRITTEN, _OF_THE_MODULE = 2, 4, 8, 16
_ROLES = {"in": _READ_ONLY, "out": _MUST_BE_WRITTEN, "inout": 0, "auto": _OUTPUT_IF_ONLY_WRITTEN}
CHECK_TIMEOUT = 10.0  # seconds for one block
_one_at_a_time = Lock()  # the checker's books are there once in a process


_ATOMIC = 2
VIRTUAL = "virtual"


class CheckedKernel(TellingKernel):
    """A kernel compiled with a hook before every access to memory."""

    build = "checked"
    ways_out: ClassVar[Mapping[int, str]] = {**TellingKernel.ways_out, **CHECKED_WAYS_OUT}
    follows = True  # whether a launch in which an undefined value may be used is looked at again

    @cached_property
    def profiling(self) -> CheckedKernel:
        """The same kernel with hooks that count floating-point operations as well."""
        return ProfiledKernel(self.source, self.signature)

    @cached_property
    def tracing(self) -> TracedKernel:
        """The same kernel without optimisation, with hooks that tell where a thread is."""
        return TracedKernel(self.source, self.signature)

    @cached_property
    def following(self) -> FollowedKernel | None:
        """The same kernel built so that values are followed; None where no compiler can."""
        try:
            if not find_follower():
                return None
            return FollowedKernel(self.source, self.signature)
        except KernelCompileError:  # clang does not take what g++ takes
            return None

    @cached_property
    def _declares_without_value(self) -> bool:
        return declares_without_value(self.source.tokens)

    @cached_property
    def variables(self) -> list[tuple[str, int, int]]:
        """(name, address, bytes) of the __constant__ and __device__ variables of the source."""
        found = symbols_of(self.path, self.translation.words)
        return [(name, self.base + address, size) for name, address, size in found]

    def check(
        self,
        arguments: Sequence[Argument],
        grid: Three,
        block: Three,
        shared: int,
        profile: bool = False,
        wish: Wish | None = None,
        timeout: float | None = None,
    ) -> Report:
        """Run one launch under the checker.  What the kernel writes arrives in the arrays."""
        needed = "traced" if wish else "profiled" if profile else "checked"
        if self.build != needed:
            other = self.tracing if wish else self.profiling
            return other.check(arguments, grid, block, shared, profile, wish, timeout)
        seconds = default_timeout(CHECK_TIMEOUT) if timeout is None else timeout
        with _one_at_a_time:
            copies = copy_apart(arguments, checker_library())
            try:
                launch = arguments, copies, grid, block, shared
                report, undefined, orders = self._watch(*launch, profile, wish, seconds)
                found: list[Finding] = []
                if undefined and self.follows:
                    found += self._undefined(*launch, seconds, report)
                if orders:
                    found += again.insisting(self, arguments, grid, block, shared)
                report = replace(report, **located(report.trace, found)) if found else report
            finally:
                copy_back(copies, checker_library())
        return report

    def _undefined(
        self,
        arguments: Sequence[Argument],
        copies: list[Copy],
        grid: Three,
        block: Three,
        shared: int,
        seconds: float,
        report: Report,
    ) -> list[Finding]:
        """Where undefined values are used in a launch that has left `copies`."""
        if self.following:
            return self.following.follow(arguments, grid, block, shared, seconds)
        if not report.ok:
            return []
        trials = import_module("tinygraph.cuda.emulator.trials")
        found: list[Finding] = []
        if checker_library().tg_check_absent():
            found = trials.absent_values(self, arguments, copies, grid, block, shared, seconds)
        if self._declares_without_value:
            found += trials.told_by_compiler(self, self.unit)
        return found

    def _watch(
        self,
        arguments: Sequence[Argument],
        copies: list[Copy],
        grid: Three,
        block: Three,
        shared: int,
        profile: bool,
        wish: Wish | None,
        seconds: float,
    ) -> tuple[Report, bool, bool]:
        """The launch on copies: its report, whether an undefined value may have been used, and
        whether threads have taken locks in different orders."""
        library = checker_library()
        library.tg_check_begin(int(profile), *self.range)
        record = Recorder(library, wish, self) if wish else None
        trace = None
        try:
            self.declare(arguments, copies)
            if record:
                record.begin(arguments)
            packed = ArgumentList(self.signature).pack([value_of(a, copies) for a in arguments])
            failure = Failure()
            kind = self.run(packed, grid, block, shared, failure, seconds)
            if not kind:
                library.tg_check_outputs()
            library.tg_check_waits()
            orders = bool(not kind and library.tg_check_locks())
            findings = self.findings(arguments)
            if record:
                trace = record.end(grid, block, findings)
                findings = list(trace.findings)
            mistakes = {finding.kind for finding in findings if not finding.note}
            if kind not in (0, STOPPED_BY_CHECKER) and not mistakes:
                raise self.error(failure, packed)
            lines = self._counts() if profile else []
            operations = operations_executed(self.library, library) if profile else 0
            may_be_undefined = (
                library.tg_check_absent()
                or library.tg_check_doubtful()
                or self._declares_without_value
            )
        finally:
            library.tg_check_end()
        moved = sum(c.sectors * SECTOR for c in lines if c.space == "global")
        report = Report(self.signature.name, findings, lines, moved, operations, trace)
        # An undefined index is the mistake, an access out of bounds the consequence.
        explained = mistakes <= {"out-of-bounds", "misaligned"}
        return report, bool(may_be_undefined) and explained, orders

    def declare(self, arguments: Sequence[Argument], copies: list[Copy]) -> None:
        """Tell the run time of all arrays and variables that the kernel may touch."""
        library = checker_library()
        for argument in arguments:
            copy = copy_of(argument, copies)
            if copy is None or copy.arguments[0] is not argument:
                continue  # several arguments in one memory: one array, under the first name
            alone = len(copy.arguments) == 1
            library.tg_check_region(
                copy.address,
                copy.high - copy.low,
                argument.parameter.name.encode(),
                argument.value.itemsize,
                _ROLES[argument.role] if alone else 0,
                int(not (alone and argument.role == "out")),
            )
        for name, address, size in self.variables:
            flags = _OF_THE_MODULE
            if self.is_constant(name):
                flags |= _READ_ONLY
            library.tg_check_region(address, size, name.encode(), _element(size), flags, 1)

    def is_constant(self, name: str) -> bool:
        """Whether a variable of the source is one that no kernel may write."""
        return name == VIRTUAL or name in self.translation.constants

    # ---- findings ---------------------------------------------------------------------------

    def findings(self, arguments: Sequence[Argument]) -> list[Finding]:
        """What the run time has noted in this launch."""
        library = checker_library()
        table = ctypes.POINTER(Found)()
        count = library.tg_check_findings(ctypes.byref(table))
        found: list[Finding] = []
        seen: dict[tuple[Any, ...], int] = {}
        for i in range(count):
            raw = table[i]
            kind = kind_of(raw)
            if kind == "barrier-divergence" and self.is_same_barrier(raw):
                continue
            if kind in ("overflow", "arithmetic") and not self.in_source(raw.place.file.decode()):
                continue  # an intrinsic that CUDA defines where C++ does not
            places = (kind, *sorted([self.place_of(raw.place), self.place_of(raw.other)]))
            told = self.told(raw, kind, arguments)
            if raw.place.pc and places in seen:  # the load and the store of one `x += 1`
                if found[seen[places]].same_value and not told.same_value:
                    found[seen[places]] = told
                continue
            seen[places] = len(found)
            found.append(told)
        return found

    # ---- counts -----------------------------------------------------------------------------

    def _counts(self) -> list[LineCounts]:
        library = checker_library()
        sums: dict[tuple[Any, ...], list[int]] = {}
        counter, number = Counter(), 0
        while library.tg_profile_line(number, ctypes.byref(counter)):
            number += 1
            file, line = self.place_of(library.tg_site(counter.site))
            if not line:
                continue
            access = "atomic" if counter.how & _ATOMIC else "store" if counter.how else "load"
            key = (file, line, "shared" if counter.shared else "global", access, counter.size)
            row = sums.setdefault(key, [0] * len(COUNTS))
            for i, name in enumerate(COUNTS):
                row[i] += getattr(counter, name)
        return [
            LineCounts(file, line, self.line_text(file, line), space, access, size, *numbers)
            for (file, line, space, access, size), numbers in sorted(sums.items())
        ]


class ProfiledKernel(CheckedKernel):
    """Built with a hook at each basic block, and a table of how much arithmetic lies in it."""

    build = "profiled"


class TracedKernel(CheckedKernel):
    """Built as one that is profiled, without optimisation: what is recorded follows the source."""

    build = "traced"

    @cached_property
    def in_frames(self) -> Variables:
        """The variables of the user's functions."""

        def is_wanted(address: int) -> bool:
            place = self.lines.find(address + 1)
            return place is not None and self.in_source(place[0])

        return Variables(self.path, is_wanted)


class FollowedKernel(CheckedKernel):
    """Built so that the run time knows which values are undefined, for a second launch."""

    build = "followed"

    def follow(
        self,
        arguments: Sequence[Argument],
        grid: Three,
        block: Three,
        shared: int,
        seconds: float,
    ) -> list[Finding]:
        """Run the launch again on copies of what the arrays held, which nobody gets back.

        It takes some ten times as long as the first launch, which has come to its end: that it is
        given up says nothing of the kernel.
        """
        launched = again.launched(self, arguments, grid, block, shared, seconds, follow=True)
        with launched:
            found = self.findings(arguments)
            return [f for f in found if not f.note and f.kind not in ("timeout", "deadlock")]


def symbols_of(path: Path, words: set[str]) -> list[tuple[str, int, int]]:
    """(name, address in the file, bytes) of the variables of a library that its source names.

    So are tables of virtual functions, which nobody may write.
    """
    found = []
    for symbol, address, size in symbols(path):
        name = _plain_name(symbol)
        if symbol.startswith("_ZTV"):
            found.append((VIRTUAL, address, size))
        elif name in words and not name.startswith("tg_"):
            found.append((name, address, size))
    return found


def _element(size: int) -> int:
    return 4 if size % 4 == 0 else 1


def _plain_name(symbol: str) -> str:
    """The name of a variable: `_ZL6counter` and `_ZN2ns6counterE` are `counter`."""
    if not symbol.startswith("_Z"):
        return symbol
    rest, name = symbol[2:].lstrip("NL"), symbol
    while rest[:1].isdigit():
        digits = len(rest) - len(rest.lstrip("0123456789"))
        length = int(rest[:digits])
        name, rest = rest[digits : digits + length], rest[digits + length :]
        rest = rest.lstrip("L")
    return name
