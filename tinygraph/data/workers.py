"""Workers: processes that make the batches of a DataLoader.

    program     task 0 -> worker 0    task 1 -> worker 1    task 2 -> worker 0    ...
                batch 0 <- worker 0   batch 1 <- worker 1   ...       in the order of the tasks

A task is an epoch, the number of a batch and its indices, and its batch is a function of them: it
does not matter which worker makes it, how many there are, or whether they were started anew.  Each
worker has a pipe of its own: one that is killed breaks no lock of another, and the end of its pipe
says so at once.  The end of the program's side ends a worker likewise.

Processes are spawned, not forked.  A fork copies the thread that calls it and the locks of all
others as they happen to stand: with the threads of numba, BLAS or a prefetching loader around, the
copy may wait for ever for a lock that nobody holds.  A spawned one begins anew and reads the main
module as a module; hence a script has `if __name__ == "__main__":`.
"""

from __future__ import annotations

import multiprocessing
import pickle
import random
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from multiprocessing.util import Finalize
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import ArgumentError, WorkerError, number, whole
from tinygraph.base.helper_processes import left_to_the_program, out_of_reach
from tinygraph.data.dataset import WORKER_STREAM
from tinygraph.data.fetch import Fetcher
from tinygraph.data.mapped import as_place
from tinygraph.engine import Array, Tensor, leaf, philox
from tinygraph.engine.random import manual_seed

METHOD = "spawn"
AHEAD = 2  # batches that each worker is asked for in advance
_GRACE = 2.0  # seconds that a worker has to end by itself, which it does between two batches

_DEAD_WAY_OUT = (
    "its own message stands on stderr; SIGKILL is mostly want of memory: fewer workers, smaller "
    "batches. A script whose workers end before the first batch needs if __name__ == '__main__':"
)


class Task(NamedTuple):
    """What a worker needs to make a batch."""

    epoch: int
    number: int
    indices: Array


class Start(NamedTuple):
    """How many workers are started, and in which way; as DataLoader's arguments."""

    processes: int
    init: Callable[[int], Any] | None = None
    context: Any = None
    timeout: float = 0


class Job(NamedTuple):
    """What a worker is told when it is started."""

    fetcher: Fetcher
    seed: int
    init: Callable[[int], Any] | None


class _Failed(NamedTuple):
    """What comes in the place of a batch that could not be made."""

    error: BaseException
    traceback: str


class _Worker:
    """One process, as the program sees it."""

    def __init__(self, number: int, context: Any, job: Any) -> None:
        self.number = number
        self.connection, there = context.Pipe()
        name = f"tinygraph-worker-{number}"
        arguments = (there, self.connection, job, number)
        self.process = context.Process(target=work, args=arguments, name=name, daemon=True)
        self.process.start()
        there.close()

    def send(self, task: Task) -> None:
        with suppress(OSError):  # it is dead: `receive` says so
            self.connection.send(task)

    def receive(self, task: Task, timeout: float) -> Any:
        """The batch of the oldest task; WorkerError where none will come."""
        try:
            if timeout and not self.connection.poll(timeout):
                raise self._error(task, f"nothing for {timeout:g} seconds", "a longer timeout")
            return self.connection.recv()
        except (EOFError, OSError):
            self.process.join(_GRACE)
            code = self.process.exitcode
            killed = code is not None and code < 0
            ended = f"ended by {signal.Signals(-code).name}" if killed else f"exit code {code}"
            raise self._error(task, f"its end ({ended})", _DEAD_WAY_OUT) from None

    def _error(self, task: Task, got: str, way_out: str) -> WorkerError:
        name = f"worker {self.number} (process {self.process.pid})"
        expected = f"batch {task.number} of epoch {task.epoch}"
        return WorkerError("DataLoader", name, expected, got, way_out)


class Workers:
    """So many processes, from their start until `close`."""

    def __init__(self, start: Start, fetcher: Fetcher, seed: int) -> None:
        self.timeout = start.timeout
        self.sound = True  # whether all of them can be asked for more
        self._waiting: deque[tuple[_Worker, Task]] = deque()  # what was asked for, oldest first
        self._workers: list[_Worker] = []
        # Python ends its processes by SIGTERM, which workers leave to the program, and waits.
        Finalize(self, _end, (self._workers, 0.0), exitpriority=100)
        context: Any = start.context
        if not hasattr(context, "Process"):
            context = multiprocessing.get_context(context or METHOD)
        job = Job(fetcher, seed, start.init)
        sent = job if context.get_start_method() == "fork" else _payload(job)
        try:
            with out_of_reach():
                for place in range(start.processes):
                    self._workers.append(_Worker(place, context, sent))
        except BaseException:
            self.close()
            raise

    def batches(
        self, epoch: int, first: int, cuts: Iterable[Array], ahead: int
    ) -> Generator[Any, None, None]:
        """The batches of these indices, in their order, numbered from `first`.

        Each worker has `ahead` of them to make, so that it need not wait for this process.
        """
        tasks = (Task(epoch, number, indices) for number, indices in enumerate(cuts, first))
        try:
            while self._waiting:  # what an epoch that was left early had asked for
                self._receive()
            for _ in range(ahead):
                for worker in self._workers:
                    self._assign(worker, tasks)
            while self._waiting:
                worker, task, batch = self._receive()
                self._assign(worker, tasks)
                if isinstance(batch, _Failed):
                    place = f"epoch {epoch}, batch {task.number}"
                    batch.error.add_note(f"raised in worker {worker.number}, at {place}:")
                    batch.error.add_note(batch.traceback)
                    raise batch.error
                yield batch
        except GeneratorExit:  # left early: all is well
            raise
        except BaseException:
            self.sound = False
            raise

    def _assign(self, worker: _Worker, tasks: Iterator[Task]) -> None:
        task = next(tasks, None)
        if task is not None:
            worker.send(task)
            self._waiting.append((worker, task))

    def _receive(self) -> tuple[_Worker, Task, Any]:
        worker, task = self._waiting.popleft()
        return worker, task, worker.receive(task, self.timeout)

    def close(self) -> None:
        """End all of them: none is left when this returns."""
        self.sound = False
        if not sys.is_finalizing():  # the end of the program has ended them
            _end(self._workers, _GRACE)

    __del__ = close


