"""A sample of each kind of fault; `make torture` runs them in full (torture.py)."""

import json
import os
import random
import re
import subprocess
import sys
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import tinygraph as tg
from tests.distributed.launch import needs_mpi
from tests.faults import (
    allocations,
    checkpoint_damage,
    data_damage,
    full_disks,
    hostile_files,
    planted_nans,
    threads,
    torture,
)
from tests.faults.tally import Tally
from tinygraph.base import build_cache
from tinygraph.base.disk import writing
from tinygraph.base.errors import DeviceError, GraphError
from tinygraph.files import sealed
from tinygraph.training import checkpoints
from tinygraph.training.undo import Undo
from tinygraph.watch import anomaly

pytestmark = [
    pytest.mark.second,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork: Linux or macOS"),
    pytest.mark.filterwarnings("ignore"),
]


def passed(tally, at_least):
    """No failure, and so many faults at least."""
    assert not tally.failures, "\n".join(tally.failures[:5])
    assert tally.count >= at_least


def torture_of(kind, count, seed):
    """What `make torture` finds, in a process of its own, as it wants one."""
    line = [sys.executable, "-m", "tests.faults.torture", "--json", "--only", kind]
    done = subprocess.run(
        [*line, "--count", str(count), "--seed", str(seed)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=500,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    figures = json.loads(done.stdout)[kind]
    assert figures["count"] == count and not figures["failures"]


def test_kill_9_and_the_command():
    torture_of("kills", 20, seed=1)


def test_two_trainings_in_one_folder():
    torture_of("pairs", 20, seed=1)


def test_signals_to_processes_and_groups():
    torture_of("signals", 20, seed=1)


@needs_mpi
def test_kill_9_of_ranks():
    torture_of("ranks", 6, seed=4)


def test_full_disks():
    torture_of("disks", 40, seed=3)


def test_hostile_files():
    torture_of("strangers", 250, seed=2)


def test_damaged_checkpoints():
    tally = checkpoint_damage.torment(600, seed=2)
    passed(tally, 600)
    assert tally.outcomes["refused with the reason"] > 300
    assert tally.outcomes["the checkpoint before taken, with a warning"] > 100


def test_malformed_data_files():
    tally = data_damage.torment(400, seed=3)
    passed(tally, 400)
    assert tally.outcomes["refused with the reason"] > 200


def test_allocation_failures():
    passed(allocations.torment(every=29), 100)


def test_threads():
    passed(threads.torment(40), 8 * 40)


def test_nan_in_every_op():
    passed(planted_nans.torment(1), 250)


# ---- the experiments would see a mistake -------------------------------------------------------


def test_a_step_that_is_not_taken_back_is_seen():
    class Nothing(Undo):
        def before_update(self, optimizer):
            pass

        def _keep(self, device, array):
            pass

    tally = Tally("")
    with mock.patch("tinygraph.training.step.Undo", Nothing):
        allocations.fail_each("adam", 0, tally, every=5)
    changed = [line for line in tally.failures if "left something changed" in line]
    assert len(changed) > 10


def test_a_checkpoint_loaded_without_its_seal_is_seen():
    load = checkpoints.load_arrays
    with mock.patch.object(checkpoints, "load_arrays", lambda path: load(path, sealed=False)):
        tally = checkpoint_damage.torment(200)
    assert any("silently wrong" in line for line in tally.failures)


def test_a_reader_that_crashes_or_misreads_is_seen(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    good = data_damage.good_files()["idx"]
    for wrong in (lambda path: 1 / 0, lambda path: np.zeros((3, 4, 5), np.float32)):
        tally = Tally("")
        with mock.patch.object(data_damage, "read_idx", wrong):
            data_damage.once("idx", good, "", folder, tally)
        assert len(tally.failures) == 1


def in_place(path, data):
    """As a program writes that has not thought of a full disk."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return path


def test_a_file_that_is_written_over_in_place_is_seen():
    with mock.patch.object(sealed, "write_atomically", in_place):
        tally = full_disks.torment(40)
    assert any("the old file has gone" in line for line in tally.failures)


def test_a_run_that_follows_links_is_seen():
    def follow(path, data):
        path.write_bytes(data)
        return path

    with (
        mock.patch("tinygraph.base.page_paths.replace_file", follow),
        mock.patch("tinygraph.base.disk.replace_file", follow),
    ):
        tally = hostile_files.torment(30, seed=5, kinds=["runs"])
    assert any("outside the folder" in line for line in tally.failures)


def test_a_cache_that_believes_what_is_there_is_seen():
    with (
        mock.patch.object(build_cache, "why_not_ours", lambda path: ""),
        mock.patch.object(build_cache, "open_to_others", lambda *paths: ""),
    ):
        tally = hostile_files.torment(40, kinds=["caches"])
    assert any("a file of others is loaded" in line for line in tally.failures)


@pytest.mark.parametrize("load", [lambda path: 1 / 0, lambda path: {"w": np.zeros(8, np.float32)}])
def test_a_reader_of_parameters_that_crashes_or_misreads_is_seen(load):
    with (
        mock.patch.object(hostile_files.tg, "load", load),
        mock.patch.object(hostile_files, "load_arrays", lambda path, sealed: load(path)),
    ):
        assert hostile_files.torment(10, kinds=["parameters"]).failures


def test_a_wrong_index_op_or_line_is_seen():
    contract = next(c for c in planted_nans.contracts() if c.function is tg.relu)
    problem = planted_nans.problems(contract, 1, 0)[0]
    look = anomaly.look

    def elsewhere(op, direction, made_at, given, result):
        try:
            look(op, direction, made_at, given, result)
        except GraphError as error:
            raise GraphError(str(error).replace(" made at ", " made at nowhere ")) from None

    tally = Tally("")
    with mock.patch.object(anomaly, "look", elsewhere):
        planted_nans.Planting(contract, problem, random.Random(0), tally).all()
    assert tally.failures


def test_other_bits_in_threads_are_seen():
    gradients = threads.gradients
    with mock.patch.object(
        threads, "gradients", lambda t, turn: gradients(0, turn) + os.urandom(1)
    ):
        tally = threads.torment(2)
    assert tally.failures


def test_the_command_ends_with_1_on_a_failure(capsys):
    failed = Tally("x", 1, failures=["a reason"])
    with mock.patch.object(torture, "run", lambda *_: (failed, 0.0)):
        assert torture.main(["--only", "nan"]) == 1
    assert "FAILED a reason" in capsys.readouterr().out


# ---- memory that really is not there -----------------------------------------------------------


def step_of(samples):
    """A step on a batch whose columns need 4 kB a sample and more.

    Without a plan: numba's compiler ends the process, or OpenBLAS never does, where memory ends
    while they are being loaded.
    """
    worker = allocations.trainer("adam", compile=False)
    x = np.zeros((samples, 2, 8, 8), np.float32)
    return worker, x, np.zeros(samples, np.int64)


def test_a_batch_that_is_too_large_for_the_machine():
    """Under a limit of the address space, in a child: the error, then a smaller batch."""
    child = os.fork()
    if not child:
        try:
            worker, x, t = step_of(200_000)  # 100 MB of input, ten times that on the way
            worker.step(x[:16], t[:16])  # which loads what a step needs
            before = allocations.bits(worker)
            with data_damage.memory_limit(300 << 20):
                try:
                    worker.step(x, t)
                    os._exit(2)
                except DeviceError as error:
                    words = str(error)
            wanted = r"room for [\d,]+ bytes, an array \w+\[.*smaller batch"
            ok = re.search(wanted, words, re.DOTALL)
            ok = ok and allocations.bits(worker) == before
            worker.step(x[:16], t[:16])
            os._exit(0 if ok else 3)
        except BaseException:
            os._exit(4)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_no_memory_for_python_itself():
    """A MemoryError without shape is told too, and running statistics are as before."""
    worker = allocations.trainer("sgd")
    before = allocations.bits(worker)

    def no_memory(logits, labels):
        raise MemoryError

    worker.loss = no_memory
    with warnings.catch_warnings(), pytest.raises(DeviceError, match="one more array"):
        warnings.simplefilter("ignore")
        worker.step(allocations.X, allocations.T)
    assert allocations.bits(worker) == before
