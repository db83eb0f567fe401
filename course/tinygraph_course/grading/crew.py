"""Grading in several processes: one that dies takes one file with it, and a result is kept at once.

Each process grades one file after the other; what goes between it and this one is JSON.
"""

from __future__ import annotations

import json
import multiprocessing
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tinygraph.base.frozen import frozen
from tinygraph.base.json_text import to_json
from tinygraph.files.sealed import write_json
from tinygraph_course.checking.learner import started
from tinygraph_course.content.exercise import find
from tinygraph_course.grading.grading import Record, able, graded, read
from tinygraph_course.grading.private import Pack

PATIENCE = 600.0  # seconds that one file may take


@frozen
class Job:
    """One file to grade, or the few that belong to one exercise.

    Attributes
    ----------
    key : str
        Under which its record is kept; jobs of one key are graded once.
    exercise : str
    files : dict from str to bytes
    pack : str
        The text of the private pack; empty for none.
    """

    key: str
    exercise: str
    files: dict[str, bytes]
    pack: str = ""


def grade(
    jobs: Sequence[Job], store: Path, count: int, again: bool = False, patience: float = PATIENCE
) -> Iterator[tuple[str, Record, bool]]:
    """Keys with their records, as they come, and whether a record was there before.

    Parameters
    ----------
    jobs : sequence of Job
    store : Path
        The folder in which records are kept.
    count : int
        How many processes.
    again : bool
        Grade what was graded before too.
    patience : float
        Seconds that one job may take.

    Yields
    ------
    key : str
    record : dict
        See `grading.graded`; {"error": words} where the grader failed, which is not kept.
    kept : bool

    Raises
    ------
    TinygraphError
        The grader does not work here, see `grading.able`.
    """
    todo: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[Job, Record]] = queue.SimpleQueue()
    fresh: dict[str, Job] = {}
    for job in jobs:
        if job.key in fresh:
            continue
        record = None if again else read(store / f"{job.key}.json")
        if record is None:
            fresh[job.key] = job
            todo.put(job)
        else:
            yield job.key, record, True
    if fresh:
        able()
    workers = [_Worker(todo, done, patience) for _ in range(min(count, len(fresh)))]
    try:
        for worker in workers:
            worker.start()
        for _ in fresh:
            job, record = done.get()
            if "error" not in record:
                write_json(store / f"{job.key}.json", record)
            yield job.key, record, False
    finally:
        with suppress(queue.Empty):
            while True:
                todo.get_nowait()
        for _ in workers:
            todo.put(None)
        for worker in workers:
            worker.end()


class _Worker(threading.Thread):
    """A thread that asks a process of its own, and begins another one where that has died."""

    def __init__(
        self,
        todo: queue.SimpleQueue[Job | None],
        done: queue.SimpleQueue[tuple[Job, Record]],
        patience: float,
    ) -> None:
        super().__init__(daemon=True)
        self.todo, self.done, self.patience = todo, done, patience
        self.process: Any = None
        self.connection: Connection[Any, Any] | None = None

    def run(self) -> None:
        while (job := self.todo.get()) is not None:
            self.done.put((job, self._asked(job)))
        self._stop()

    def _asked(self, job: Job) -> Record:
        try:
            if self.process is None:
                self._begin()
            connection = self.connection
            assert connection is not None
            files = {name: content.hex() for name, content in job.files.items()}
            connection.send_bytes(json.dumps([job.exercise, files, job.pack]).encode())
            if not connection.poll(self.patience):
                self._stop()
                return {"error": f"no end after {self.patience:g} seconds"}
            record: Record = json.loads(connection.recv_bytes())
            return record
        except (EOFError, OSError, ValueError) as error:
            self._stop()
            return {"error": f"the process that graded it has ended ({type(error).__name__})"}

    def _begin(self) -> None:
        self.connection, its = multiprocessing.Pipe()
        self.process = started(_serve, (its,), daemon=False)
        its.close()

    def _stop(self) -> None:
        process, connection, self.process = self.process, self.connection, None
        if process is not None:
            process.terminate()
            process.join(2)
            process.kill()
            process.join()
        if connection is not None:
            connection.close()

    def end(self) -> None:
        """End the process, whatever it does; the thread sees that, and that nothing is left."""
        process = self.process
        if process is not None and process.is_alive():
            process.terminate()
        self.join(10)


def _serve(connection: Connection[Any, Any]) -> None:
    """Grade what comes, until the other side goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # with what was begun cleared away
    while True:
        try:
            name, files, pack = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            return
        contents = {file: bytes.fromhex(text) for file, text in files.items()}
        try:
            record = graded(find(name), contents, Pack.read(pack) if pack else None)
        except Exception as error:  # ours: it is told, and the next file is graded
            last = traceback.format_exc().strip().splitlines()[-12:]
            record = {"error": f"{type(error).__name__}: {error}", "traceback": "\n".join(last)}
        connection.send_bytes(to_json("record", record).encode())
