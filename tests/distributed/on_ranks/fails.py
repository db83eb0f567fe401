"""Something happens to rank 1 of a launch, while the others wait in a collective."""

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time

import numpy as np

import tinygraph as tg


def fall_silent():
    while True:
        pass


def in_a_thread():
    threading.Thread(target=lambda: 1 / 0).start()
    time.sleep(100)


def leave_without_a_word():
    raise SystemExit(3)


def leave_by_pythons_own_exit():
    exit(5)


def go_on_after_an_exit():
    with contextlib.suppress(SystemExit):
        sys.exit(4)


def in_a_spare_thread():
    thread = threading.Thread(target=lambda: 1 / 0, daemon=True)
    thread.start()
    thread.join()


EVENTS = {
    "exception": lambda: {}["no such key"],
    "exit": lambda: sys.exit(3),
    "message": lambda: sys.exit("a last word"),
    "leave": leave_without_a_word,
    "site": leave_by_pythons_own_exit,
    "early": sys.exit,
    "at once": lambda: os._exit(0),
    "at once 7": lambda: os._exit(7),
    "in C": lambda: ctypes.CDLL(None)._exit(0),
    "return": lambda: True,
    "interrupt": lambda: signal.raise_signal(signal.SIGINT),
    "loop": fall_silent,
    "stop": lambda: signal.raise_signal(signal.SIGSTOP),
    "kill": lambda: signal.raise_signal(signal.SIGKILL),
    "thread": in_a_thread,
    "spare thread": in_a_spare_thread,
    "caught": go_on_after_an_exit,
    "nothing": lambda: None,
}

if __name__ == "__main__":
    event, timeout = sys.argv[1:]
    world = tg.distributed.init(timeout=float(timeout))
    world.advise("go on with --resume")
    print(f"process {os.getpid()}\n", end="", flush=True)
    tg.distributed.barrier()
    if world.rank != 1 or not EVENTS[event]():
        tg.distributed.all_reduce(np.ones(3))
        print("done\n", end="", flush=True)
