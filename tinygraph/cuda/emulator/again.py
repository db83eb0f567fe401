"""A second launch, on other copies of what the arrays held, which nobody gets back."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tinygraph.cuda.arguments import Argument, ArgumentList
from tinygraph.cuda.emulator.books import checker_library
from tinygraph.cuda.emulator.copies import Copy, copy_apart, value_of
from tinygraph.cuda.emulator.findings import Finding
from tinygraph.cuda.emulator.native import Failure, Three

_SECONDS = 0.5  # for a block: where locks are found taken, it may well wait for ever


@contextmanager
def launched(
    kernel: Any,
    arguments: Sequence[Argument],
    grid: Three,
    block: Three,
    shared: int,
    seconds: float,
    follow: bool = False,
    absent: int = 0,
    contend: bool = False,
) -> Iterator[tuple[int, list[Copy]]]:
    """Launch `kernel`; gives the kind of its failure, 0 for none, and the arrays that it has left.

    Parameters
    ----------
    follow : bool
        Follow undefined values; the kernel is built for that.
    absent : int
        What a lane gets from one that is absent.
    contend : bool
        Let who holds a lock find the next one taken.
    """
    library = checker_library()
    copies = copy_apart(arguments, library)
    if follow:
        library.tg_follow_begin(*kernel.range)
    else:
        library.tg_check_begin(0, *kernel.range)
    library.tg_check_absent_value(absent)
    if contend:
        library.tg_check_contend()
    try:
        kernel.declare(arguments, copies)
        packed = ArgumentList(kernel.signature).pack([value_of(a, copies) for a in arguments])
        yield kernel.run(packed, grid, block, shared, Failure(), seconds), copies
    finally:
        if follow:
            library.tg_follow_end()
        else:
            library.tg_check_end()
        for copy in copies:
            library.tg_far_free(copy.memory, copy.size)


def insisting(
    kernel: Any, arguments: Sequence[Argument], grid: Three, block: Three, shared: int
) -> list[Finding]:
    """Whether threads that take locks in different orders would wait for each other for ever: the
    one that finds a lock taken may give back what it holds."""
    kept = [
        (address, ctypes.string_at(address, size))
        for name, address, size in kernel.variables
        if not kernel.is_constant(name)
    ]
    with launched(kernel, arguments, grid, block, shared, _SECONDS, contend=True):
        checker_library().tg_check_locks_insisted()
        found: list[Finding] = [f for f in kernel.findings(arguments) if not f.note]
    for address, held in kept:
        ctypes.memmove(address, held, len(held))
    return found
