"""Stop and resume: the same bits as if never stopped; what is damaged is refused or passed over."""

import errno
import hashlib
import json
import os
import shutil
import signal
import struct
import time
import warnings

import numpy as np
import pytest

import tinygraph as tg
from tests.training.networks import EPOCHS, fingerprint, loaders, run_or_resume, trainer
from tinygraph.base.errors import ArgumentError, CheckpointError
from tinygraph.training import CheckpointWarning, RunFolder, Stopped, parse_duration, state
from tinygraph.training.checkpoints import Checkpoints
from tinygraph.training.metrics import best_of

pytestmark = pytest.mark.filterwarnings("ignore:.*batch.*:UserWarning")
STEPS = EPOCHS * 3  # batches of 16, 16 and 4 in each epoch


@pytest.fixture(scope="module", params=["sgd", "adam"])
def rule(request):
    return request.param


@pytest.fixture(scope="module")
def uninterrupted(rule, tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fingerprint(run_or_resume(tmp_path_factory.mktemp("whole") / "run", rule))


def stop_after(worker, steps, number=signal.SIGINT):
    """Send the process a signal while a step of the training runs."""
    step = worker.step

    def counted(*batch):
        result = step(*batch)
        if worker.steps + 1 == steps:
            os.kill(os.getpid(), number)
        return result

    worker.step = counted


@pytest.mark.parametrize("before, after", [(10, 10), (100, 10)])
def test_of_a_long_order_a_checkpoint_holds_the_hash(uninterrupted, rule, tmp_path, before, after):
    """One of before held the order itself; whichever it holds, another order is refused."""
    run = RunFolder(tmp_path / "run")
    run.write_config({})
    worker = trainer(run, rule)
    stop_after(worker, 4)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(state, "LONGEST_ORDER", before)
        worker.fit(*loaders(), EPOCHS)
    held = Checkpoints(run.checkpoints).newest()["order"]
    order = loaders()[0].order(1)
    digest = hashlib.sha256(struct.pack("<36q", *order)).digest()
    assert held.tolist() == (order.tolist() if before == 100 else [*struct.unpack("<4q", digest)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "LONGEST_ORDER", after)
        with pytest.raises(CheckpointError, match="the order of samples of the run"):
            other = trainer(run, rule)
            other.resume()
            train, held_out = loaders()
            train.batch_sampler.sampler = tg.data.RandomSampler(range(36), seed=6)
            other.fit(train, held_out, 1)
        assert fingerprint(run_or_resume(run.path, rule)) == uninterrupted


@pytest.mark.parametrize("steps", range(1, STEPS + 1))
def test_stopped_after_any_batch(rule, uninterrupted, tmp_path, steps):
    run = RunFolder(tmp_path / "run")
    run.write_config({})
    worker = trainer(run, rule)
    stop_after(worker, steps)
    with pytest.raises(Stopped, match="resume with `tinygraph train --resume") as stopped:
        worker.fit(*loaders(), EPOCHS)
    assert stopped.value.signal == signal.SIGINT
    tg.manual_seed(99)  # whatever else the process draws does not matter
    resumed = run_or_resume(run.path, rule)
    assert fingerprint(resumed) == uninterrupted
    assert len(list((run.path / "backups").iterdir())) == 1


def test_stopped_and_resumed_at_every_batch(rule, uninterrupted, tmp_path):
    path = tmp_path / "run"
    for steps in range(1, STEPS + 1):
        started = path.exists()
        run = RunFolder.open(path) if started else RunFolder(path)
        if not started:
            run.write_config({})
        worker = trainer(run, rule)
        if started:
            assert worker.resume() == steps - 1
        stop_after(worker, steps, signal.SIGTERM)
        with pytest.raises(Stopped):
            worker.fit(*loaders(), EPOCHS - worker.epoch)
    assert fingerprint(run_or_resume(path, rule)) == uninterrupted


def test_a_second_ctrl_c_stops_at_once(tmp_path):
    run = RunFolder(tmp_path / "run")
    worker = trainer(run)
    step = worker.step

    def twice(*batch):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)  # as a hand does: two at once are one, as of `timeout`
        os.kill(os.getpid(), signal.SIGINT)
        return step(*batch)

    worker.step = twice
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as stopped:
        worker.fit(*loaders(), EPOCHS)
    assert not isinstance(stopped.value, Stopped)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_while_validating(rule, uninterrupted, tmp_path, monkeypatch):
    run = RunFolder(tmp_path / "run")
    run.write_config({})
    worker = trainer(run, rule)
    save = RunFolder.append
    monkeypatch.setattr(
        RunFolder,
        "append",
        lambda self, row: (
            save(self, row),
            row["epoch"] == EPOCHS and os.kill(os.getpid(), signal.SIGTERM),
        ),
    )
    with pytest.raises(Stopped) as stopped:
        worker.fit(*loaders(), EPOCHS)
    assert stopped.value.signal == signal.SIGTERM
    assert fingerprint(run_or_resume(run.path, rule)) == uninterrupted


def test_an_epoch_of_nan_is_never_the_best():
    best = best_of(None, {"epoch": 1, "validation_loss": float("nan")})
    assert best is None
    best = best_of(best, {"epoch": 2, "validation_loss": 2.0})
    assert best == {"epoch": 2, "validation_loss": 2.0}
    assert best_of(best, {"epoch": 3, "validation_loss": 2.0}) is best
    assert best_of(best, {"epoch": 4, "validation_loss": 1.0}) == {
        "epoch": 4,
        "validation_loss": 1.0,
    }


def stopped_run(path, steps=5):
    """A run with the two checkpoints of steps 3 (an epoch's end) and `steps`."""
    run = RunFolder(path)
    run.write_config({})
    worker = trainer(run)
    stop_after(worker, steps)
    with pytest.raises(Stopped):
        worker.fit(*loaders(), EPOCHS)
    return run


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = stopped_run(tmp_path_factory.mktemp("stopped") / "run")
    assert Checkpoints(run.checkpoints).names() == ["000001-000000003", "000001-000000005"]
    return run.path


@pytest.mark.second
def test_any_damage_falls_back_to_the_checkpoint_before(stopped, tmp_path):
    name = "000001-000000005.safetensors"
    whole = (stopped / "checkpoints" / name).read_bytes()
    rng = np.random.default_rng(0)
    damages = [whole[:n] for n in (0, 7, 8, 100, len(whole) - 1)] + [whole + b"\0"]
    for position in rng.integers(0, len(whole), 120):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(rng.integers(8))
        damages.append(bytes(damaged))
    for i, damaged in enumerate(damages):
        folder = shutil.copytree(stopped, tmp_path / str(i))
        (folder / "checkpoints" / name).write_bytes(damaged)
        worker = trainer(RunFolder.open(folder))
        with pytest.warns(CheckpointWarning, match="000001-000000003 is taken"):
            assert worker.resume() == 3
        assert (folder / "checkpoints" / "000001-000000005.damaged").exists()


def test_all_damaged(stopped, tmp_path):
    folder = shutil.copytree(stopped, tmp_path / "run")
    for path in (folder / "checkpoints").iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="2, all damaged"):
        trainer(RunFolder.open(folder)).resume()


