"""Notes: a rank that ends tells the others, for whoever waits for it would wait for ever.

    rank 1    returns too early, or raises SystemExit      at its end: a note to each
    rank 0    waits in a collective                        after a second it reads its notes

A rank may well end before the others do.  Only one that is waited for has ended too early.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

_BETWEEN = 0.25  # seconds between two looks at what has come
_WORD = np.zeros(1, np.int8)


class Notes:
    """What ranks have told; read in a thread of its own, in case an MPI lets that one wait."""

    def __init__(self, MPI: Any) -> None:
        self.ended: set[int] = set()
        self._mpi = MPI
        self._comm = MPI.COMM_WORLD.Dup()  # nobody else's messages
        self._thread: threading.Thread | None = None

    @property
    def usable(self) -> bool:
        """Whether the ranks still belong together."""
        return not self._mpi.Is_finalized()

    def tell(self) -> None:
        """This rank ends.  Nobody has to receive it: MPI lets a word of that size go."""
        if not self.usable:
            return
        for rank in range(self._comm.Get_size()):
            if rank != self._comm.Get_rank():
                self._comm.Isend(_WORD, rank).Free()

    def listen(self) -> None:
        """Read from now on, where the MPI takes calls from several threads."""
        if self._thread is None and self._mpi.Query_thread() == self._mpi.THREAD_MULTIPLE:
            self._thread = threading.Thread(target=self._read, name="tinygraph notes", daemon=True)
            self._thread.start()

    def _read(self) -> None:
        word, status = _WORD.copy(), self._mpi.Status()
        while self.usable:
            while self._comm.Iprobe(self._mpi.ANY_SOURCE, self._mpi.ANY_TAG, status):
                self._comm.Recv(word, status.Get_source())
                self.ended.add(status.Get_source())
            time.sleep(_BETWEEN)
