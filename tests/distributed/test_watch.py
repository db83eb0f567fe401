"""Whatever happens to one rank, all have ended within seconds, and nobody is left."""

import os
import re
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.distributed.launch import LIMIT, Ended, in_session, kill, launch, needs_mpi, start
from tinygraph.base.errors import ArgumentError
from tinygraph.distributed.watch import Watcher
from tinygraph.distributed.world import World

second = pytest.mark.second
HINT = "all ranks are ended\ngo on with --resume\n"
FAILED = f"rank 1 has failed: {HINT}"
WAITED = rf"rank 0 has waited \d s in all_reduce for another rank: {HINT}"
GONE = f"^rank 1 has ended, and rank 0 waits for it in all_reduce: {HINT}"
DIED = f"a rank has died: {HINT}"


def runs(pid):
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def ended(event, timeout, ranks=2, **more) -> Ended:
    found = launch("fails", ranks, event, str(timeout), **more)
    assert found.code is not None, found  # nobody has waited for 600 s
    pids = re.findall(r"process (\d+)", found.out)
    assert len(pids) == ranks
    deadline = time.monotonic() + 20
    while any(map(runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(runs, pids))
    return found


@needs_mpi
@pytest.mark.parametrize(
    ("event", "timeout", "code", "words"),
    [
        ("exception", 600, 1, rf"KeyError: 'no such key'\n{FAILED}"),
        ("stop", 1, 1, WAITED),
        pytest.param("exit", 600, 3, FAILED, marks=second),
        pytest.param("message", 600, 1, "a last word", marks=second),
        pytest.param("interrupt", 600, 130, rf"KeyboardInterrupt\n{FAILED}", marks=second),
        pytest.param("thread", 600, 1, rf"(?s)ZeroDivisionError.*{FAILED}", marks=second),
        ("leave", 600, 1, GONE),
        pytest.param("return", 600, 1, GONE, marks=second),
        pytest.param("early", 600, 1, GONE, marks=second),
        pytest.param("site", 600, 5, FAILED, marks=second),
        pytest.param(
            "at once", 600, 1, rf"^rank 1 has ended by os._exit\(0\): {HINT}", marks=second
        ),
        pytest.param("at once 7", 600, 7, r"^rank 1 has ended by os._exit\(7\)", marks=second),
        pytest.param("loop", 2, 1, WAITED, marks=second),
        pytest.param("kill", 600, 9, DIED, marks=second),
    ],
)
def test_all_ranks_end_together(event, timeout, code, words):
    found = ended(event, timeout)
    assert found.code == code
    assert re.search(words, found.err), found.err
    assert found.err.count("go on with") == 1, found.err
    assert "MPI_Abort" not in found.err and "Traceback" not in found.err.partition("rank 1")[2]
    assert "done" not in found.out


@needs_mpi
@second
@pytest.mark.parametrize("event", ["nothing", "caught", "spare thread"])
def test_what_is_no_failure_ends_nothing(event):
    found = ended(event, 600, ranks=3)
    assert found.code == 0 and found.out.count("done") == 3


@needs_mpi
@second
def test_one_that_ends_in_a_library_is_told_of():
    """Of its code 0 mpiexec makes what it will; that it has died is said, without `advise` too."""
    program = """
import ctypes, tinygraph as tg
if tg.distributed.rank() == 1:
    ctypes.CDLL(None)._exit(0)
tg.distributed.barrier()
"""
    assert launch(program, 2).err.startswith("a rank has died: all ranks are ended\n")
    assert ended("in C", 600).err.startswith(DIED)


@needs_mpi
@second
def test_whoever_has_ended_is_no_trouble_to_those_that_do_not_wait_for_it():
    program = """
import sys, time, numpy as np, tinygraph as tg
rank = tg.distributed.rank()
tg.distributed.barrier()
if rank == 2:
    sys.exit()
if rank == 1:
    time.sleep(8)
    tg.distributed.send(np.arange(3), 0)
else:
    assert tg.distributed.recv(1).tolist() == [0, 1, 2]
    time.sleep(4)
print("done")
"""
    found = launch(program, 3)
    assert (found.code, found.err, found.out) == (0, "", "done\ndone\n")


@needs_mpi
@second
def test_a_launch_that_is_stopped_as_a_whole_goes_on():
    """Ctrl-Z, and fg: nobody has waited for anybody."""
    program = """
import time, numpy as np, tinygraph as tg
tg.distributed.barrier()
tg.distributed.init(timeout=3)
if tg.distributed.rank() == 0:
    print("ready", flush=True)
begun = time.monotonic()
while tg.distributed.broadcast(np.float64(time.monotonic() - begun)) < 10:
    tg.distributed.all_reduce(np.ones(3))
    time.sleep(0.05)
"""
    child = start(program, 2)
    try:
        assert child.stdout.readline() == "ready\n"
        ranks = [pid for pid in in_session(child.pid) if pid != child.pid]
        for what in (signal.SIGSTOP, signal.SIGCONT):
            for pid in ranks:
                os.kill(pid, what)
            time.sleep(6)
        _, err = child.communicate(timeout=LIMIT)
        assert child.returncode == 0, err
    finally:
        kill(child)


def test_who_is_missed_of_those_that_have_ended():
    """All of them in a collective, the other one in send and recv, nobody where all end."""
    told = []
    watcher = Watcher(World())
    watcher._start = lambda: None
    watcher.notes = SimpleNamespace(ended=set(), listen=lambda: told.append("listens"))
    for ended, what, peer, missed in (
        (set(), "all_reduce", None, None),
        ({3, 1}, "all_reduce", None, 1),
        ({3, 1}, "recv from rank 3", 3, 3),
        ({3, 1}, "recv from rank 2", 2, None),
        ({3, 1}, "finalize", None, None),
    ):
        watcher.notes.ended = ended
        with watcher.watch(what, peer):
            assert watcher._gone() == missed
    assert told == ["listens"] * 4


# ---- the limit ----------------------------------------------------------------------------------


class Clock:
    """In the place of the module time, without a sleep."""

    now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr("tinygraph.distributed.watch.time", made)
    monkeypatch.setattr(Watcher, "_start", lambda self: None)
    monkeypatch.delenv("TINYGRAPH_COLLECTIVE_TIMEOUT", raising=False)
    return made


def collective(watcher, clock, computed, waited):
    clock.now += computed
    with watcher.watch("all_reduce"):
        limit = watcher.limit
        clock.now += waited
    return limit


def test_the_limit_follows_what_is_usual(clock):
    watcher = Watcher(World())
    first = [collective(watcher, clock, 1.0, 0.5) for _ in range(10)]
    assert first == [600.0] * 10
    assert collective(watcher, clock, 0.1, 0.1) == pytest.approx(20 + 20 * 1.5)
    collective(watcher, clock, 4.0, 2.0)
    assert collective(watcher, clock, 0.1, 0.1) == pytest.approx(20 + 20 * 6.0)
    collective(watcher, clock, 90.0, 10.0)
    assert collective(watcher, clock, 0.1, 0.1) == 600.0
    watcher.set_timeout(3)
    assert collective(watcher, clock, 0.1, 0.1) == 3


def test_while_the_first_rank_works_for_all_nothing_is_usual(clock):
    watcher = Watcher(World())
    for _ in range(10):
        collective(watcher, clock, 0.1, 0.1)
    with watcher.patiently():
        assert collective(watcher, clock, 100.0, 100.0) == 600.0
    assert collective(watcher, clock, 0.1, 0.1) == pytest.approx(20 + 20 * 0.2)
    watcher.set_timeout(3)
    with watcher.patiently():
        assert watcher.limit == 3  # whoever asks for a limit has it


@pytest.mark.parametrize(
    ("ranks", "cores", "words"), [(2, 2, ""), (3, 2, "3 on 2 of "), (2, 1, "2 on 1 of ")]
)
def test_more_ranks_than_cores(ranks, cores, words):
    world = World()
    world.local_size, world.local_cores = ranks, cores
    assert words in world.crowd and bool(words) == bool(world.crowd)


def test_the_environment_sets_a_limit(monkeypatch):
    monkeypatch.setenv("TINYGRAPH_COLLECTIVE_TIMEOUT", "2.5")
    assert Watcher(World()).limit == 2.5
    monkeypatch.setenv("TINYGRAPH_COLLECTIVE_TIMEOUT", "inf")
    assert Watcher(World()).limit == float("inf")
    for bad in ("", "soon", "-1", "0", "nan", "1_0", "²"):
        monkeypatch.setenv("TINYGRAPH_COLLECTIVE_TIMEOUT", bad)
        with pytest.raises(ArgumentError, match="TINYGRAPH_COLLECTIVE_TIMEOUT: expected seconds"):
            Watcher(World())