def test_of_another_model_or_optimiser(stopped, tmp_path):
    run = RunFolder.open(shutil.copytree(stopped, tmp_path / "run"))
    worker = trainer(run, "adam")
    before = worker.model.state_dict()
    with pytest.raises(CheckpointError, match="it was saved by SGD"):
        worker.resume()
    after = worker.model.state_dict()
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)
    worker = trainer(run)
    worker.model = tg.nn.Linear(6, 2)
    with pytest.raises(CheckpointError, match="does not fit this Linear"):
        worker.resume()
    worker = trainer(run)
    worker.schedule = None
    with pytest.raises(CheckpointError, match="schedule: expected the one of the run, got none"):
        worker.resume()
    worker = trainer(run)
    worker.resume()
    train, _ = loaders()
    with pytest.raises(CheckpointError, match="batch_size"):
        worker.fit(tg.data.DataLoader(train.dataset, 8, shuffle=True, seed=5))


def test_before_the_first_checkpoint(tmp_path):
    run = RunFolder(tmp_path / "run")
    run.write_config({})
    run.append({"epoch": 1})  # logged, but killed before the checkpoint
    worker = trainer(RunFolder.open(run.path))
    assert worker.resume() == 0 and run.rows() == []
    with pytest.raises(ArgumentError, match="a run folder"):
        trainer(None).resume()


