"""Trainer: against closed forms and a training written out in numpy."""

import gc
import math
import weakref

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import ArgumentError, TinygraphError
from tinygraph.data import ArrayDataset, DataLoader
from tinygraph.training import DivergenceError, Progress, RunFolder, Trainer, evaluate

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3)).astype(np.float32)
LABELS = RNG.integers(0, 4, 40)


def regression(noise=0.1):
    y = X @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 3
    return X, (y + noise * RNG.standard_normal(y.shape)).astype(np.float32)


def test_least_squares_reaches_the_closed_form():
    x, y = regression()
    with_ones = np.hstack([x, np.ones((len(x), 1), np.float32)])
    expected, *_ = np.linalg.lstsq(with_ones.astype(np.float64), y.astype(np.float64), rcond=None)
    model = tg.nn.Linear(3, 1)
    sgd = tg.optim.SGD(model.parameters(), lr=0.2)
    loader = DataLoader(ArrayDataset(x, y), len(x))
    rows = Trainer(model, sgd, tg.mse_loss, progress=False).fit(loader, epochs=300)
    np.testing.assert_allclose(model.weight.value[0], expected[:3, 0], atol=1e-5)
    np.testing.assert_allclose(model.bias.value, expected[3], atol=1e-5)
    residual = with_ones @ expected - y
    assert rows[-1]["loss"] == pytest.approx(np.mean(residual**2), rel=1e-4)
    assert "accuracy" not in rows[-1]  # no classes


def softmax(z):
    powers = np.exp(z - z.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def test_an_epoch_is_the_loop_written_out_in_numpy():
    """Softmax regression by hand: p - onehot is the gradient of the logits."""
    model = tg.nn.Linear(3, 4)
    w, b = model.weight.value.astype(np.float64), model.bias.value.astype(np.float64)
    losses, hits = [], 0
    order = DataLoader(ArrayDataset(X, LABELS), 16, True, seed=7).order(0)
    for start in (0, 16, 32):
        index = order[start : start + 16]
        x, t = X[index].astype(np.float64), LABELS[index]
        z = x @ w.T + b
        p = softmax(z)
        losses += list(-np.log(p[np.arange(len(t)), t]))
        hits += int((z.argmax(1) == t).sum())
        delta = (p - np.eye(4)[t]) / len(t)
        w, b = w - 0.1 * delta.T @ x, b - 0.1 * delta.sum(0)
    sgd = tg.optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(model, sgd, tg.softmax_cross_entropy, progress=False)
    (row,) = trainer.fit(DataLoader(ArrayDataset(X, LABELS), 16, True, seed=7))
    np.testing.assert_allclose(model.weight.value, w, atol=1e-6)
    np.testing.assert_allclose(model.bias.value, b, atol=1e-6)
    assert row["loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    assert row["accuracy"] == hits / 40
    assert row["epoch"] == 1 and row["seconds"] > 0


@pytest.mark.parametrize("clip_norm", [0.5, 100.0])
def test_gradients_are_clipped_to_a_common_norm(clip_norm):
    """Least squares by hand; weight and bias are scaled by one factor."""
    x, y = regression()
    model = tg.nn.Linear(3, 1)
    w, b = model.weight.value[0].astype(np.float64), float(model.bias.value[0])
    for start in (0, 20):
        some, wanted = x[start : start + 20].astype(np.float64), y[start : start + 20, 0]
        delta = 2 * (some @ w + b - wanted) / 20
        gw, gb = delta @ some, delta.sum()
        factor = min(1, clip_norm / math.sqrt(gw @ gw + gb**2))
        w, b = w - 0.1 * factor * gw, b - 0.1 * factor * gb
    sgd = tg.optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(model, sgd, tg.mse_loss, progress=False, clip_norm=clip_norm)
    trainer.fit(DataLoader(ArrayDataset(x, y), 20))
    np.testing.assert_allclose(model.weight.value[0], w, atol=1e-6)
    np.testing.assert_allclose(model.bias.value[0], b, atol=1e-6)


@pytest.mark.parametrize(
    "each, moved", [("batch", 1 + 1 / 2 + 1 / 4 + 1 / 8), ("epoch", 1 + 1 + 1 / 2 + 1 / 2)]
)
def test_a_schedule_takes_a_step_after_each_batch_or_epoch(each, moved):
    """The loss is the bias, whose gradient is 1: it moves by the sum of the rates."""
    model = tg.nn.Linear(1, 1)
    before = model.bias.item()
    sgd = tg.optim.SGD(model.parameters(), lr=1.0)
    halving = tg.optim.ExponentialLR(sgd, gamma=0.5)
    trainer = Trainer(
        model,
        sgd,
        lambda output, labels: output.mean(),
        progress=False,
        schedule=halving,
        schedule_each=each,
    )
    trainer.fit(DataLoader(ArrayDataset(np.zeros((8, 1), np.float32), np.zeros(8)), 4), epochs=2)
    assert before - model.bias.item() == pytest.approx(moved, rel=1e-5)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"schedule_each": "batches"}, "schedule_each: expected .*batch"),
        ({"clip_norm": 0}, "clip_norm: expected"),
    ],
)
def test_options_that_cannot_be(options, words):
    model = tg.nn.Linear(1, 1)
    sgd = tg.optim.SGD(model.parameters(), lr=1.0)
    with pytest.raises(ArgumentError, match=words):
        Trainer(model, sgd, tg.mse_loss, **options)


