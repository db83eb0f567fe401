"""Logs of a Trainer, and what TensorBoard reads of one."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from io import BytesIO

import numpy as np
import pytest

import tinygraph as tg
from tests.distributed.launch import launch, needs_mpi
from tests.training.event_reader import records, scalars, shown
from tests.training.networks import EPOCHS, fingerprint, loaders, run_or_resume, trainer
from tinygraph import recipes
from tinygraph.base.errors import ArgumentError
from tinygraph.cli import main
from tinygraph.show.figures import MissingLibraryError
from tinygraph.training import Log, Progress, RunFolder, Stopped, TensorBoard

BATCHES = 3  # of an epoch: 36 samples, 16 each

reads = pytest.mark.skipif(not find_spec("tensorboardX"), reason="no tensorboardX")

pytestmark = pytest.mark.filterwarnings("ignore:.*batch.*:UserWarning")


class Spy(Log):
    """Notes what it is told, and adds to the rows."""

    def __init__(self, stop_at=None):
        self.told, self.stop_at = [], stop_at

    def begin(self, trainer, loader):
        self.told.append(("begin", trainer.steps, len(loader)))

    def batch(self, trainer, loss):
        gradient = trainer.model[0].weight.grad
        self.told.append(("batch", trainer.steps, np.isfinite(loss), gradient.any()))
        if trainer.steps == self.stop_at:
            os.kill(os.getpid(), signal.SIGTERM)

    def epoch(self, trainer, row):
        self.told.append(("epoch", trainer.steps, row["epoch"], trainer.optimizer.groups[0]["lr"]))
        row["double"] = 2 * row["epoch"]

    def close(self):
        self.told.append(("close",))


def test_what_a_log_is_told_and_what_it_adds(tmp_path):
    spy, run = Spy(), RunFolder(tmp_path / "run")
    rows = trainer(run, log=spy).fit(*loaders(), 2)
    batches = [("batch", step, True, True) for step in range(1, 7)]
    epochs = [("epoch", 3, 1, 0.1), ("epoch", 6, 2, 0.05)]  # the rates that they were learnt with
    told = [*batches[:3], epochs[0], *batches[3:], epochs[1]]
    assert spy.told == [("begin", 0, BATCHES), *told, ("close",)]
    assert [row["double"] for row in run.rows()] == [row["double"] for row in rows] == [2, 4]


def test_a_log_is_closed_where_the_training_breaks_off(tmp_path):
    spy = Spy(stop_at=4)
    with pytest.raises(Stopped):
        trainer(RunFolder(tmp_path / "run"), log=spy).fit(*loaders(), 2)
    assert spy.told[-2:] == [("batch", 4, True, True), ("close",)]


@pytest.mark.parametrize("log", ["runs/first", {"begin": None}, [Log()]])
def test_what_is_no_log(log):
    with pytest.raises(ArgumentError, match="Trainer: log: .* begin, batch, epoch, close.*Log"):
        trainer(None, log=log)


def test_without_tensorboardx(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(MissingLibraryError, match=r"tensorboardX: expected .*\[tensorboard\]"):
        TensorBoard(tmp_path)


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """A run that nobody stopped, with every batch in its log."""
    run = RunFolder(tmp_path_factory.mktemp("calm") / "run")
    run.write_config({})
    worker = trainer(run, log=TensorBoard(run, every=1))
    worker.fit(*loaders(), EPOCHS)
    worker.bits = fingerprint(worker)  # while random numbers are as it left them
    return worker


@reads
def test_it_changes_no_bit(calm, tmp_path):
    """Though it runs the network, which has dropout and running statistics, for its graph."""
    assert calm.bits == fingerprint(run_or_resume(tmp_path / "without"))


@reads
def test_scalars_are_the_rows(calm):
    folder, rows = calm.run.path / "tensorboard", calm.run.rows()
    tags = {
        "loss": "loss/training",
        "accuracy": "accuracy/training",
        "validation_loss": "loss/validation",
        "validation_accuracy": "accuracy/validation",
        "seconds": "seconds",
        "epoch": "epoch",
    }
    assert {*rows[0]} == {*tags}
    for name, tag in tags.items():
        expected = [(BATCHES * row["epoch"], np.float32(row[name])) for row in rows]
        assert scalars(folder, tag) == expected, tag
    rates = [(3, np.float32(0.1)), (6, np.float32(0.05)), (9, np.float32(0.025))]
    assert scalars(folder, "learning_rate") == rates


@reads
def test_losses_of_batches_make_up_that_of_the_epoch(calm):
    found = dict(scalars(calm.run.path / "tensorboard", "loss/batch"))
    assert [*found] == [*range(1, 10)]
    for row in calm.run.rows():
        last = BATCHES * row["epoch"]
        mean = (16 * found[last - 2] + 16 * found[last - 1] + 4 * found[last]) / 36
        assert mean == pytest.approx(row["loss"], rel=1e-5)


@reads
def test_every_so_many_batches(tmp_path):
    trainer(None, log=TensorBoard(tmp_path, every=4, histograms=False)).fit(*loaders(), 3)
    assert [step for step, _ in scalars(tmp_path, "loss/batch")] == [4, 8]
    assert not [event for event in shown(tmp_path) if event.kind == "histo"]


@reads
def test_histograms_are_numpys(calm):
    events = [e for e in shown(calm.run.path / "tensorboard") if e.kind == "histo"]
    names = [name for name, _ in calm.model.named_parameters()]
    expected = {f"{kind}/{name}" for kind in ("parameters", "gradients") for name in names}
    assert {e.tag for e in events} == expected and len(events) == EPOCHS * len(expected)
    last = {e.tag: e.value for e in events if e.step == 9}
    for name, parameter in calm.model.named_parameters():
        pairs = [("parameters", parameter.value), ("gradients", parameter.grad)]
        for kind, array in pairs:
            histogram, values = last[f"{kind}/{name}"], array.astype(np.float64).ravel()
            assert (histogram.min, histogram.max) == (values.min(), values.max())
            assert histogram.sum == pytest.approx(values.sum(), rel=1e-9, abs=1e-12)
            edges, counts = np.array(histogram.bucket_limit), histogram.bucket
            # A value that lies on an edge, as the smallest one does, may count on either side.
            inner, each, near = edges[None, :-1], values[:, None], 1e-12 * abs(edges[None, :-1])
            below = np.cumsum(counts)[:-1]
            assert ((each < inner - near).sum(0) <= below).all()
            assert (below <= (each <= inner + near).sum(0)).all()
            assert sum(counts) == values.size


@reads
def test_values_that_are_not_finite(tmp_path):
    model = tg.nn.Linear(2, 1)
    model.weight.value[0, 0] = np.inf
    sgd = tg.optim.SGD(model.parameters(), lr=0.1)
    zeros = tg.data.ArrayDataset(np.zeros((4, 2), np.float32), np.zeros((4, 1), np.float32))

    def loss(output, labels):
        return model.bias.sum()

    log = TensorBoard(tmp_path)
    worker = tg.training.Trainer(model, sgd, loss, progress=False, log=log)
    with np.errstate(invalid="ignore"):
        worker.fit(tg.data.DataLoader(zeros, 2))
    (weights,) = [e.value for e in shown(tmp_path) if e.tag == "parameters/weight"]
    assert weights.num == 1 and np.isfinite(weights.sum)


@reads
def test_the_graph_has_modules_as_scopes(tmp_path):
    from tensorboardX.proto.graph_pb2 import GraphDef

    class Network(tg.nn.Module):
        def __init__(self):
            self.first = tg.nn.Sequential(tg.nn.Linear(6, 4), tg.nn.ReLU())
            self.last = tg.nn.Linear(4, 2)

        def forward(self, x):
            return self.last(self.first(x))

    model = Network()
    sgd = tg.optim.SGD(model.parameters(), lr=0.1)
    log = TensorBoard(tmp_path)
    worker = tg.training.Trainer(model, sgd, tg.cross_entropy, progress=False, log=log)
    worker.fit(*loaders())
    (graph,) = [e.value for e in shown(tmp_path) if e.kind == "graph"]
    nodes = {node.name: node for node in GraphDef.FromString(graph).node}
    assert {name: [*node.input] for name, node in nodes.items()} == {
        "inputs": [],
        "first/0/weight": [],
        "first/0/bias": [],
        "first/0/linear": ["inputs", "first/0/weight", "first/0/bias"],
        "first/relu": ["first/0/linear"],
        "last/weight": [],
        "last/bias": [],
        "last/linear": ["first/relu", "last/weight", "last/bias"],
        "targets": [],
        "softmax_cross_entropy": ["last/linear", "targets"],
    }
    shape = nodes["first/relu"].attr["_output_shapes"].list.shape[0]
    assert [dim.size for dim in shape.dim] == [16, 4]
    assert nodes["last/weight"].op == "parameter" and nodes["first/relu"].op == "relu"


@reads
def test_every_record_is_whole(calm, tmp_path):
    """As far as bytes are summed up here one by one; and one that is cut off is left out."""
    (path,) = (calm.run.path / "tensorboard").iterdir()
    head = tmp_path / "head"
    head.write_bytes(path.read_bytes()[:5000])
    found = [*records(head, check=True)]
    assert len(found) > 5 and found == [*records(path)][: len(found)]


@reads
@pytest.mark.parametrize("stop_at", [1, 3, 7])
@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_a_resumed_run_shows_what_a_calm_one_does(calm, tmp_path, stop_at, seconds, monkeypatch):
    """Stopped, then for good without a word: both leave events beyond the checkpoint.

    Within one second, by which the names of files begin, and with a second for each look at the
    clock.
    """
    clock = itertools.count(1_700_000_000.0, seconds)
    monkeypatch.setattr(time, "time", lambda: next(clock))
    path = tmp_path / "run"

    class Late(TensorBoard):
        """Stops in the middle, and dies one batch after the last checkpoint."""

        def batch(self, trainer, loss):
            super().batch(trainer, loss)
            if trainer.steps == stop_at:
                os.kill(os.getpid(), signal.SIGTERM)

    run = RunFolder(path)
    run.write_config({})
    with pytest.raises(Stopped):
        trainer(run, log=Late(run, every=1)).fit(*loaders(), EPOCHS)
    run = RunFolder.open(path)
    dies = trainer(run, log=TensorBoard(run, every=1), checkpoint_every=1e9)
    dies.resume()
    dies.run = None  # no checkpoint any more
    dies.fit(*loaders(), 1)
    run = RunFolder.open(path)
    last = trainer(run, log=TensorBoard(run, every=1))
    assert last.resume() == stop_at
    last.fit(*loaders(), EPOCHS - last.epoch)

    def events(folder):
        return sorted(
            (e.step, e.tag, repr(e.value))
            for e in shown(folder / "tensorboard")
            if e.tag != "seconds"
            # one that goes on behind the last batch of an epoch has no gradients of it
            and not (e.step == stop_at and e.tag.startswith("gradients"))
        )

    assert events(path) == events(calm.run.path)


@reads
def test_filters_and_mistakes_of_an_image_recipe(tmp_path):
    image = pytest.importorskip("PIL.Image")
    run, recipe = RunFolder(tmp_path / "run"), recipes.get("numba_cnn")
    config = recipe.settings({"filters": 4, "batch_size": 100, "epochs": 1})
    recipe.train(config, run, progress=Progress(lines=False, bar=False), log=TensorBoard(run))
    events = shown(run.path / "tensorboard")
    (filters,) = [e.value for e in events if e.tag == "filters/first layer"]
    pixels = np.asarray(image.open(BytesIO(filters.encoded_image_string)))
    assert pixels.shape == (filters.height, filters.width, 3) == (8 * 5, 8 * 17, 3)
    first = next(w for w in run.load_parameters().values() if w.ndim == 4)
    tile = pixels[12::8, 12::8].astype(int)[:3, :3]  # pixels of the first one
    assert ((tile[..., 0] > tile[..., 2]) == (first[0, 0] > 0)).all()  # red is positive
    mistakes = {e.tag: e for e in events if e.tag.startswith("mistakes/")}
    test = recipe.test_data(config, run.config, None)
    with tg.no_grad():
        predictions = recipe.trained(run).eval()(test.inputs).numpy().argmax(1)
    wrong = np.flatnonzero(predictions != test.labels)
    assert len(mistakes) == min(16, len(wrong)) > 2
    for tag, event in mistakes.items():
        number = int(tag.split()[2].rstrip(","))
        words = f"{number}, {test.labels[number]} taken for {predictions[number]}"
        assert tag == f"mistakes/test image {words}" and number in wrong
        pixels = np.asarray(image.open(BytesIO(event.value.encoded_image_string)))
        x = test.inputs[number, 0]
        assert np.corrcoef(pixels.ravel(), x.ravel())[0, 1] > 0.999 and event.step == 13


@reads
@pytest.mark.second
def test_the_command_and_a_run_that_goes_on_with_it(tmp_path, monkeypatch, capsys):
    """All within one second, by which the names of files begin."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "time", lambda: 1_700_000_000.0)
    line = [
        "train",
        "numba_cnn",
        "--filters",
        "2",
        "--batch-size",
        "100",
        "--run",
        "run",
        "--epochs",
        "1",
    ]
    assert main([*line, "--tensorboard"]) == 0
    assert "wrote run/tensorboard/events" in capsys.readouterr().out
    assert main(["train", "--resume", "run", "--epochs", "2"]) == 0
    folder = RunFolder.open("run").path / "tensorboard"
    assert [step for step, _ in scalars(folder, "epoch")] == [13, 26]


