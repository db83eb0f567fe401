"""One process at a time trains in a run folder; whoever reads need not wait."""

import copy
import errno
import fcntl
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.training.networks import EPOCHS, fingerprint, loaders, run_or_resume, trainer
from tinygraph.base.errors import ArgumentError, CheckpointError
from tinygraph.files import sealed
from tinygraph.training import CheckpointWarning, RunFolder, RunLockWarning, Stopped, load_arrays
from tinygraph.training.checkpoints import Checkpoints
from tinygraph.training.run_lock import NAME, RunLock

pytestmark = pytest.mark.filterwarnings("ignore:.*batch.*:UserWarning")
ROOT = Path(__file__).parents[2]
HOLD = """
import os, sys
from pathlib import Path
from tinygraph.training.run_lock import RunLock
lock = RunLock(Path(sys.argv[1]))
lock.take()
"""


@contextmanager
def another(path, more="", first=""):
    """Another process that holds the lock of a folder until it is told to end."""
    code = f"{first}{HOLD}{more}\nprint('held', flush=True)\nsys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(Path(path).resolve())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        process.words = []
        while (word := process.stdout.readline().strip()) != "held":
            assert word, "it ended"
            process.words.append(word)
        try:
            yield process
        finally:
            process.kill()


def begun(path, steps=4):
    """A run that was stopped after some batches."""
    run = RunFolder(path)
    run.write_config({})
    worker = trainer(run)
    step = worker.step

    def counted(*batch):
        if worker.steps + 1 == steps:
            os.kill(os.getpid(), signal.SIGINT)
        return step(*batch)

    worker.step = counted
    with pytest.raises(Stopped):
        worker.fit(*loaders(), EPOCHS)
    return path


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    return begun(tmp_path_factory.mktemp("stopped") / "run")


@pytest.fixture
def folder(stopped, tmp_path):
    return Path(shutil.copytree(stopped, tmp_path / "run"))


def contents(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != NAME}


# ---- two processes ---------------------------------------------------------------------------


def test_a_second_training_is_refused_and_the_first_is_named(folder):
    before = contents(folder)
    with another(folder) as first:
        who = rf"process {first.pid} on {re.escape(os.uname().nodename)}, since \d{{4}}-\d\d-\d\d "
        worker = trainer(RunFolder.open(folder))
        with pytest.raises(ArgumentError, match=f"{who}.*`kill {first.pid}`"):
            worker.resume()
        worker = trainer(RunFolder.open(folder))
        with pytest.raises(ArgumentError, match=who):
            worker.fit(*loaders())
        run = RunFolder.open(folder)
        for write in (
            lambda: run.append({"epoch": 9}),
            lambda: run.write_result({}),
            lambda: run.keep_rows(0),
            lambda: run.lengthen({}),
            lambda: run.back_up({"w": np.zeros(1)}),
        ):
            with pytest.raises(ArgumentError, match=who):
                write()
        assert contents(folder) == before
        # Readers need no lock.
        assert [row["epoch"] for row in run.rows()] == [1] and run.load_parameters()
        assert Checkpoints(run.checkpoints).newest()
        first.kill()
        first.wait()
        assert worker.resume() == 4  # a process that was killed leaves no lock, but its file
    assert (folder / NAME).exists()
    worker.fit(*loaders(), EPOCHS - worker.epoch)
    assert not (folder / NAME).exists()