@pytest.mark.parametrize("batch_size", [1, 7, 40, 100])
def test_evaluate_is_exact_over_a_smaller_last_batch(batch_size):
    model = tg.nn.Linear(3, 4)
    p = softmax(X.astype(np.float64) @ model.weight.value.T + model.bias.value)
    result = evaluate(
        model, DataLoader(ArrayDataset(X, LABELS), batch_size), tg.softmax_cross_entropy
    )
    assert result["loss"] == pytest.approx(-np.log(p[np.arange(40), LABELS]).mean(), rel=1e-5)
    assert result["accuracy"] == (p.argmax(1) == LABELS).mean()


class Spy(tg.nn.Module):
    """Notes the mode and whether graphs are made."""

    def __init__(self):
        self.inner = tg.nn.Linear(3, 4)
        self.seen = []

    def forward(self, x):
        y = self.inner(x)
        self.seen.append((self.training, y.requires_grad))
        return y


def test_modes_are_set_and_given_back():
    model = Spy()
    model.eval()
    loader = DataLoader(ArrayDataset(X, LABELS), 40)
    sgd = tg.optim.SGD(model.parameters(), lr=0.1)
    Trainer(model, sgd, tg.softmax_cross_entropy, progress=False).fit(loader, loader, epochs=2)
    assert model.seen == [(True, True), (False, False)] * 2
    assert not model.training
    model.train()
    evaluate(model, loader, tg.softmax_cross_entropy)
    assert model.training


def test_the_graph_of_a_step_is_gone_when_it_returns():
    made = []

    def loss(logits, labels):
        made.append(weakref.ref(logits))
        return tg.softmax_cross_entropy(logits, labels)

    model = tg.nn.Linear(3, 4)
    trainer = Trainer(
        model, tg.optim.SGD(model.parameters(), lr=0.1), loss, progress=False, compile=False
    )
    gc.disable()  # by reference counts alone: no waiting for a collection
    try:
        trainer.step(X, LABELS)
        assert made[0]() is None
    finally:
        gc.enable()


def test_a_loss_that_is_not_finite_stops_and_changes_nothing(tmp_path):
    x = X.copy()
    x[33, 1] = np.nan
    model = tg.nn.Linear(3, 4)
    before = None
    run = RunFolder(tmp_path / "run")
    sgd = tg.optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(model, sgd, tg.softmax_cross_entropy, run=run, progress=False)
    trainer.fit(DataLoader(ArrayDataset(X, LABELS), 16))
    before = model.state_dict()
    with pytest.raises(DivergenceError, match="got nan in epoch 2, batch 3") as error:
        trainer.fit(DataLoader(ArrayDataset(x, LABELS), 16, drop_last=False))
    assert isinstance(error.value, TinygraphError) and "learning rate" in str(error.value)
    assert np.isfinite(model.weight.value).all()
    for name, array in run.load_parameters().items():  # those of the last whole epoch
        np.testing.assert_array_equal(array, before[name])


def test_the_run_folder_holds_rows_and_parameters(tmp_path):
    run = RunFolder(tmp_path / "run")
    model = tg.nn.Linear(3, 4)
    sgd = tg.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(ArrayDataset(X, LABELS), 16)
    trainer = Trainer(model, sgd, tg.softmax_cross_entropy, run=run, progress=False)
    rows = trainer.fit(loader, loader, epochs=2) + trainer.fit(loader, epochs=1)
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    assert run.rows() == rows
    assert set(rows[0]) == {
        "epoch",
        "loss",
        "accuracy",
        "validation_loss",
        "validation_accuracy",
        "seconds",
    }
    for name, array in run.load_parameters().items():
        np.testing.assert_array_equal(array, model.state_dict()[name])


