"""Two trainings in one folder at once: one trains, the other is refused and names it.

One process forks two children that begin a run with the same name, or go on with the same run, a
few milliseconds apart; of a third of the pairs the first one is killed.  Whatever happens, the run
is resumed to its end, and compared with a training that nobody disturbed.

Forks, and numpy with one thread: run it by `torture.py`.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import tempfile
import time
import warnings
from pathlib import Path

from tests.faults.memory_disk import memory_disk
from tests.faults.tally import Tally
from tests.training.networks import EPOCHS, fingerprint, loaders, run_or_resume, trainer
from tinygraph.base.errors import ArgumentError
from tinygraph.training import RunFolder, RunLockWarning

NAMED = re.compile(r"got (process \d+ on |a folder with files in it)")
REFUSED, WRONG = 3, 4


def live(path, new, delay):
    """A child's life; its exit code."""
    warnings.filterwarnings("error", category=RunLockWarning)
    time.sleep(delay)
    fsync = os.fsync
    os.fsync = lambda fd: (time.sleep(0.001), fsync(fd))
    try:
        if new:
            run = RunFolder(path)
            run.write_config({})
            trainer(run, checkpoint_every=0.0).fit(*loaders(), EPOCHS)
        else:
            run_or_resume(path, checkpoint_every=0.0)
        return 0
    except ArgumentError as error:
        return REFUSED if NAMED.search(str(error)) else WRONG
    except BaseException:
        return WRONG


def begun(path, new, delay):
    """A forked child."""
    child = os.fork()
    if not child:
        code = WRONG
        try:
            code = live(path, new, delay)
        finally:
            os._exit(code)
    return child


def once(path, new, kills, rng):
    """One pair: how both ended."""
    delays = [0.0, rng.uniform(0, 0.03)]
    children = [begun(path, new, delay) for delay in delays]
    if kills:
        time.sleep(rng.uniform(0, 0.1))
        os.kill(children[0], signal.SIGKILL)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def torment(count=300, seed=0):
    """So many pairs."""
    tally, rng = Tally("two in one folder"), random.Random(seed)
    warnings.filterwarnings("ignore", message="batch norm is training on")
    with tempfile.TemporaryDirectory(dir=memory_disk()) as name:
        folder = Path(name)
        expected = fingerprint(run_or_resume(folder / "calm"))
        half = RunFolder(folder / "half")
        half.write_config({})
        trainer(half).fit(*loaders(), 1)
        while tally.count < count:
            path, new = folder / f"run{tally.count}", rng.random() < 0.5
            if not new:
                shutil.copytree(half.path, path)
            kills = rng.random() < 1 / 3
            codes = once(path, new, kills, rng)
            _judge(tally, path, new, kills, codes, expected)
            shutil.rmtree(path, ignore_errors=True)
    return tally


def _judge(tally, path, new, kills, codes, expected):
    what = f"{'new' if new else 'resumed'}, {'one killed, ' if kills else ''}exit codes {codes}"
    trained = codes.count(0)
    if WRONG in codes or (new and trained > 1) or (not kills and not trained):
        return tally.fail(f"{path.name}: {what}")
    if new and not (path / "config.json").exists():  # killed before there was a run
        return tally.add("killed before the run began")
    try:
        right = fingerprint(run_or_resume(path)) == expected
    except Exception as error:
        return tally.fail(f"{path.name}: {what}: {error!r}")
    if not right:
        return tally.fail(f"{path.name}: {what}: other bits")
    kind = "the other refused" if REFUSED in codes else "one after the other"
    return tally.add(f"{'a new run' if new else 'a resumed one'}, {kind}")