def test_of_two_new_runs_one_gets_the_folder(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    with another(path) as first, pytest.raises(ArgumentError, match=f"process {first.pid} on"):
        RunFolder(path)
    run = RunFolder(path)
    assert os.listdir(path) == [NAME]
    run.remove_if_empty()
    assert not path.exists()


RACE = """
import os, sys, time
from tinygraph.base.errors import ArgumentError
from tinygraph.training import RunFolder
begin = time.monotonic() + 0.02
children = []
for k in range(6):
    if not (child := os.fork()):
        while time.monotonic() < begin: pass
        try:
            run = RunFolder(sys.argv[1])
            time.sleep(0.01 * (k % 2))
            run.write_config({"first": k})
            code = 1
        except ArgumentError:
            code = 0
        os._exit(code)
    children.append(child)
print(sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


@pytest.mark.second
def test_of_many_at_once_exactly_one_begins(tmp_path):
    code = f"import shutil\nfor _ in range(20):\n    exec({RACE!r})\n    shutil.rmtree(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}", str(tmp_path / "run")],
        capture_output=True, text=True, cwd=ROOT, timeout=60,
    )  # fmt: skip
    assert done.stdout.split() == ["1"] * 20, done.stderr[-2000:]


# Children that live on: of os.fork, of a program that was started, of a fork by multiprocessing.
CHILDREN = {
    "fork": "child = os.fork()\nif not child:\n    import time; time.sleep(60)\nprint(child)",
    "program": "import subprocess\nprint(subprocess.Popen(['sleep', '60'], close_fds=False).pid)",
    "multiprocessing": """
import multiprocessing, time
child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
child.start()
print(child.pid)
""",
}


# A child that gets to its own work late: ours is told after it.
LATE = "import os, time\nos.register_at_fork(after_in_child=lambda: time.sleep(0.5))\n"


def test_a_child_that_is_late_to_let_go_is_waited_for(folder):
    with another(folder, CHILDREN["fork"], LATE) as first:
        (pid,) = map(int, first.words)
        try:
            first.kill()
            first.wait()
            assert trainer(RunFolder.open(folder)).resume() == 4
        finally:
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "child", ["fork", *(pytest.param(name, marks=pytest.mark.second) for name in [*CHILDREN][1:])]
)
def test_a_child_that_outlives_a_training_holds_no_lock(folder, child):
    with another(folder, CHILDREN[child]) as first:
        (pid,) = map(int, first.words)
        try:
            first.kill()
            first.wait()
            os.kill(pid, 0)  # it lives
            assert trainer(RunFolder.open(folder)).resume() == 4
        finally:
            os.kill(pid, signal.SIGKILL)


# ---- one process -----------------------------------------------------------------------------


def test_a_process_may_take_it_again(folder):
    first, second, third = (RunLock(folder) for _ in range(3))
    with first.alone():
        second.take()
        with third.alone(), first.alone():
            pass
        second.take()
    assert (folder / NAME).exists()  # second has it
    second.release()
    second.release()
    assert not (folder / NAME).exists()
    second.take()
    assert not os.get_inheritable(fd_of(folder / NAME))
    del second
    assert not (folder / NAME).exists()


def fd_of(path):
    """The open file of this process that has a name."""
    names = {int(fd): f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")}
    return next(
        fd for fd, name in names.items() if os.path.realpath(name) == os.path.realpath(path)
    )


def test_a_cell_that_is_run_again(tmp_path):
    """The objects of the first time live on."""
    cells = [run_or_resume(tmp_path / "run") for _ in range(3)]
    assert len({str(fingerprint(cell)) for cell in cells}) == 1


def test_copies_of_a_run_folder_hold_nothing(tmp_path):
    run = RunFolder(tmp_path / "run")
    twins = copy.deepcopy(run), pickle.loads(pickle.dumps(run))
    assert all(twin.path == run.path for twin in twins)
    run.write_config({})
    assert (run.path / NAME).exists()
    del twins
    assert (run.path / NAME).exists()
    del run
    assert not (tmp_path / "run" / NAME).exists()


def test_a_failed_resume_lets_go(folder):
    for path in (folder / "checkpoints").iterdir():
        path.write_bytes(b"damaged")
    worker = trainer(RunFolder.open(folder))
    with pytest.raises(CheckpointError, match="all damaged"):
        worker.resume()
    assert not (folder / NAME).exists()


def test_of_two_threads_one_trains(folder):
    """The second one is refused while the first is at work, and may begin when it is done."""
    first = trainer(RunFolder.open(folder))
    first.resume()
    step, inside, go_on = first.step, threading.Event(), threading.Event()
    first.step = lambda *batch: (inside.set(), go_on.wait(30), step(*batch))[2]
    thread = threading.Thread(target=first.fit, args=(*loaders(), 1), name="the first")
    thread.start()
    try:
        assert inside.wait(30)
        with pytest.raises(ArgumentError, match="this process, in the thread the first"):
            trainer(RunFolder.open(folder)).fit(*loaders())
    finally:
        go_on.set()
        thread.join()
    second = trainer(RunFolder.open(folder))
    assert second.resume() == 6
    second.fit(*loaders(), 1)


# ---- file systems and strangers --------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_warned_of(folder, monkeypatch, number):
    def none(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", none)
    worker = trainer(RunFolder.open(folder))
    with pytest.warns(RunLockWarning, match=f"{re.escape(str(folder))}: .*has no locks"):
        worker.resume()
    worker.fit(*loaders(), 1)  # it goes on
    assert not (folder / NAME).exists()


@pytest.mark.parametrize("kind", ["symlink", "hard link", "pipe"])
def test_a_file_of_that_name_is_never_followed(folder, tmp_path, kind):
    """In a stranger's folder it could lead to a file of the user's."""
    mine = tmp_path / "mine"
    mine.write_text("precious")
    place = folder / NAME
    if kind == "pipe":
        os.mkfifo(place)
    else:
        {"symlink": os.symlink, "hard link": os.link}[kind](mine, place)
    run = RunFolder.open(folder)
    with run.alone():
        assert place.is_file() and not place.is_symlink() and str(os.getpid()) in place.read_text()
    assert mine.read_text() == "precious" and not place.exists()


def test_a_folder_that_cannot_be_locked(folder):
    (folder / NAME).mkdir()
    with pytest.raises(CheckpointError, match="a place that can be written"):
        trainer(RunFolder.open(folder)).resume()


def test_the_lock_is_no_file_of_the_run(tmp_path):
    run = RunFolder(tmp_path / "run")
    config = run.write_config({})
    assert (run.path / NAME).exists() and run.files() == [config]


# ---- a beginning is never silent -------------------------------------------------------------


def test_fit_in_a_folder_with_checkpoints_needs_resume(folder):
    before = contents(folder)
    worker = trainer(RunFolder.open(folder))
    words = r"after 1 whole epochs and 4 batches, got one after 0 and 0.*trainer\.resume\(\) before"
    with pytest.raises(ArgumentError, match=words):
        worker.fit(*loaders(), 1)
    assert contents(folder) == before and not (folder / NAME).exists()
    worker.resume()  # as it was told
    assert [row["epoch"] for row in worker.fit(*loaders(), 2)] == [2, 3]
    worker.fit(*loaders(), 1)  # its own checkpoints
    assert [row["epoch"] for row in worker.run.rows()] == [1, 2, 3, 4]


def test_another_trainer_on_the_same_folder_needs_resume(tmp_path):
    run = RunFolder(tmp_path / "run")
    first, second = trainer(run), trainer(run)
    first.fit(*loaders(), 1)
    with pytest.raises(ArgumentError, match="trainer.resume"):
        second.fit(*loaders(), 1)
    second.resume()
    second.fit(*loaders(), 1)
    with pytest.raises(ArgumentError, match="after 2 whole epochs and 6 batches, got one after 1 "):
        first.fit(*loaders(), 1)  # the run has gone on without it


def test_an_opened_folder_without_checkpoints_is_begun(tmp_path):
    RunFolder(tmp_path / "run").write_config({})
    run = RunFolder.open(tmp_path / "run")
    assert len(trainer(run).fit(*loaders(), 1)) == 1


def test_backups_of_one_second_have_a_counter(tmp_path, monkeypatch):
    class Stopped:
        @staticmethod
        def now():
            import datetime

            return datetime.datetime(2026, 1, 2, 3, 4, 5)

    monkeypatch.setattr("tinygraph.training.run.datetime", Stopped)
    run = RunFolder(tmp_path / "run")
    paths = [run.back_up({"w": np.full(2, k)}) for k in range(4)]
    stem = "parameters-20260102-030405"
    assert [path.name for path in paths] == [
        f"{stem}{n}.safetensors" for n in ("", "-2", "-3", "-4")
    ]
    assert [load_arrays(path)["w"][0] for path in paths] == [0, 1, 2, 3]


# ---- damaged, or not to be read just now -----------------------------------------------------

FOR_NOW = [errno.EMFILE, errno.EIO, errno.ENOMEM, errno.EACCES, errno.ENFILE, errno.ESTALE, None]


@pytest.mark.parametrize("number", FOR_NOW, ids=lambda n: errno.errorcode.get(n, "MemoryError"))
@pytest.mark.parametrize("handling", [False, True])
def test_a_checkpoint_that_cannot_be_read_keeps_its_name(folder, monkeypatch, number, handling):
    before = contents(folder)
    read, newest = sealed._read, max((folder / "checkpoints").iterdir())

    def fails(path):
        if path == newest:
            raise MemoryError if number is None else OSError(number, os.strerror(number))
        return read(path)

    worker = trainer(RunFolder.open(folder))
    with monkeypatch.context() as patch:
        patch.setattr(sealed, "_read", fails)
        words = "memory" if number is None else re.escape(os.strerror(number))
        with pytest.raises(CheckpointError, match=f"{newest.name}.*{words}.*nothing was changed"):
            worker.resume()
    assert contents(folder) == before
    if handling:  # whatever else went wrong, a damaged one is damaged
        newest.write_bytes(b"damaged")
    try:
        raise OSError(number or 0, "something else")
    except OSError:
        if handling:
            with pytest.warns(CheckpointWarning, match="a damaged checkpoint"):
                assert worker.resume() == 3
        else:
            assert worker.resume() == 4


def test_a_checkpoint_of_another_format_keeps_its_name(folder, monkeypatch):
    before = contents(folder)
    monkeypatch.setattr("tinygraph.training.checkpoints.FORMAT", 4)
    with pytest.raises(CheckpointError, match="format 4.*got b'format 3, 000001-000000004'"):
        trainer(RunFolder.open(folder)).resume()
    assert contents(folder) == before


def test_a_damaged_checkpoint_replaces_no_other(folder):
    newest = max((folder / "checkpoints").iterdir())
    taken = newest.with_suffix(".damaged")
    taken.write_bytes(b"before")
    newest.write_bytes(b"now")
    with pytest.warns(CheckpointWarning, match="000001-000000003 is taken"):
        trainer(RunFolder.open(folder)).resume()
    assert taken.read_bytes() == b"before"
    assert taken.with_name(f"{taken.name}-2").read_bytes() == b"now"
