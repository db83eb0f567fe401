"""Workers change nothing but where batches are made; and none of them outlives its loader."""

import functools
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from tests.data import worker_datasets as data
from tinygraph.base.errors import ArgumentError, WorkerError
from tinygraph.data import DataLoader
from tinygraph.data.nested import parts


def workers():
    """The processes of loaders; those of other libraries, such as joblib's, stay for a while."""
    found = multiprocessing.active_children()
    return [process for process in found if process.name.startswith("tinygraph-worker-")]


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    gc.collect()
    assert not workers()


def taken(loader, count=None):
    """The arrays of the batches of an epoch, as bytes."""
    batches = []
    for batch in loader:
        batches.append([np.asarray(part).tobytes() for part in parts(batch)])
        if len(batches) == count:
            break
    return batches


def numbers(loader):
    return [batch["i"].numpy().tolist() for batch in loader]


# ---- the same batches ---------------------------------------------------------------------------


@pytest.mark.second
@pytest.mark.parametrize("make, workers", [(data.augmented, 3), (data.tensors, 1)])
def test_the_same_batches_for_any_number_of_workers(make, workers):
    """Over two epochs; images are augmented in each of them."""
    found = []
    for options in ({}, {"num_workers": workers, "persistent_workers": True}):
        loader = DataLoader(make(), 4, shuffle=True, seed=3, **options)
        found.append([taken(loader), taken(loader)])
        assert (loader.epoch, loader.position) == (2, 0)
        assert len(loader.first_batch()) == 2
    assert found[0] == found[1]
    assert found[0][0] != found[0][1] and len(found[0][0]) == 4


@pytest.mark.second
def test_a_run_that_was_killed_goes_on_with_the_same_batches():
    """Position counts what was handed out, whatever the workers had made in advance."""
    whole = taken(DataLoader(data.augmented(), 2, shuffle=True, seed=1))
    stopped = DataLoader(data.augmented(), 2, shuffle=True, seed=1, num_workers=2)
    begun = taken(stopped, 3)
    state = stopped.state_dict()
    assert (begun, state["position"]) == (whole[:3], 3)
    for workers in (0, 1):
        again = DataLoader(data.augmented(), 2, shuffle=True, seed=1, num_workers=workers)
        again.load_state_dict(state)
        assert taken(again) == whole[3:]


@pytest.mark.second
def test_what_a_sample_draws_does_not_depend_on_the_number_of_workers():
    found = []
    for workers in (1, 2):
        loader = DataLoader(data.Numbers(), 3, num_workers=workers, seed=5)
        batches = list(loader)
        found.append([[np.asarray(d).tolist() for d in batch["drawn"]] for batch in batches])
        assert len({pid for batch in batches for pid in batch["pid"].numpy()}) == workers
    assert found[0] == found[1]
    flat = [x for batch in found[0] for numbers in batch for x in numbers]
    assert len(set(flat)) == len(flat), "no two batches draw the same"


@pytest.mark.second
def test_workers_that_stay_are_the_same_and_an_epoch_may_be_left():
    loader = DataLoader(data.Numbers(), 2, num_workers=2, persistent_workers=True)
    seen = set()
    for _ in range(2):
        for batch in loader:
            seen |= set(batch["pid"].numpy().tolist())
            if len(seen) == 2:
                break
    assert numbers(loader) == [[i, i + 1] for i in range(0, 12, 2)] + [[12]]
    assert {p.pid for p in workers()} == seen and len(seen) == 2
    both = list(zip(loader, loader, strict=True))
    assert [a["i"].numpy().tolist() for a, _ in both] == [b["i"].numpy().tolist() for _, b in both]
    del loader


@pytest.mark.second
def test_a_worker_is_told_its_number(tmp_path):
    start = functools.partial(data.marks, str(tmp_path))
    batches = list(DataLoader(data.Numbers(), 2, num_workers=2, worker_init_fn=start))
    told = {int(path.read_text()): path.name for path in tmp_path.iterdir()}
    assert [told[int(batch["pid"].numpy()[0])] for batch in batches] == list("0101010")


