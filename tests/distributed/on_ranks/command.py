"""The command `tinygraph`, with a fault on one rank before it learns from a batch.

command.py EVENT RANK BATCH ARGUMENTS...; without pictures, which take longer than the training.
"""

import errno
import os
import resource
import signal
import sys

from tinygraph.cli import commands, main
from tinygraph.distributed import rank
from tinygraph.training import Trainer


def fill_the_disk():
    def fsync(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    os.fsync = fsync


def fail():
    raise KeyError("no such key")


def lack_memory():
    raise MemoryError


BEFORE = {
    "nothing": lambda: None,
    "kill": lambda: signal.raise_signal(signal.SIGKILL),
    "crash": lambda: signal.raise_signal(signal.SIGSEGV),
    "stop": lambda: signal.raise_signal(signal.SIGSTOP),
    "term": lambda: signal.raise_signal(signal.SIGTERM),
    "interrupt": lambda: signal.raise_signal(signal.SIGINT),
    "full": fill_the_disk,
    "limit": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
    "fail outside": fail,
}
WITHIN = {"fail": fail, "memory": lack_memory}  # of a step


def let(event, who, batch):
    """Let something happen at a batch: on one rank, or for -1 on all of them."""
    count, step, differentiate = [0], Trainer.step, Trainer._differentiate

    def here():
        return count[0] == batch and who in (rank(), -1)

    def counted(self, *given):
        count[0] += 1
        if here() and event in BEFORE:
            BEFORE[event]()
        return step(self, *given)

    def differentiated(self, *given):
        if here() and event in WITHIN:
            WITHIN[event]()
        return differentiate(self, *given)

    Trainer.step, Trainer._differentiate = counted, differentiated


if __name__ == "__main__":
    commands._draw = lambda recipe, run: ([], [])
    let(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    sys.exit(main(sys.argv[4:]))
