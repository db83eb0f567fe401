"""Threads that share the work of one op.

An op cuts its work into shares by shapes alone, each with results of its own, so that its bits do
not depend on who computes which share.  Meanwhile BLAS has one thread, also where one thread has
all the work: products of several threads would otherwise wait for one another, and threads of BLAS
that have nothing more to do turn in a circle for some 25 ms (OpenBLAS's THREAD_TIMEOUT), in which
they take a core from the threads of the next op.  A ResNet's step takes two thirds of the time.
For the same reason small products have one thread of BLAS, see ops/common/blocks.py.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def pool(process: int) -> Any:
    """The threads of all ops and plans in a process; one that was forked off has none of its
    parent's."""
    from concurrent.futures import ThreadPoolExecutor  # not before threads are needed

    return ThreadPoolExecutor(max(1, cores() - 1), thread_name_prefix="tinygraph")


def workers() -> int:
    """How many threads may share the work of an op: as many as BLAS was told to have.

    One where threadpoolctl is missing, which has to keep BLAS to one thread meanwhile.
    """
    with _lock:
        found = [was for _, was in _before] if _inside else [blas.num_threads for blas in _blas()]
    return min([cores(), *found]) if found else 1


def share_out(shares: int, threads: int, work: Callable[[int, int], None]) -> None:
    """`work(thread, share)` for every share; each thread takes neighbouring ones.

    >>> done = []
    >>> share_out(3, 1, lambda thread, share: done.append((thread, share)))
    >>> done
    [(0, 0), (0, 1), (0, 2)]
    """

    @np.errstate(all="ignore")  # inf and nan are results, not accidents
    def run(thread: int) -> None:
        for share in range(shares * thread // threads, shares * (thread + 1) // threads):
            work(thread, share)

    with one_blas_thread():
        others = [pool(os.getpid()).submit(run, thread) for thread in range(1, threads)]
        try:
            run(0)
        finally:  # they write into arrays of the caller's
            errors = [other.exception() for other in others]
    for error in errors:
        if error is not None:
            raise error


_lock = threading.Lock()
_before: list[tuple[Any, int]] = []  # libraries with the threads that they had
_inside = 0  # how many threads are in `one_blas_thread`


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keeps BLAS to one thread, where threadpoolctl is there to do so.

    The last one that leaves gives it back the threads that it had when the first one came.
    """
    global _inside
    with _lock:
        if not _inside:
            _before[:] = [(library, library.num_threads) for library in _blas()]
            for library, _ in _before:
                library.set_num_threads(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                for library, threads in _before:
                    library.set_num_threads(threads)


@cache
def _blas() -> list[Any]:
    try:
        from threadpoolctl import ThreadpoolController

        return list(ThreadpoolController().select(user_api="blas").lib_controllers)
    except (ImportError, OSError):  # none, or a process that may open no file
        return []
