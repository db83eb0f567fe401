"""SIGINT, SIGTERM and SIGHUP at random moments, to a training or to all processes of its group.

One process forks a child for each life of a small training, with or without workers.  From its
first batch to its last, a signal must leave a checkpoint of the batch under way; the run is resumed
to its end and compared with one that nobody disturbed, and no process may be left.

Forks, and numpy with one thread: run it by `torture.py`.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import time
import warnings
from pathlib import Path

from tests.faults.memory_disk import memory_disk
from tests.faults.tally import Tally
from tests.training.networks import EPOCHS, T, X, fingerprint, run_or_resume, trainer
from tinygraph.data import ArrayDataset, DataLoader
from tinygraph.training import Log, RunFolder, Stopped
from tinygraph.training.checkpoints import Checkpoints

KINDS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
STOPPED = 10


class Told(Log):
    """Says where the training is, through a pipe: begun, each batch, the last epoch."""

    def __init__(self, pipe):
        self.pipe = pipe

    def begin(self, trainer, loader):
        os.write(self.pipe, b"b")

    def batch(self, trainer, loss):
        os.write(self.pipe, b".")
        time.sleep(0.002)

    def epoch(self, trainer, row):
        os.write(self.pipe, b"e" if row["epoch"] == EPOCHS else b"")


def live(path, workers, pipe):
    """A child's life; its exit code."""
    run = RunFolder(path)
    run.write_config({})
    worker = trainer(run, checkpoint_every=1e9, log=Told(pipe))
    train, held_out = ArrayDataset(X[:36], T[:36]), ArrayDataset(X[36:], T[36:])
    options = {"num_workers": workers, "multiprocessing_context": "fork" if workers else None}
    try:
        loader = DataLoader(train, 16, shuffle=True, seed=5, **options)
        worker.fit(loader, DataLoader(held_out, 8), EPOCHS)
        return 0
    except Stopped as stop:
        return STOPPED + stop.signal


def once(path, workers, kind, to_group, delay):
    """A life and the signal: what was told, and its exit code; below 0 where it was killed."""
    there, pipe = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.setsid()
            os.write(pipe, b"s")
            code = live(path, workers, pipe)
        except KeyboardInterrupt:
            code = 2
        finally:
            os._exit(code)
    os.close(pipe)
    told = os.read(there, 1)
    time.sleep(delay)
    (os.killpg if to_group else os.kill)(child, kind)
    _, status = os.waitpid(child, 0)
    while more := os.read(there, 1000):  # ends when all who have it have gone
        told += more
    os.close(there)
    return told.decode(), os.waitstatus_to_exitcode(status)


def torment(count=300, seed=0):
    """So many signals."""
    tally, rng = Tally("signals"), random.Random(seed)
    warnings.filterwarnings("ignore", message="batch norm is training on")
    with tempfile.TemporaryDirectory(dir=memory_disk()) as name:
        folder = Path(name)
        expected = fingerprint(run_or_resume(folder / "calm"))
        while tally.count < count:
            path, kind = folder / f"run{tally.count}", rng.choice(KINDS)
            workers, to_group = rng.choice((0, 2)), rng.random() < 0.7
            delay = rng.uniform(0, 0.12)
            told, code = once(path, workers, kind, to_group, delay)
            where = "group" if to_group else "process"
            what = f"{kind.name} to the {where}, {workers} workers"
            _judge(tally, path, told, code, kind, what, expected)
            shutil.rmtree(path, ignore_errors=True)
    return tally


def _judge(tally, path, told, code, kind, what, expected):
    steps, begun, last = told.count("."), "b" in told, "e" in told
    if code != STOPPED + kind:
        if begun and not last:
            return tally.fail(f"{path.name}: {what}: {told}, exit code {code}")
        return tally.add("before the training, or after it")
    try:
        saved = int(Checkpoints(path / "checkpoints").names()[-1].split("-")[1])
        right = saved == steps and fingerprint(run_or_resume(path)) == expected
        why = f"{saved} of {steps} batches saved, or other bits"
    except Exception as error:
        right, why = False, repr(error)
    if not right:
        return tally.fail(f"{path.name}: {what}: {why}")
    return tally.add(f"a checkpoint: {what}")