@reads
def test_a_recipe_without_a_trainer_refuses_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "perceptron", "--tensorboard", "--run", "run"]) == 2
    assert "perceptron: log: expected none" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@reads
@pytest.mark.second
def test_tensorboard_itself_reads_it(calm, tmp_path):
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    accumulator = reading.EventAccumulator(str(calm.run.path / "tensorboard"))
    accumulator.Reload()
    tags = accumulator.Tags()
    assert tags["graph"] and {"loss/training", "loss/batch"} <= {*tags["scalars"]}
    assert {"parameters/0.weight", "gradients/4.bias"} <= {*tags["histograms"]}
    expected = [(3 * row["epoch"], np.float32(row["loss"])) for row in calm.run.rows()]
    found = accumulator.Scalars("loss/training")
    assert [(event.step, event.value) for event in found] == expected
    assert "0/weight" in {node.name for node in accumulator.Graph().node}


@reads
@pytest.mark.second
def test_tensorboard_reads_what_kill_9_leaves(tmp_path):
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    code = "from tests.training.test_tensorboard import forever; forever({!r})"
    child = subprocess.Popen([sys.executable, "-c", code.format(str(tmp_path / "run"))])
    deadline, log = time.monotonic() + 120, tmp_path / "run" / "log.jsonl"
    while time.monotonic() < deadline and not (log.exists() and log.stat().st_size > 500):
        time.sleep(0.02)
    child.kill()
    child.wait()
    rows = [json.loads(line) for line in log.read_text().split("\n")[:-1]]
    (path,) = (tmp_path / "run" / "tensorboard").iterdir()
    path.write_bytes(path.read_bytes()[:-3])  # as if inside of a record
    accumulator = reading.EventAccumulator(str(path.parent), {"scalars": 0})
    accumulator.Reload()
    found = {event.step: event.value for event in accumulator.Scalars("loss/training")}
    for row in rows[:-1]:
        assert found[BATCHES * row["epoch"]] == np.float32(row["loss"])


@reads
@pytest.mark.second
@needs_mpi
def test_of_several_ranks_the_first_one_writes(tmp_path):
    line = ["train", "numba_cnn", "--filters", "2", "--batch-size", "100", "--epochs", "2"]
    code = f"import sys; from tinygraph.cli import main; sys.exit(main({line} + sys.argv[1:]))"
    ended = launch(code, 2, "--tensorboard", "--run", str(tmp_path / "run"), limit=240)
    assert ended.code == 0, ended.err
    assert len([*(tmp_path / "run" / "tensorboard").iterdir()]) == 2  # training, mistakes
    rows = RunFolder.open(tmp_path / "run").rows()
    expected = [(13 * row["epoch"], np.float32(row["loss"])) for row in rows]
    assert scalars(tmp_path / "run" / "tensorboard", "loss/training") == expected


def forever(path):
    """A training that only ends when it is killed."""
    run = RunFolder(path)
    run.write_config({})
    trainer(run, log=TensorBoard(run, every=1)).fit(*loaders(), None, duration=1000.0)
