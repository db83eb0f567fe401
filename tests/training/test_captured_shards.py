"""Steps in shards as two CUDA graphs, on the stand-in for CuPy: the bits of steps without any."""

import numpy as np
import pytest

import tinygraph as tg
from tests.training.captured import Normalized, batch, reads
from tests.training.test_captured_changes import PlainAdam
from tinygraph.base.errors import CaptureWarning, DeviceError
from tinygraph.training import Trainer

pytestmark = [
    pytest.mark.second,
    pytest.mark.usefixtures("rehearsed_cuda"),
    pytest.mark.filterwarnings("ignore:.*batch.*:UserWarning"),
]


def worker(capture, device="cuda", loss=tg.softmax_cross_entropy, rule=tg.optim.Adam, **options):
    tg.manual_seed(3)
    layers = tg.nn.Linear(6, 8), Normalized(), tg.nn.ReLU(), tg.nn.Dropout(0.3), tg.nn.Linear(8, 2)
    model = tg.nn.Sequential(*layers).to(device)
    optimizer = rule(model.named_parameters(), lr=0.01)
    options = {"progress": False, "shards": 4, **options}
    return Trainer(model, optimizer, loss, capture=capture, **options)


def learnt(trainer, sizes=(16, 16, 16, 16, 9, 16), before=lambda trainer, step: None):
    """Losses, gradients, parameters, statistics and what is left of the random numbers."""
    trainer.model.train(True)
    found = []
    for step, size in enumerate(sizes):
        before(trainer, step)
        found.append(trainer.step(*batch(size, seed=step)))
        found += [p.device.to_numpy(p.grad).tobytes() for p in trainer.model.parameters()]
    found += [a.tobytes() for a in trainer.model.state_dict().values()]
    return [*found, tg.random.default_generator.state_dict()]


def graphs(trainer):
    """Whether the shards, and the update, are launched as graphs."""
    parts = trainer._step._shards, trainer._step._updating
    return [part.graph is not None and part.graph.captured for part in parts]


@pytest.mark.parametrize("options", [{}, {"clip_norm": 0.1}, {"compile": True}, {"shards": 1}])
def test_bits_are_those_of_steps_without_graphs(options):
    captured = worker(None, **options)
    assert learnt(captured) == learnt(worker(False, **options))
    assert graphs(captured) == [True, True]


def test_settings_and_frozen_parameters_may_change():
    def change(trainer, step):
        if step == 3:
            trainer.optimizer.groups[0]["lr"] = 0.1
        if step == 4:
            next(trainer.model.parameters()).requires_grad = False

    def results(capture):
        trainer, found = worker(capture), []
        trainer.model.train(True)
        for step in range(9):
            change(trainer, step)
            found.append(trainer.step(*batch(16, seed=step)))
        assert next(trainer.model.parameters()).grad is None
        return found, [a.tobytes() for a in trainer.model.state_dict().values()]

    assert results(None) == results(False)


def test_steps_that_somebody_watches_are_ordinary_ones():
    def watched(trainer, step):
        if step == 4:
            with tg.cuda.recording() as launches:
                trainer.step(*batch())
            assert len(launches) > 20

    assert learnt(worker(None), before=watched) == learnt(worker(False), before=watched)


def test_shards_that_read_a_value_run_without_a_graph():
    """The update has its graph all the same."""
    trainer = worker(None, loss=reads)
    with pytest.warns(CaptureWarning, match="without a CUDA graph.*read"):
        found = learnt(trainer)
    assert found == learnt(worker(False, loss=reads)) and graphs(trainer) == [False, True]


def test_a_rule_that_counts_on_the_host_runs_without_a_graph():
    trainer = worker(None, rule=PlainAdam)
    with pytest.warns(CaptureWarning, match="copied an array|counts on the host"):
        found = learnt(trainer)
    assert found == learnt(worker(False, rule=PlainAdam)) and graphs(trainer) == [True, False]
    assert {state["count"] for state in trainer.optimizer.state.values()} == {6}


def test_a_loss_that_is_not_finite_changes_nothing():
    """Other than where the step is one graph: it is read before the update."""
    trainer = worker(None)
    learnt(trainer)
    before = [p.numpy().copy() for p in trainer.model.parameters()]
    x, t = batch()
    x[0] = np.nan
    loss, _ = trainer.step(x, t)
    assert np.isnan(loss)
    for parameter, was in zip(trainer.model.parameters(), before, strict=True):
        np.testing.assert_array_equal(parameter.numpy(), was)


def test_a_graph_that_cannot_be():
    with pytest.raises(DeviceError, match="expected a model on device 'cuda', got one on 'cpu'"):
        worker(True, device="cpu")
    with pytest.raises(tg.errors.GraphError, match="read"):
        learnt(worker(True, loss=reads))