@pytest.mark.second
def test_a_full_disk_leaves_the_last_checkpoint_whole(tmp_path, monkeypatch):
    """Each call that writes fails in turn; every time, what was there before can be resumed."""
    calls = {"left": 10**9}
    real = {name: getattr(os, name) for name in ("fsync", "replace")}

    def failing(name):
        def call(*args):
            calls["left"] -= 1
            if calls["left"] < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real[name](*args)

        return call

    for name in real:
        monkeypatch.setattr(os, name, failing(name))
    tested = 0
    for allowed in range(0, 60, 3):
        calls["left"] = 10**9
        run = RunFolder(tmp_path / str(allowed))
        run.write_config({})
        worker = trainer(run, checkpoint_every=0.0)
        calls["left"] = allowed
        try:
            worker.fit(*loaders(), EPOCHS)
            break
        except CheckpointError as error:
            assert "No space left on device" in str(error) and "free some space" in str(error)
        calls["left"] = 10**9
        again = trainer(RunFolder.open(run.path))
        with warnings.catch_warnings():
            warnings.simplefilter("error", CheckpointWarning)  # nothing is damaged
            steps = again.resume()
        assert steps in (worker.steps, worker.steps - 1)
        tested += 1
    assert tested > 10


def test_the_log_holds_only_epochs_before_the_checkpoint(tmp_path):
    run = stopped_run(tmp_path / "run", steps=4)
    run.append({"epoch": 2, "loss": 123.0})
    worker = trainer(RunFolder.open(run.path))
    worker.resume()
    assert [row["epoch"] for row in run.rows()] == [1]


def test_a_duration_ends_the_training_and_counts_what_was_before(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    run = RunFolder(tmp_path / "run")
    worker = trainer(run)
    step = worker.step

    def second(*batch):
        now[0] += 1.0
        return step(*batch)

    worker.step = second
    rows = worker.fit(*loaders(), None, duration=5.0)
    assert worker.steps == 5 and [row["epoch"] for row in rows] == [1, 2]
    assert worker.seconds == 5.0 and rows[1]["seconds"] == 2.0
    assert worker.fit(*loaders(), None, duration=5.0) == []  # the time is over


def test_rehearse_changes_nothing(tmp_path):
    worker = trainer(None)
    train, _ = loaders()
    before, draws = worker.model.state_dict(), tg.random.default_generator.state_dict()
    found = worker.rehearse(train)
    after = worker.model.state_dict()
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)
    assert tg.random.default_generator.state_dict() == draws
    assert (train.epoch, train.position, found["batches"]) == (0, 0, 3)
    assert found["step_seconds"] > 0 and "float32 (16, 6)" in found["batch"]


def test_backups_by_the_clock(tmp_path):
    run = RunFolder(tmp_path / "run")
    trainer(run, backup_every=1e-9).fit(*loaders(), 1)
    assert list((run.path / "backups").glob("parameters-????????-??????.safetensors"))


@pytest.mark.parametrize("options", [{"epochs": None}, {"epochs": 0}, {"duration": -1.0}])
def test_an_end_that_makes_no_sense(options):
    with pytest.raises(ArgumentError):
        trainer(None).fit(*loaders(), **options)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), (" 2 d ", 172800)]
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-5s", "0", "5x", "1h30m", "nan", "inf"])
def test_bad_durations(text):
    with pytest.raises(ArgumentError, match="90s, 10m or 1.5h"):
        parse_duration(text)


def test_a_resumed_environment_keeps_the_first(tmp_path, monkeypatch):
    run = RunFolder(tmp_path / "run")
    run.write_config({})
    run.write_environment(tinygraph="1")
    again = RunFolder.open(run.path)
    with pytest.warns(UserWarning, match="tinygraph changed since the run began"):
        again.write_environment(tinygraph="2")
    content = json.loads((run.path / "environment.json").read_text())
    assert content["tinygraph"] == "1" and content["resumed"][0]["tinygraph"] == "2"
