"""A Trainer's steps as CUDA graphs, on the stand-in for CuPy: the bits of steps without a graph."""

import signal

import numpy as np
import pytest

import tinygraph as tg
from tests.training.captured import RULES, batch, folder, graph_of, losses, trained, worker
from tests.training.networks import EPOCHS, fingerprint, loaders
from tests.training.test_resume import stop_after
from tinygraph.training import RunFolder, Stopped, Trainer

pytestmark = [
    pytest.mark.second,
    pytest.mark.usefixtures("rehearsed_cuda"),
    pytest.mark.filterwarnings("ignore:.*batch.*:UserWarning"),
]


@pytest.mark.parametrize("rule", RULES)
def test_bits_are_those_of_steps_without_a_graph(rule, tmp_path):
    """Batches of 16, 16 and 4: two eager ones, one recorded, three replays; three without."""
    captured = trained(tmp_path / "captured", True, rule)
    assert graph_of(captured) is not None
    assert fingerprint(captured) == fingerprint(trained(tmp_path / "eager", False, rule))


@pytest.mark.parametrize("rule", RULES)
def test_a_plan_that_is_captured(rule, tmp_path):
    """The same bits as the plan alone, and here, where nothing is fused, as those of the graph."""
    captured = trained(tmp_path / "captured", True, rule, compile=True)
    assert graph_of(captured) is not None and not captured._step.differentiate.reasons
    text = captured._step.differentiate.explain()
    assert text.count("kernels on cuda") == 2  # whole and small batches
    for name, compile in (("compiled", True), ("eager", False)):
        plain = trained(tmp_path / name, False, rule, compile=compile)
        assert fingerprint(captured) == fingerprint(plain)


@pytest.mark.parametrize("capture", [True, None])
@pytest.mark.parametrize("steps", [2, 3, 5, 8])  # the next batch: small, full, small, small
def test_stopped_in_an_epoch_and_resumed(tmp_path, steps, capture):
    whole = fingerprint(trained(tmp_path / "whole", False, "adam"))
    run = folder(tmp_path / "run")
    first = worker(run, capture)
    stop_after(first, steps, signal.SIGINT)
    with pytest.raises(Stopped):
        first.fit(*loaders(), EPOCHS)
    tg.manual_seed(99)
    second = worker(RunFolder.open(run.path), capture)
    assert second.resume() == steps
    second.fit(*loaders(), EPOCHS - second.epoch)
    assert fingerprint(second) == whole


def test_a_graph_is_the_default_on_a_gpu(tmp_path):
    usual = trained(tmp_path / "usual", None, "adam")
    assert graph_of(usual) is not None
    assert fingerprint(usual) == fingerprint(trained(tmp_path / "eager", False, "adam"))
    model = tg.nn.Linear(2, 2)
    trainer = Trainer(model, tg.optim.SGD(model.parameters(), lr=0.1), tg.mse_loss, progress=False)
    assert type(trainer._step) is tg.training.step.Step


def test_steps_that_somebody_watches_are_ordinary_ones():
    def watched(trainer, step):
        if step == 4:
            with tg.cuda.recording() as launches:
                trainer.step(*batch())
            assert len(launches) > 20
            with tg.detect_anomaly():
                trainer.step(*batch())

    captured = worker(None, None)
    assert losses(captured, 6, watched) == losses(worker(None, False), 6, watched)
    assert graph_of(captured) is not None


def test_layers_that_count_their_batches():
    """By our own kernel: CuPy's would be a launch, and a compilation, that nobody asked for."""
    layers = tg.nn.BatchNorm1d(2), tg.nn.LayerNorm(2)
    captured = worker(None, None, last=layers)
    found = losses(captured)
    assert graph_of(captured) is not None
    counted = captured.model.state_dict()["5.num_batches_tracked"]
    assert counted == 6 and counted.dtype == np.int64
    layers = tg.nn.BatchNorm1d(2), tg.nn.LayerNorm(2)
    assert found == losses(worker(None, False, last=layers))


def test_gradients_are_those_of_the_last_step():
    """Of a replay too, after a smaller batch has left others."""

    def gradients(capture):
        trainer, found = worker(None, capture), []
        trainer.model.train(True)
        for size in (16, 16, 16, 16, 4, 16):
            trainer.step(*batch(size, seed=len(found)))
            found.append([p.device.to_numpy(p.grad).tobytes() for p in trainer.model.parameters()])
        return found

    assert gradients(None) == gradients(False)


def test_batches_that_are_on_the_gpu_already():
    def losses(capture):
        data = tg.data.ArrayDataset(*batch(80))
        loader = tg.data.DataLoader(data, 16, shuffle=True, seed=5, device="cuda")
        return [row["loss"] for row in worker(None, capture).fit(loader, epochs=2)]

    assert losses(True) == losses(False)
