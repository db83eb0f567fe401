"""ahead: an iterator whose items are made by a background thread, a few ahead of their consumer.

    producer   permits.acquire() -> make an item -> results.put
    consumer   results.get() -> permits.release() -> use the item

There are `depth` permits: so many items are made, or being made, and not yet received; never more.
The thread holds no reference to the iterator, so that dropping the iterator ends the thread.

Items lie on the host: what a thread queues on a GPU goes to a current stream of its own, which
nothing orders with the consumer's.  Batches go to a GPU in the consumer's thread (feed.py).
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Generator, Iterator
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

Item = TypeVar("Item")

_END = object()


def ahead(
    items: Iterator[Item], depth: int, label: str = "item", first: int = 0
) -> Generator[Item, None, None]:
    """The items, in their order, up to `depth` of them made in advance.

    The thread starts with the first item asked for, and ends with the last item, with an error, or
    when the iterator is closed or dropped.  An error is raised where its item would have come, with
    the thread's traceback and a note that names the item: the label, and a number from `first` on.

    >>> list(ahead(iter("abc"), 2))
    ['a', 'b', 'c']
    """
    producer = _Producer(items, depth, label, first)
    producer.thread.start()
    try:
        while (item := producer.take()) is not _END:
            yield item
    finally:
        producer.stop()


class _Failed(NamedTuple):
    """What stands in the queue for an item that could not be made."""

    error: BaseException


class _Producer:
    """The thread, and what it shares with the consumer."""

    def __init__(self, source: Iterator[Any], depth: int, label: str, first: int) -> None:
        self.source = source
        self.label, self.first = label, first
        self.permits = threading.Semaphore(depth)
        self.results: SimpleQueue[Any] = SimpleQueue()
        self.stopped = False
        self.thread = threading.Thread(target=self.run, name="tinygraph-prefetch", daemon=True)

    def run(self) -> None:
        """Make items until there is no more, one fails, or nobody wants them."""
        for number in itertools.count(self.first):
            self.permits.acquire()
            if self.stopped:
                return
            try:
                self.results.put(next(self.source))
            except StopIteration:
                self.results.put(_END)
                return
            except BaseException as error:
                error.add_note(f"raised in the thread that prefetches, at {self.label} {number}")
                self.results.put(_Failed(error))
                return

    def take(self) -> Any:
        """Wait for the next item, or the end; raise what the thread raised."""
        result = self.results.get()
        self.permits.release()
        if not isinstance(result, _Failed):
            return result
        try:
            raise result.error
        finally:
            del result  # the error's traceback holds this frame

    def stop(self) -> None:
        """End the thread after the item that it is at, and wait for that."""
        self.stopped = True
        self.permits.release()
        # The collector may drop an iterator in any thread; at exit, a daemon thread may be dead.
        if threading.current_thread() is not self.thread and not sys.is_finalizing():
            self.thread.join()