# ---- what goes wrong ----------------------------------------------------------------------------


@pytest.mark.second
def test_an_error_comes_in_its_place_with_its_origin():
    loader = DataLoader(data.Troubled(data.breaks), 2, num_workers=2)
    received = []
    with pytest.raises(OSError, match="sample on a disk that is full") as error:
        for batch in loader:
            received.append(batch["i"].numpy().tolist())
    assert received == [[0, 1], [2, 3]] and loader.position == 2
    sample, place, trace = error.value.__notes__
    assert sample == "at sample 5, Troubled"
    assert place == "raised in worker 0, at epoch 0, batch 2:"
    assert "in breaks\n    raise OSError" in trace and "worker_datasets.py" in trace
    loader.epoch = 0
    assert next(iter(loader))["i"].numpy().tolist() == [0, 1]


@pytest.mark.second
@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"dataset": data.Troubled(data.breaks_awkwardly)}, WorkerError, "Awkward: this and that"),
        (
            {"dataset": data.Troubled(data.dies)},
            WorkerError,
            r"worker 0 \(process \d+\): expected batch 2 of epoch 0, got its end.*SIGKILL\)",
        ),
        ({"dataset": data.Troubled(data.exits)}, WorkerError, r"got its end \(exit code 3\)"),
        (
            {"dataset": data.Troubled(data.sleeps), "timeout": 2},  # the start counts too
            WorkerError,
            "worker . .* batch . of epoch 0, got nothing for 2 seconds.*longer timeout",
        ),
        ({"worker_init_fn": data.fails_to_begin}, RuntimeError, "no licence for worker 0"),
        ({"collate_fn": data.unsendable}, (AttributeError, WorkerError), "local object"),
    ],
)
def test_trouble_in_a_worker(options, error, message):
    loader = DataLoader(**{"dataset": data.Numbers(), "batch_size": 2, "num_workers": 1} | options)
    with pytest.raises(error, match=message):
        list(loader)
    assert not workers()


@pytest.mark.second
def test_a_killed_worker_costs_no_batch():
    loader = DataLoader(data.Numbers(60), 2, shuffle=True, num_workers=1)
    received = []
    with pytest.raises(WorkerError, match="SIGKILL"):
        for batch in loader:
            received.append(batch["i"].numpy().tolist())
            os.kill(batch["pid"].numpy()[0], signal.SIGKILL)
    loader.load_state_dict(loader.state_dict())
    rest = numbers(loader)
    assert received + rest == numbers(DataLoader(data.Numbers(60), 2, shuffle=True))
    assert received and rest


@pytest.mark.second
def test_no_process_is_left_where_the_loop_is():
    loader = DataLoader(data.Numbers(400), 2, num_workers=1)
    for _ in loader:
        break
    gc.collect()
    assert not workers()
    batches = iter(loader)
    assert not workers()
    next(batches)
    assert len(workers()) == 1
    batches.close()
    assert not workers()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"num_workers": -1}, "num_workers: expected an int of at least 0"),
        ({"num_workers": 2, "prefetch": 2}, "num_workers: expected without prefetch, got both"),
        ({"persistent_workers": True}, "num_workers=0: expected without persistent_workers"),
        ({"prefetch_factor": 2}, "num_workers=0: expected without prefetch_factor"),
        ({"num_workers": 1, "prefetch_factor": -1}, "prefetch_factor: expected an int of at least"),
        (
            {"num_workers": 1, "prefetch_factor": 0},
            "prefetch_factor: expected an int of at least 1",
        ),
        ({"timeout": -1}, "timeout: expected a number of at least 0"),
    ],
)
def test_arguments_that_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        DataLoader([1, 2], **options)


