"""What the checker found in one launch: `Report`, its `Finding`s and the counts of each line."""

from __future__ import annotations

from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any

from tinygraph.base.frozen import frozen

if TYPE_CHECKING:
    from tinygraph.cuda.emulator.trace import Trace

Index3 = tuple[int, int, int]

SECTOR = 32  # bytes: the unit in which global memory is fetched

CAUSES = {  # what usually stands behind a finding, in a learner's words
    "out-of-bounds": "a missing guard for the last, partly filled block, or an index off by one",
    "race": "a missing __syncthreads() (or __syncwarp()) between a write and the use of it by "
    "another thread; between blocks: a sum that needs an atomic or a second kernel",
    "barrier-divergence": "a __syncthreads() inside an if, a loop or after a return that not all "
    "threads of the block take alike",
    "warp-sync": "a mask that names lanes which do not come to this call: use the mask of the "
    "lanes that do, as __ballot_sync gave it before the branch",
    "deadlock": "threads that wait for each other: a barrier on one path and another wait, or a "
    "spin, on the other; locks that are not taken in one order",
    "uninitialized": "an element that is read before any thread wrote it: a tail that was not "
    "loaded, an accumulator that was not set to zero",
    "unwritten-output": "a grid that covers too few elements, or a guard that is too strict",
    "misaligned": "a vector access (float4, float2, double) whose address is no multiple of its "
    "size: offset or row length must be a multiple of the vector",
    "read-only-write": "a const that was cast away, or two arguments exchanged",
    "timeout": "a loop whose condition nobody changes: a flag that is never set, a lock that is "
    "never given back",
    "overflow": "an index or a size that is formed in int and needs 64 bits: widen a factor first, "
    "(long long)n * c; sums that are meant to wrap are unsigned",
    "arithmetic": "a divisor that no guard keeps from zero, or a shift by all bits of a type",
}


@frozen
class Finding:
    """One mistake in a kernel, at one line.

    Attributes
    ----------
    kind : str
        A key of `CAUSES`.
    message : str
        What happened, where, and what usually causes it.
    file, line, text : str, int or None, str
        The source line; line is None where none belongs to it (an output that nobody wrote).
    array, index : str or None, int or None
        The argument or shared array, and the element within it.
    block, thread : (x, y, z) or None
    other_file, other_line : str, int or None
        The line of the second access of a race, of the barrier where others wait; None if there is
        none.
    other_block, other_thread : (x, y, z) or None
        The second thread, where one can be told.
    event : int or None
        In a launch that was recorded, the number of the event of `Report.trace` at which it
        happened; as many as there are events if that one is not among them.
    others : int
        Of an access that stops its thread: how many other threads are stopped at the same place.
        It is counted for a while only, a second or some million accesses.
    note : bool
        Whether it is no mistake on a GPU of today, but was one before Volta: threads that have left
        the kernel do not come to a barrier, or are named in a mask.
    same_value : bool
        Of a race: whether both threads always wrote the same value.
    """

    kind: str
    message: str
    file: str = ""
    line: int | None = None
    text: str = ""
    array: str | None = None
    index: int | None = None
    block: Index3 | None = None
    thread: Index3 | None = None
    other_file: str = ""
    other_line: int | None = None
    other_block: Index3 | None = None
    other_thread: Index3 | None = None
    event: int | None = None
    others: int = 0
    note: bool = False
    same_value: bool = False


@frozen
class LineCounts:
    """How one source line reads or writes memory, counted over all warps of a launch.

    Attributes
    ----------
    space, access : str
        "global" or "shared"; "load", "store" or "atomic".
    size : int
        Bytes that one thread moves.
    requests : int
        Warp requests: one for all lanes of a warp that execute the access together.
    sectors, least_sectors : int
        Global memory: sectors of 32 bytes that were touched, and how few would have held the bytes.
    wavefronts, least_wavefronts : int
        Shared memory: passes that bank conflicts made necessary, and how few would do.
    """

    file: str
    line: int
    text: str
    space: str
    access: str
    size: int
    requests: int
    sectors: int = 0
    least_sectors: int = 0
    wavefronts: int = 0
    least_wavefronts: int = 0

    @property
    def sectors_per_request(self) -> float:
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def coalescing(self) -> float:
        """The share of the fetched bytes that was asked for; 1 is perfect."""
        return self.least_sectors / self.sectors if self.sectors else 1.0

    @property
    def bank_conflict(self) -> float:
        """How many times longer than without conflicts; 1 is perfect, 32 the worst."""
        return self.wavefronts / self.least_wavefronts if self.least_wavefronts else 1.0