def test_the_same_seed_gives_the_same_bits():
    def trained():
        tg.manual_seed(5)
        model = tg.nn.Linear(3, 4)
        sgd = tg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        loader = DataLoader(ArrayDataset(X, LABELS), 7, True, seed=5)
        Trainer(model, sgd, tg.softmax_cross_entropy, progress=False).fit(loader, epochs=3)
        return model.weight.value.tobytes()

    assert trained() == trained()


def test_one_line_for_each_epoch_when_nobody_watches(capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    model = tg.nn.Linear(3, 4)
    sgd = tg.optim.SGD(model.parameters(), lr=0.1)
    Trainer(model, sgd, tg.softmax_cross_entropy).fit(
        DataLoader(ArrayDataset(X, LABELS), 16), epochs=2
    )
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["epoch 1/2", "epoch 2/2"]
    assert err == "" and "\x1b" not in out and "\r" not in out


def test_a_bar_on_a_terminal_without_colours(capsys, monkeypatch):
    progress = Progress(bar=True)
    progress.start(4)
    progress.advance()
    progress.epoch({"epoch": 1, "loss": 1.0, "seconds": 0.1}, 1)
    progress.close()
    out, err = capsys.readouterr()
    assert out == "epoch 1/1  loss 1.0000  0.10 s\n"
    assert "4" in err and "\x1b[3" not in err


@pytest.mark.parametrize("epochs", [0, -1, 1.5, "2", True])
def test_bad_epochs(epochs):
    model = tg.nn.Linear(3, 4)
    trainer = Trainer(model, tg.optim.SGD(model.parameters(), lr=0.1), tg.mse_loss, progress=False)
    with pytest.raises(ArgumentError, match="epochs: expected an int of at least 1"):
        trainer.fit(DataLoader(ArrayDataset(X, LABELS), 4), epochs=epochs)


def test_nothing_to_learn_from():
    model = tg.nn.Linear(3, 4)
    trainer = Trainer(model, tg.optim.SGD(model.parameters(), lr=0.1), tg.mse_loss, progress=False)
    empty = DataLoader(ArrayDataset(X[:3], LABELS[:3]), 4, drop_last=True)
    with pytest.raises(ArgumentError, match="at least one batch"):
        trainer.fit(empty)
    with pytest.raises(ArgumentError, match="at least one sample"):
        evaluate(model, empty, tg.softmax_cross_entropy)


def test_a_validation_loss_that_is_not_finite_is_logged_as_null(tmp_path):
    bad = ArrayDataset(np.full((4, 3), np.nan, np.float32), LABELS[:4])
    run = RunFolder(tmp_path / "run")
    model = tg.nn.Linear(3, 4)
    sgd = tg.optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(model, sgd, tg.softmax_cross_entropy, run=run, progress=False)
    (row,) = trainer.fit(DataLoader(ArrayDataset(X, LABELS), 16), DataLoader(bad, 4))
    assert math.isnan(row["validation_loss"])
    assert run.rows()[0]["validation_loss"] is None
    assert "NaN" not in (run.path / "log.jsonl").read_text()


@pytest.mark.parametrize(
    ("sample", "got"),
    [
        ({"x": np.zeros(3, np.float32), "y": 0}, "a dict of ['x', 'y']"),
        ((np.zeros(3, np.float32), 0, 0), "a list of 3|a tuple of 3"),
        (np.zeros(3, np.float32), "a Tensor"),
    ],
)
def test_a_batch_that_is_no_pair_is_named(sample, got):
    class Samples:
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return sample

    model = tg.nn.Linear(3, 2)
    sgd = tg.optim.SGD(model.parameters(), lr=0.1)
    trainer = tg.training.Trainer(model, sgd, tg.cross_entropy, progress=False)
    for use in (trainer.fit, trainer.rehearse):
        with pytest.raises(ArgumentError, match=r"expected a pair \(inputs, labels\)") as raised:
            use(tg.data.DataLoader(Samples(), batch_size=2))
        assert any(words in str(raised.value) for words in got.split("|"))