def test_what_cannot_be_sent_is_refused_before_a_process_starts():
    class Here(data.Numbers):
        pass

    for options in ({"dataset": Here()}, {"collate_fn": lambda samples: 0}):
        loader = DataLoader(**{"dataset": data.Numbers(), "num_workers": 1} | options)
        with pytest.raises(ArgumentError, match="cannot be sent to a process.*top of a module"):
            next(iter(loader))


# ---- programs -----------------------------------------------------------------------------------

PROGRAM = """
import os, signal, sys, time
import numpy as np
from tests.data.worker_datasets import Numbers
from tinygraph.data import DataLoader

class Slow(Numbers):
    def __getitem__(self, index):
        time.sleep(0.02)
        return super().__getitem__(index)

def main():
    {body}

{guard}main()
"""


def begun(folder, body, guard="if __name__ == '__main__': "):
    """A program in a session of its own, as a terminal starts one."""
    path = folder / "program.py"
    path.write_text(PROGRAM.format(body=textwrap.dedent(body).replace("\n", "\n    "), guard=guard))
    return subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )


def ends(pid):
    """Whether a process that is no child of ours is gone within ten seconds."""
    limit = time.monotonic() + 10
    while time.monotonic() < limit:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


LOOP = """
loader = DataLoader(Slow(60), 2, num_workers=2)
for batch in loader:
    print(batch["pid"].numpy()[0], flush=True)
"""


@pytest.mark.parametrize(
    "how", ["interrupt", *(pytest.param(how, marks=pytest.mark.second) for how in ("end", "kill"))]
)
def test_no_worker_outlives_its_program(tmp_path, how):
    body = LOOP + ("    if loader.position == 4: return\n" if how == "end" else "")
    program = begun(tmp_path, body)
    workers = {int(program.stdout.readline()) for _ in range(4)}
    if how == "interrupt":
        os.killpg(program.pid, signal.SIGINT)
    elif how == "kill":
        program.kill()
    _, stderr = program.communicate(timeout=60)
    assert len(workers) == 2 and all(ends(pid) for pid in workers)
    if how == "end":
        assert (program.returncode, stderr) == (0, "")
    if how == "interrupt":
        assert stderr.count("Traceback") == 1 and stderr.endswith("KeyboardInterrupt\n")


@pytest.mark.second
def test_a_program_that_handles_ctrl_c_gets_all_batches(tmp_path):
    """Signals come before the first batch, while workers start, and later."""
    body = """
    signal.signal(signal.SIGINT, lambda *_: None)
    print("ready", flush=True)
    batches = []
    for batch in DataLoader(Slow(40), 2, num_workers=2):
        batches += batch["i"].numpy().tolist()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Python forgets a handler as it ends
    print(batches == list(range(40)))
    """
    program = begun(tmp_path, body)
    program.stdout.readline()
    for _ in range(40):
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGINT)
        time.sleep(0.03)
    stdout, stderr = program.communicate(timeout=60)
    assert (stdout, stderr, program.returncode) == ("True\n", "", 0)


@pytest.mark.second
def test_a_script_without_a_guard_is_told_about_it(tmp_path):
    program = begun(tmp_path, LOOP, guard="")
    _, stderr = program.communicate(timeout=60)
    assert program.returncode == 1
    assert "needs if __name__ == '__main__':" in stderr.splitlines()[-1]


NOTEBOOK = """
import tinygraph as tg
class Mine:
    def __len__(self): return 4
    def __getitem__(self, index): return index
print([b.item() for b in tg.data.DataLoader(Mine(), num_workers=2{start})])
"""


@pytest.mark.second
def test_a_class_of_a_notebook():
    """It has no module that a new process could load; a fork needs none."""

    def run(start):
        command = [sys.executable, "-c", NOTEBOOK.format(start=start)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    forked = run(", multiprocessing_context='fork'")
    assert (forked.stdout, forked.stderr) == ("[0, 1, 2, 3]\n", "")
    spawned = run("")
    assert spawned.returncode == 1
    assert "expected one that a new process can load" in spawned.stderr
    assert "multiprocessing_context='fork'" in spawned.stderr
