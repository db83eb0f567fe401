"""Steps that are no graph, or end halfway: what they did is taken back, and told."""

import numpy as np
import pytest

import tinygraph as tg
from tests.training.captured import batch, losses, reads, trained, worker
from tests.training.networks import fingerprint
from tinygraph.base.errors import ArgumentError, CaptureWarning, DeviceError, GraphError
from tinygraph.cuda.graph_memory import GraphMemory
from tinygraph.training import DivergenceError, Trainer

pytestmark = [
    pytest.mark.second,
    pytest.mark.usefixtures("rehearsed_cuda"),
    pytest.mark.filterwarnings("ignore:.*batch.*:UserWarning"),
]


def test_a_step_that_is_no_graph_is_taken_back():
    trainer = worker(None, True, loss=reads)
    trainer.model.train(True)
    for _ in range(2):
        trainer.step(*batch())
    before = trainer.model.state_dict(), trainer.optimizer.state_dict()
    draws = tg.random.default_generator.state_dict()
    for _ in range(2):  # and again: nothing is left of the recording that failed
        with pytest.raises(GraphError, match="launches alone, got one that read values"):
            trainer.step(*batch())
    after = trainer.model.state_dict(), trainer.optimizer.state_dict()
    for a, b in zip(before, after, strict=True):
        np.testing.assert_equal(a, b)
    assert tg.random.default_generator.state_dict() == draws


def test_steps_go_on_without_a_graph_where_none_can_be_recorded(tmp_path):
    """The step that shows it is taken back and made again: no bit differs."""
    with pytest.warns(CaptureWarning, match="without a CUDA graph: .* one that read values"):
        without = trained(tmp_path / "without", None, "adam", loss=reads)
    assert without._step.graph is None
    assert fingerprint(without) == fingerprint(trained(tmp_path / "eager", False, "adam"))


def test_gradients_that_are_clipped_are_no_graph(tmp_path):
    """The host reads their norm."""
    options = {"clip_norm": 0.05}
    with pytest.warns(CaptureWarning, match="without a CUDA graph: .* one that read values"):
        without = trained(tmp_path / "without", None, "adam", **options)
    eager = fingerprint(trained(tmp_path / "eager", False, "adam", **options))
    assert fingerprint(without) == eager
    assert eager != fingerprint(trained(tmp_path / "unclipped", False, "adam"))


def test_memory_that_does_not_suffice_for_a_graph(rehearsed_cuda, monkeypatch):
    def none_left(self, size):
        raise rehearsed_cuda.cuda.memory.OutOfMemoryError(size, 0)

    monkeypatch.setattr(GraphMemory, "_ask_the_driver", none_left)
    with pytest.warns(CaptureWarning, match="expected room for"):
        found = losses(worker(None, None))
    assert found == losses(worker(None, False))


def test_a_first_step_without_memory_is_taken_back(monkeypatch):
    trainer = worker(None, True)
    trainer.model.train(True)
    before = trainer.model.state_dict()
    adam = trainer.optimizer
    whole = adam.update_kernels

    def fails(device, parts):
        whole(device, parts)
        raise MemoryError("none left")

    monkeypatch.setattr(adam, "update_kernels", fails)
    with pytest.raises(DeviceError, match="the step was taken back"):
        trainer.step(*batch())
    np.testing.assert_equal(trainer.model.state_dict(), before)
    assert not any(adam.state.values())


def test_a_bad_label_in_a_plan_is_named():
    """A GPU is not waited for: the label shows when the loss, NaN by then, is read."""
    for capture in (False, True):
        trainer = worker(None, capture, compile=True)
        trainer.model.train(True)
        for _ in range(4):
            trainer.step(*batch())
        with pytest.raises(ArgumentError, match="label"):
            trainer.step(batch()[0], np.full(16, 9))


def test_a_loss_that_is_not_finite_ends_the_training():
    inputs, labels = batch(80)
    inputs[70] = np.nan  # in the fifth batch, which is a replay
    loader = tg.data.DataLoader(tg.data.ArrayDataset(inputs, labels), 16)
    with pytest.raises(DivergenceError, match="nan in epoch 1, batch 5"):
        worker(None, True).fit(loader)


@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_no_graphs_without_a_gpu(device):
    model = tg.nn.Linear(2, 2).to(device)
    sgd = tg.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(
        DeviceError,
        match=rf"expected a model on device 'cuda', got one on "
        rf"'{device}'.*model\.to\('cuda'\)",
    ):
        Trainer(model, sgd, tg.mse_loss, progress=False, capture=True)
