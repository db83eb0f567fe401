"""kill -9 at random moments, also inside a save; every killed training is resumed to its end.

One process imports everything and forks a child for each life of a training, so that a life costs
milliseconds.  The parent kills it; some children kill themselves, at a random call of the file
system, which hits every point of a save.  A copy of what is left is then resumed to the end and
compared with a training that nobody disturbed; what is left itself may be lived in, and killed,
again.

Forks, and numpy with one thread, so that a child finds no lock held: run it by `torture.py`.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

from tests.faults.memory_disk import memory_disk
from tests.faults.tally import Tally
from tests.training.networks import fingerprint, run_or_resume

RULES = ("sgd", "adam")
FILE_CALLS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.listdir", "os.scandir")


def live(path, rule, slow_fsync, dies_at):
    """A child's life: train from wherever the folder stands; every batch is followed by a save."""
    if slow_fsync:  # most of the time is then spent inside a save
        fsync = os.fsync
        os.fsync = lambda fd: (time.sleep(0.002), fsync(fd))
    if dies_at:
        left = [dies_at]

        def hook(event, _):
            if event in FILE_CALLS:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
    run_or_resume(path, rule, checkpoint_every=0.0)


def kill_one(path, rule, rng, longest, file_calls):
    """One life, and the kill; False where the training came to its end first."""
    slow, dies_at = rng.random() < 0.3, 0
    if rng.random() < 0.4:
        dies_at = rng.randint(1, file_calls)
    delay = rng.uniform(0, longest)
    child = os.fork()
    if not child:
        try:
            live(path, rule, slow, dies_at)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    if not dies_at:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) and status:
        raise RuntimeError(f"a life ended with exit code {os.waitstatus_to_exitcode(status)}")
    return os.WIFSIGNALED(status)


def where(path):
    """Whether the kill hit a save, by the temporary files that it left."""
    inside = [p for p in path.rglob(".*.tmp") if p.exists()]
    return "inside a save" if inside else "between saves"


def finish(path, rule):
    """Resume a copy of what a kill left, to the end; nothing may be damaged."""
    copy = Path(shutil.copytree(path, path.with_name(f"{path.name}-copy")))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", message="batch norm is training on")
            return fingerprint(run_or_resume(copy, rule))
    finally:
        shutil.rmtree(copy)


def calm(folder, rule):
    """The end that all trainings must come to; the time of a life, and its calls of files."""
    calls = [0]
    sys.addaudithook(lambda event, _: calls.__setitem__(0, calls[0] + (event in FILE_CALLS)))
    run_or_resume(folder / f"warm-{rule}", rule)  # what is loaded at first use is loaded
    calls[0], started = 0, time.perf_counter()
    worker = run_or_resume(folder / f"calm-{rule}", rule, checkpoint_every=0.0)
    return fingerprint(worker), time.perf_counter() - started, calls[0]


def torment(count=1000, seed=0):
    """Kill `count` times; every kill is followed by a comparison of all bits."""
    tally, rng = Tally("kill -9"), random.Random(seed)
    warnings.filterwarnings("ignore", message="batch norm is training on")
    with tempfile.TemporaryDirectory(dir=memory_disk()) as name:
        folder = Path(name)
        ends = {rule: calm(folder, rule) for rule in RULES}
        runs = 0
        while tally.count < count:
            runs += 1
            _kill_a_run(folder / f"run{runs}", RULES[runs % 2], ends, rng, tally, count)
            shutil.rmtree(folder / f"run{runs}", ignore_errors=True)
        tally.notes = f"{runs} trainings; each of {ends['sgd'][1] * 1000:.0f} ms undisturbed"
    return tally


def _kill_a_run(path, rule, ends, rng, tally, count):
    """Kill one training once or several times in a row."""
    expected, longest, calls = ends[rule]
    again = True
    while again and tally.count < count:
        if not kill_one(path, rule, rng, longest, calls):
            return
        if not (path / "config.json").exists():
            tally.outcomes["before the run began, not counted"] += 1
            return
        what = f"{rule}, {path.name}, kill {tally.count + 1}, {where(path)}"
        try:
            if finish(path, rule) == expected:
                tally.add(where(path))
            else:
                tally.fail(f"{what}: other bits")
        except Exception as error:
            tally.fail(f"{what}: {error!r}")
        again = rng.random() < 0.6