@frozen
class Report:
    """Everything that the checker saw in one launch.

    Attributes
    ----------
    kernel : str
    findings : list of Finding
        Mistakes, and notes (`Finding.note`); `ok` where there is no mistake.
    lines : list of LineCounts
        Only with `profile=True`, in the order of the source.
    bytes : int
        Bytes between the kernel and global memory, in whole sectors (with `profile=True`).
    operations : int
        Floating-point operations that the threads executed (with `profile=True`).
    trace : Trace or None
        What happened, one event after the other (with `trace=True`).
    """

    kernel: str
    findings: list[Finding] = field(default_factory=list)
    lines: list[LineCounts] = field(default_factory=list)
    bytes: int = 0
    operations: int = 0
    trace: Trace | None = None

    @property
    def ok(self) -> bool:
        return all(finding.note for finding in self.findings)

    @property
    def intensity(self) -> float:
        """Floating-point operations for each byte of global memory traffic."""
        return self.operations / self.bytes if self.bytes else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts, as JSON takes them."""
        ratios = ("sectors_per_request", "coalescing", "bank_conflict")
        lines = [{**asdict(c), **{name: getattr(c, name) for name in ratios}} for c in self.lines]
        return {
            "kernel": self.kernel,
            "ok": self.ok,
            "findings": [asdict(f) for f in self.findings],
            "lines": lines,
            "bytes": self.bytes,
            "operations": self.operations,
            "intensity": self.intensity,
        }

    def text(self, colour: bool = False) -> str:
        """The report as lines for a terminal."""
        paint = _paint if colour else _plain
        notes = sum(finding.note for finding in self.findings)
        mistakes = len(self.findings) - notes
        verdict = "clean" if self.ok else _counted(mistakes, "finding")
        verdict += f", {_counted(notes, 'note')}" if notes else ""
        out = [f"{paint(self.kernel, BOLD)}: {paint(verdict, GREEN if self.ok else RED)}"]
        for finding in self.findings:
            place = f"{finding.file}:{finding.line}" if finding.line else finding.file
            kind = f"note, {finding.kind}" if finding.note else paint(finding.kind, RED)
            out += ["", f"{kind}  {paint(place, BOLD)}"]
            if finding.line:
                out += [f"  {finding.line:4d} | {finding.text}"]
            out += [f"  {line}" for line in finding.message.splitlines()]
        if self.lines:
            out += ["", *self._counts()]
        return "\n".join(out)

    def _counts(self) -> list[str]:
        """The table of lines, and the intensity under it."""
        rows = []
        for c in self.lines:
            if c.space == "global":
                verdict = f"{c.sectors_per_request:5.2f} sectors/request, {c.coalescing:4.0%} used"
            else:
                conflict = f"{c.bank_conflict:.3g}-way bank conflict"
                verdict = conflict if c.bank_conflict > 1.001 else "no bank conflict"
            rows.append(
                f"  {c.line:4d} | {c.space} {c.access:6s} {c.size:2d} B x {c.requests:7d} warps: "
                f"{verdict:34s} {c.text}"
            )
        rows.append(
            f"  {self.bytes:,} bytes of global memory, {self.operations:,} floating-point "
            f"operations: {self.intensity:.3g} operations a byte"
        )
        return rows


BOLD, RED, GREEN = "1", "31;1", "32;1"


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" + ("s" if count > 1 else "")


def _paint(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def _plain(text: str, code: str) -> str:
    return text
