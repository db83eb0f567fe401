"""Trainer(compile=True): the numbers of ordinary steps, and its own bits when resumed."""

import numpy as np
import pytest

import tinygraph as tg
from tests.training.networks import EPOCHS, fingerprint, loaders, trainer
from tests.training.test_resume import stop_after
from tinygraph.training import DivergenceError, RunFolder, Stopped, Trainer

pytestmark = pytest.mark.filterwarnings("ignore:batch norm is training on:UserWarning")


def worker(run=None, compile=True):
    return trainer(run, "adam", compile=compile)


def test_a_training_is_that_of_the_graph():
    ours = worker()
    rows = ours.fit(*loaders(), epochs=EPOCHS)
    theirs = worker(compile=False)
    for a, b in zip(rows, theirs.fit(*loaders(), epochs=EPOCHS), strict=True):
        for name in a.keys() - {"seconds"}:
            assert a[name] == pytest.approx(b[name], rel=1e-4, abs=1e-6), name
    for name, array in theirs.model.state_dict().items():
        np.testing.assert_allclose(ours.model.state_dict()[name], array, rtol=1e-4, atol=1e-6)
    assert "batch_norm" in ours._step.differentiate.explain()
    assert "as it stands" not in ours._step.differentiate.explain()


def test_a_stopped_training_goes_on_with_the_same_bits(tmp_path):
    whole = worker(RunFolder(tmp_path / "whole"))
    whole.run.write_config({})
    whole.fit(*loaders(), epochs=EPOCHS)
    run = RunFolder(tmp_path / "run")
    run.write_config({})
    first = worker(run)
    stop_after(first, 2)
    with pytest.raises(Stopped):
        first.fit(*loaders(), epochs=EPOCHS)
    second = worker(run)
    second.resume()
    second.fit(*loaders(), epochs=EPOCHS - second.epoch)
    assert fingerprint(second) == fingerprint(whole)


def test_nothing_is_learnt_from_a_loss_that_is_not_finite():
    diverging = worker()
    diverging.loss = lambda y, t: tg.softmax_cross_entropy(y, t) * np.float32(np.inf)
    before = {name: p.value.copy() for name, p in diverging.model.named_parameters()}
    with pytest.raises(DivergenceError):
        diverging.fit(*loaders(), epochs=1)
    for name, p in diverging.model.named_parameters():
        np.testing.assert_array_equal(p.value, before[name])


def test_on_the_emulator_a_training_is_that_of_its_graph():
    """Dropout, batch norm, Adam, a schedule, a smaller last batch; and validation."""

    def rows(compile):
        tg.manual_seed(3)
        model = tg.nn.Sequential(
            tg.nn.Linear(6, 8),
            tg.nn.BatchNorm1d(8),
            tg.nn.ReLU(),
            tg.nn.Dropout(0.3),
            tg.nn.Linear(8, 2),
        ).to("emulator")
        rule = tg.optim.Adam(model.named_parameters(), lr=0.01)
        ours = Trainer(
            model,
            rule,
            tg.softmax_cross_entropy,
            progress=False,
            compile=compile,
            schedule=tg.optim.StepLR(rule, step_size=1, gamma=0.5),
        )
        return ours.fit(*loaders(), epochs=EPOCHS), ours

    (ours, compiled), (theirs, graph) = rows(True), rows(False)
    for a, b in zip(ours, theirs, strict=True):
        for name in a.keys() - {"seconds"}:
            assert a[name] == pytest.approx(b[name], rel=1e-4, abs=1e-6), name
    for name, array in graph.model.state_dict().items():
        np.testing.assert_allclose(compiled.model.state_dict()[name], array, rtol=1e-4, atol=1e-6)
    text = compiled._step.differentiate.explain()
    assert "kernels on emulator" in text and "as it stands" not in text
