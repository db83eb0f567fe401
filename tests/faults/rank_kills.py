"""kill -9 of a random rank at a random moment; the run goes on with another number of ranks.

A life is a launch of 1, 2 or 4 ranks that trains in shards and saves after every batch.  One of its
ranks is killed by the parent at a random time, or kills itself at a random call of the file system,
which hits every point of a save.  Then all must be gone, and another launch goes on, which may be
killed as well.  What comes to the end is compared with one process that nobody disturbed.

As a program it is one rank: `python -m tests.faults.rank_kills FOLDER DIES_AT`.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path

from tests.distributed.launch import ROOT, environment, kill, mpi_line
from tests.faults.kills import FILE_CALLS, where
from tests.faults.memory_disk import memory_disk
from tests.faults.tally import Tally
from tests.training.networks import T, X, fingerprint, trainer
from tinygraph.data import ArrayDataset, DataLoader
from tinygraph.distributed import all_gather_object, leads, rank
from tinygraph.training import RunFolder

RANKS, SHARDS, EPOCHS = (1, 2, 4), 4, 8
BATCH = 14  # the last one has 8: batch norm needs two in each shard
LIMIT = 300  # seconds that a life may take, on a machine that has much else to do


def train(path, **options):
    """Train to the end, from wherever the folder stands."""
    run = RunFolder.open(path) if (path / "config.json").exists() else RunFolder(path)
    if not run.opened:
        run.write_config({})
    worker = trainer(run, shards=SHARDS, **options)
    if run.opened:
        worker.resume()
    if worker.epoch < EPOCHS:
        loader = DataLoader(ArrayDataset(X[:36], T[:36]), BATCH, shuffle=True, seed=5)
        held_out = DataLoader(ArrayDataset(X[36:], T[36:]), BATCH)
        worker.fit(loader, held_out, EPOCHS - worker.epoch)
    return worker


def die_at(count):
    """Let this process die at a call of the file system, counted from now."""
    left = [count]

    def hook(event, _):
        if event in FILE_CALLS:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def main():
    """One rank of a life: it says who all are, and trains slowly, each at its own pace."""
    path, dies_at = Path(sys.argv[1]), int(sys.argv[2])
    warnings.filterwarnings("ignore", message="batch norm is training on")
    pace, fsync = random.Random(rank()), os.fsync
    os.fsync = lambda descriptor: (time.sleep(pace.uniform(0, 0.02)), fsync(descriptor))
    pids = all_gather_object(os.getpid())
    if leads():
        print("pids", *pids, flush=True)
        if dies_at:
            die_at(dies_at)
    train(path, checkpoint_every=0.0)


class Life:
    """A launch, and what became of it."""

    def __init__(self, path, ranks, dies_at=0):
        begin = [sys.executable] if ranks == 1 else mpi_line(ranks)
        self.log = path.with_suffix(".log").open("w+")
        self.launch = subprocess.Popen(
            [*begin, "-m", "tests.faults.rank_kills", str(path), str(dies_at)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log,
            text=True, cwd=ROOT, env=environment(), start_new_session=True,
        )  # fmt: skip
        self.pids = [int(pid) for pid in self.launch.stdout.readline().split()[1:]]

    def end(self):
        """Its exit code, when all of it has gone."""
        try:
            self.launch.communicate(timeout=LIMIT)
            return self.launch.returncode
        finally:
            kill(self.launch)

    def said(self):
        """What the ranks have said to stderr."""
        self.log.seek(0)
        return self.log.read()[-2000:]


def live(path, rng, last):
    """One life; whether it was killed.  The last one is left in peace."""
    ranks = rng.choice(RANKS)
    in_a_call = not last and rng.random() < 0.3
    life = Life(path, ranks, rng.randint(1, 150) if in_a_call else 0)
    if not last and not in_a_call and life.pids:
        time.sleep(rng.uniform(0, 0.8))
        with suppress(ProcessLookupError):  # it came to its end first
            os.kill(rng.choice(life.pids), signal.SIGKILL)
    code = life.end()
    if code not in (0, 9, -9):
        raise RuntimeError(f"exit code {code} of {ranks} ranks: {life.said()}")
    return ranks, code != 0


def torment(count=100, seed=0):
    """Kill `count` times; each run is brought to its end, and compared to the last bit."""
    tally, rng, runs = Tally("kill -9 of a rank"), random.Random(seed), 0
    warnings.filterwarnings("ignore", message="batch norm is training on")
    with tempfile.TemporaryDirectory(dir=memory_disk()) as name:
        folder = Path(name)
        expected = fingerprint(train(folder / "calm"))
        while tally.count < count:
            runs += 1
            _torment_a_run(folder / f"run{runs}", expected, rng, tally, count)
            shutil.rmtree(folder / f"run{runs}", ignore_errors=True)
    tally.notes = f"{runs} trainings in {SHARDS} shards, on {RANKS} ranks by turns"
    return tally


def _torment_a_run(path, expected, rng, tally, count):
    killed, lives = [], []
    try:
        ended = False
        while not ended:
            last = tally.count + len(killed) >= count or (killed and rng.random() < 0.25)
            ranks, died = live(path, rng, last)
            lives.append(ranks)
            if died and not (path / "config.json").exists():
                tally.outcomes["before the run began, not counted"] += 1
                shutil.rmtree(path, ignore_errors=True)
            elif died:
                killed.append(f"{ranks} rank{'s' if ranks > 1 else ''}, {where(path)}")
            ended = not died
        right = fingerprint(train(path)) == expected
        why = "other bits"
    except Exception as error:
        right, why = False, repr(error)
    if right:
        for outcome in killed:
            tally.add(outcome)
    else:
        tally.fail(f"{path.name}, lives of {lives} ranks, {len(killed)} kills: {why}")


if __name__ == "__main__":
    main()
