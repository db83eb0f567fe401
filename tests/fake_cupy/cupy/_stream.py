"""Streams and events: work waits in queues until something needs its result."""

import threading
from collections import deque


class CUDARuntimeError(RuntimeError):
    """As of cupy_backends.cuda.api.runtime."""


def _unsupported(what):
    return CUDARuntimeError(
        f"cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing "
        f"({what})"
    )


class Graph:
    """What a stream captured."""

    def __init__(self, work):
        self.work = tuple(work)

    def launch(self, stream=None):
        stream = stream or get_current_stream()
        for item in self.work:
            stream.add(item)


class Stream:
    """A queue.  `add` queues a piece of work; whoever needs its result calls `run`."""

    null = None  # set below

    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
        self.non_blocking = non_blocking
        self.done = 0  # pieces of work that have run
        self._queue = deque()
        self._captured = None
        self._before = []

    @property
    def queued(self):
        return self.done + len(self._queue)

    def add(self, work):
        (self._queue if self._captured is None else self._captured).append(work)

    def run(self, until=None):
        """Run the work in the queue, up to piece number `until`."""
        while self._queue and (until is None or self.done < until):
            work = self._queue.popleft()
            self.done += 1
            work()

    # ---- CuPy's

    def synchronize(self):
        refuse_while_capturing("synchronize")
        self.run()

    def record(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event):
        if self._captured is not None and not event.captured:
            raise CUDARuntimeError("cudaErrorStreamCaptureIsolation: event from outside a capture")
        stream, until = event.stream, event.until
        if stream is not None and stream is not self:
            self.add(lambda: stream.run(until))

    def begin_capture(self, mode=None):
        if self is Stream.null:
            raise CUDARuntimeError("cudaErrorStreamCaptureImplicit: the null stream cannot capture")
        if self._captured is not None:
            raise CUDARuntimeError("cudaErrorIllegalState: the stream is capturing already")
        self._captured = []
        _here.capturing = self

    def end_capture(self):
        captured, self._captured, _here.capturing = self._captured, None, None
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
    """A place in the queue of a stream."""

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self.stream, self.until, self.captured = None, 0, False

    def record(self, stream=None):
        self.stream = stream or get_current_stream()
        self.until, self.captured = self.stream.queued, self.stream.is_capturing()

    def synchronize(self):
        refuse_while_capturing("event.synchronize")
        if self.stream is not None:
            self.stream.run(self.until)

    @property
    def done(self):
        return self.stream is None or self.stream.done >= self.until


class _Here(threading.local):
    stream = None
    capturing = None


_here = _Here()
Stream.null = Stream(null=True)


def get_current_stream():
    return _here.stream or Stream.null


def refuse_while_capturing(what):
    if _here.capturing is not None:
        raise _unsupported(what)
