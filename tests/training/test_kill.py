"""kill -9 at random moments, also inside a save: the training ends with the bits of a calm one.

One process imports everything once and forks a child for each life of the training, so that a life
costs milliseconds.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

pytestmark = pytest.mark.second

KILLS = 50
LONGEST = 0.06  # seconds of a life, at first


def live(path, slow_fsync):
    """A child's life: train from wherever the folder stands; every batch is followed by a save."""
    from tests.training.networks import run_or_resume

    if slow_fsync:  # most of the time is then spent inside a save
        fsync = os.fsync
        os.fsync = lambda fd: (time.sleep(0.002), fsync(fd))
    run_or_resume(path, "adam", checkpoint_every=0.0)


def torment(folder):
    """Kill trainings until there were KILLS kills; compare each that ends with a calm one."""
    from tests.training.networks import fingerprint, run_or_resume, trainer
    from tinygraph.training import RunFolder

    rng = random.Random(0)
    expected = fingerprint(run_or_resume(folder / "calm", "adam"))
    kills = ended = 0
    while kills < KILLS:
        path, longest = folder / f"run{ended}", LONGEST
        while True:
            child = os.fork()
            if not child:
                live(path, slow_fsync=bool(rng.getrandbits(1)))
                os._exit(0)
            time.sleep(rng.uniform(0.001, longest))
            longest *= 1.03  # where the machine is busy a life may be too short to come forward
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            rng.getrandbits(1)  # the child drew one from its own copy
            if not os.WIFSIGNALED(status):
                assert status == 0, f"a life failed after {kills} kills"
                break
            kills += 1
            if not (path / "config.json").exists():  # killed before there was anything to resume
                shutil.rmtree(path, ignore_errors=True)
        worker = trainer(RunFolder.open(path), "adam")
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # nothing is damaged, ever
            worker.resume()
        assert fingerprint(worker) == expected, f"run {ended} after {kills} kills"
        ended += 1
    print(f"{kills} kills, {ended} trainings ended with the same bits")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork: Linux or macOS")
def test_kill_9_at_random_moments(tmp_path):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.training.test_kill", str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[2],
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    kills, ended = (int(word) for word in done.stdout.split() if word.isdigit())
    assert kills >= KILLS and ended >= 1


if __name__ == "__main__":
    torment(Path(sys.argv[1]))
