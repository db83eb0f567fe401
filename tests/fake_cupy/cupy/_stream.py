"""Streams and events: work waits in queues until something needs its result.

Once a piece of work has failed, every later call fails with it, as after an illegal access on a
GPU: until `reset`, which stands for a new process.
"""

import heapq
import threading
import time
from collections import deque

waits = []  # what the host has waited for, by the name of the call
hidden = []  # of these, and of launches, those that nobody asked for: `float(x)`, `np.sum(x)`


class CUDARuntimeError(RuntimeError):
    """As of cupy_backends.cuda.api.runtime."""

    def __init__(self, status, name, what=""):
        super().__init__(f"{name}: {what}" if what else name)
        self.status = status


class CUDADriverError(RuntimeError):
    """As of cupy_backends.cuda.api.driver."""


ERROR_MEMORY_ALLOCATION, _ERROR_NOT_READY, _ERROR_HANDLE, _ERROR_STATE = 2, 600, 400, 401
_ERROR_SPOILED, _ERROR_ISOLATION, _ERROR_UNSUPPORTED = 901, 905, 900
_ERROR_ILLEGAL_ADDRESS = 700


class _Context:
    """What the driver knows: queues with work in them, free handles, the first failure."""

    def __init__(self):
        self.failure, self.queues, self.free, self.handles = None, [], [], 0

    def check(self):
        if self.failure is not None:
            raise CUDARuntimeError(
                _ERROR_ILLEGAL_ADDRESS, "cudaErrorIllegalAddress", f"after {self.failure!r}"
            )

    def handle(self):
        """One that was given back, if there is any: a new stream may have that of an old one."""
        if self.free:
            return heapq.heappop(self.free)
        self.handles += 1
        return self.handles * 256

    def synchronize(self):
        for queue in list(self.queues):
            queue.run()


_context = _Context()


def reset():
    """Forget a failure, and what was queued before it."""
    _context.failure = None
    for queue in _context.queues:
        queue.done += len(queue.work)
        queue.work.clear()
    _here.stream = _here.capturing = None
    del waits[:], hidden[:]


def check():
    """Fail as everything does in a process whose GPU has failed."""
    _context.check()


class Graph:
    """What a stream captured."""

    def __init__(self, work):
        self.work = tuple(work)

    def launch(self, stream=None):
        stream = stream or get_current_stream()
        for item in self.work:
            stream.add(item)


class _Queue:
    """The driver's side of a stream, which goes on where the stream itself is dropped."""

    def __init__(self):
        self.work, self.done, self.owned = deque(), 0, True  # `done`: pieces of work that have run
        _context.queues[:] = [queue for queue in _context.queues if queue.owned or queue.work]
        _context.queues.append(self)

    @property
    def queued(self):
        return self.done + len(self.work)

    def run(self, until=None):
        """Run the work in the queue, up to piece number `until`."""
        _context.check()
        while self.work and (until is None or self.done < until):
            work = self.work.popleft()
            self.done += 1
            try:
                work()
            except Exception as error:
                _context.failure = _context.failure or error
                _context.check()


class Stream:
    """A queue.  `add` queues a piece of work; whoever needs its result calls `run`."""

    null = None  # set below

    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
        self.non_blocking = non_blocking
        self.queue = _Queue()
        self.ptr = 0 if null else _context.handle()
        self.run = self.queue.run
        self._captured = None
        self._before = []

    def __del__(self):
        self.queue.owned = False
        heapq.heappush(_context.free, self.ptr)

    done = property(lambda self: self.queue.done)
    queued = property(lambda self: self.queue.queued)

    def add(self, work):
        _context.check()
        (self.queue.work if self._captured is None else self._captured).append(work)

    # ---- CuPy's

    def synchronize(self):
        refuse_while_capturing("stream.synchronize")
        waits.append("stream.synchronize")
        self.run()

    def record(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event):
        if self.is_capturing() is not event.captured and event.queue is not None:
            raise CUDARuntimeError(
                _ERROR_ISOLATION, "cudaErrorStreamCaptureIsolation", "an event across a capture"
            )
        queue, until = event.queue, event.until
        if queue is not None and queue is not self.queue:
            self.add(lambda: queue.run(until))

    def begin_capture(self, mode=None):
        if self is Stream.null:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        if self._captured is not None:
            raise CUDARuntimeError(_ERROR_STATE, "cudaErrorIllegalState", "capturing already")
        self._captured = []
        _here.capturing, _here.spoiled = self, False

    def end_capture(self):
        captured, self._captured, _here.capturing = self._captured, None, None
        if captured is None:
            raise CUDARuntimeError(_ERROR_STATE, "cudaErrorIllegalState", "no capture")
        if _here.spoiled:
            raise CUDARuntimeError(_ERROR_SPOILED, "cudaErrorStreamCaptureInvalidated")
        return Graph(captured)

    def is_capturing(self):
        return self._captured is not None

    def __enter__(self):
        self._before.append(get_current_stream())
        _here.stream = self
        return self

    def __exit__(self, *_):
        _here.stream = self._before.pop()


class Event:
    """A place in the queue of a stream, and the time at which its work came there."""

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self.queue, self.until, self.captured = None, 0, False
        self.timed, self.time = not disable_timing, None

    def record(self, stream=None):
        stream = stream or get_current_stream()
        self.queue, self.captured, self.time = stream.queue, stream.is_capturing(), None
        if self.timed and not self.captured:
            stream.add(self._stamp)
        self.until = self.queue.queued

    def _stamp(self):
        self.time = time.perf_counter()

    def synchronize(self):
        refuse_while_capturing("event.synchronize")
        if self.queue is not None and not self.done:
            waits.append("event.synchronize")
            self.queue.run(self.until)

    @property
    def done(self):
        return self.queue is None or self.queue.done >= self.until


def get_elapsed_time(start, end):
    """Milliseconds between two events that have come to pass."""
    for event in (start, end):
        if not event.timed or event.queue is None or event.captured:
            raise CUDARuntimeError(_ERROR_HANDLE, "cudaErrorInvalidResourceHandle")
        if not event.done:
            raise CUDARuntimeError(_ERROR_NOT_READY, "cudaErrorNotReady")
    return 1000 * (end.time - start.time)


def synchronize():
    """Wait for all streams."""
    refuse_while_capturing("device.synchronize")
    waits.append("device.synchronize")
    _context.synchronize()


class _Here(threading.local):
    stream = None
    capturing = None
    spoiled = False


_here = _Here()
Stream.null = Stream(null=True)


def get_current_stream():
    return _here.stream or Stream.null


def refuse_while_capturing(what):
    if _here.capturing is not None:
        _here.spoiled = True
        raise CUDARuntimeError(
            _ERROR_UNSUPPORTED,
            "cudaErrorStreamCaptureUnsupported",
            f"operation not permitted when stream is capturing ({what})",
        )