class Crew:
    """The workers of a loader: new ones for each epoch, or the same again."""

    def __init__(self, start: Start, ahead: int | None, stays: bool) -> None:
        number("DataLoader", "timeout", start.timeout, 0)
        self.start = start
        self.ahead = whole("DataLoader", "prefetch_factor", AHEAD if ahead is None else ahead)
        self.stays = bool(stays)
        self._idle: Workers | None = None  # those that wait for the next epoch

    def batches(
        self, fetcher: Fetcher, seed: int, epoch: int, first: int, cuts: Iterable[Array]
    ) -> Generator[Any, None, None]:
        """The batches of these indices, in their order, numbered from `first`."""
        workers, self._idle = self._idle, None
        workers = workers or Workers(self.start, fetcher, seed)
        try:
            yield from workers.batches(epoch, first, cuts, self.ahead)
        finally:
            if self.stays and self._idle is None and workers.sound:
                self._idle = workers
            else:
                workers.close()


def _end(workers: list[_Worker], grace: float) -> None:
    """Let go of workers, and kill those that have not ended by themselves after some seconds."""
    ended, workers[:] = workers[:], []
    for worker in ended:
        worker.connection.close()
    limit = time.monotonic() + grace
    for worker in ended:
        worker.process.join(max(0, limit - time.monotonic()))
    for worker in ended:
        if worker.process.exitcode is None:
            worker.process.kill()
            worker.process.join(_GRACE)


class _JobPickler(ForkingPickler):
    """Of arrays that lie in a file, a worker is told where: it reads them by itself."""

    def reducer_override(self, thing: Any) -> Any:
        place = as_place(thing) if isinstance(thing, np.ndarray) else None
        return NotImplemented if place is None else place


def _payload(job: Job) -> bytes:
    """The job as bytes, which go through a pipe; ArgumentError where it cannot be sent."""
    try:
        return bytes(_JobPickler.dumps(job))
    except Exception as error:
        raise ArgumentError(
            "DataLoader",
            "num_workers",
            "0 where the dataset or a function cannot be sent to a process",
            str(error),
            "define classes and functions at the top of a module, not in a function or as a lambda",
        ) from None


# ---- in the worker ------------------------------------------------------------------------------


def work(connection: Connection, other_end: Connection, sent: Job | bytes, number: int) -> None:
    """The life of a worker: a batch for each task, until the program lets go of the pipe."""
    left_to_the_program()
    other_end.close()
    with suppress(OSError):  # the program has closed its end
        try:
            job = sent if isinstance(sent, Job) else _loaded(sent)
            if job.init is not None:
                job.init(number)
        except Exception as error:
            connection.send_bytes(_failed(error))
            return
        tasks: SimpleQueue[Task | None] = SimpleQueue()
        threading.Thread(target=_listen, args=(connection, tasks), daemon=True).start()
        while (task := tasks.get()) is not None:
            connection.send_bytes(_answer(job, task))


def _listen(connection: Connection, tasks: SimpleQueue[Task | None]) -> None:
    """Take tasks off the pipe at once, so that the program never waits to get rid of one."""
    with suppress(EOFError, OSError):
        while True:
            tasks.put(connection.recv())
    tasks.put(None)


def _answer(job: Job, task: Task) -> Any:
    """The batch of a task, or what went wrong, as bytes."""
    word = int(philox(job.seed, WORKER_STREAM, task.epoch, task.number).random_raw())
    random.seed(word)
    np.random.seed(word % (1 << 32))  # noqa: NPY002  # datasets may draw from it
    manual_seed(word)
    try:
        return ForkingPickler.dumps(job.fetcher.batch(task.epoch, task.indices))
    except Exception as error:
        return _failed(error)


def _loaded(payload: bytes) -> Job:
    try:
        job: Job = pickle.loads(payload)  # what this program itself has sent
        return job
    except Exception as error:
        way_out = (
            "define its class in a module, not at a prompt or in a notebook; or "
            "multiprocessing_context='fork', where nothing else runs in threads; or num_workers=0"
        )
        expected = "one that a new process can load"
        raise WorkerError("DataLoader", "dataset", expected, repr(error), way_out) from error


def _failed(error: Exception) -> Any:
    """An error as bytes: without its traceback, which goes as text."""
    text = "".join(traceback.format_exception(error))
    try:
        sent = ForkingPickler.dumps(_Failed(error, text))
        pickle.loads(sent)  # the program must be able to
        return sent
    except Exception:
        other = WorkerError(f"{type(error).__name__}: {error}")
        return ForkingPickler.dumps(_Failed(other, text))


def _sent(tensor: Tensor) -> tuple[Any, ...]:
    """How a Tensor goes to another process: its value alone, as a leaf."""
    return leaf, (tensor.numpy(),)


ForkingPickler.register(Tensor, _sent)
