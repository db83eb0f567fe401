"""Trainer(capture=True) on the stand-in for CuPy: the bits of steps without a graph."""

import gc
import signal
import weakref

import numpy as np
import pytest

import tinygraph as tg
from tests.training.networks import EPOCHS, fingerprint, loaders
from tests.training.test_resume import stop_after
from tinygraph.errors import ArgumentError, DeviceError, GraphError
from tinygraph.training import DivergenceError, RunFolder, Stopped, Trainer

pytestmark = [
    pytest.mark.second,
    pytest.mark.filterwarnings("ignore:.*batch.*:UserWarning"),
]

RULES = {
    "sgd": lambda p: tg.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "adam": lambda p: tg.optim.Adam(p, lr=0.01, amsgrad=True),
}


class Normalized(tg.nn.Module):
    """Batch normalization, whose running statistics a graph must go on with."""

    def __init__(self):
        self.running_mean = tg.nn.Buffer(np.zeros(8, np.float32))
        self.running_var = tg.nn.Buffer(np.ones(8, np.float32))

    def forward(self, x):
        mean, var = self.running_mean, self.running_var
        return tg.batch_norm(x, running_mean=mean, running_var=var, training=self.training)


@pytest.fixture(autouse=True)
def cupy(rehearsed_cuda):
    return rehearsed_cuda


def worker(run, capture, rule="adam", loss=tg.softmax_cross_entropy, compile=False):
    """Dropout, batch normalization, a schedule, a rule with state."""
    tg.manual_seed(3)
    model = tg.nn.Sequential(
        tg.nn.Linear(6, 8), Normalized(), tg.nn.ReLU(), tg.nn.Dropout(0.3), tg.nn.Linear(8, 2)
    ).to("cuda")
    optimizer = RULES[rule](model.named_parameters())
    schedule = tg.optim.StepLR(optimizer, step_size=1, gamma=0.5)
    return Trainer(
        model,
        optimizer,
        loss,
        run=run,
        progress=False,
        schedule=schedule,
        capture=capture,
        compile=compile,
    )


def folder(path):
    run = RunFolder(path)
    run.write_config({})
    return run


def graph_of(trainer):
    """The recorded step, or None before it is recorded."""
    step = trainer._step.graph
    return step._recording.graph if step is not None and step.captured else None


def trained(path, capture, rule, **options):
    trainer = worker(folder(path), capture, rule, **options)
    trainer.fit(*loaders(), EPOCHS)
    return trainer


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


@pytest.mark.parametrize("steps", [2, 3, 5, 8])  # the next batch: small, full, small, small
def test_stopped_in_an_epoch_and_resumed(tmp_path, steps):
    whole = fingerprint(trained(tmp_path / "whole", False, "adam"))
    run = folder(tmp_path / "run")
    first = worker(run, True)
    stop_after(first, steps, signal.SIGINT)
    with pytest.raises(Stopped):
        first.fit(*loaders(), EPOCHS)
    tg.manual_seed(99)
    second = worker(RunFolder.open(run.path), True)
    assert second.resume() == steps
    second.fit(*loaders(), EPOCHS - second.epoch)
    assert fingerprint(second) == whole


def batch(size=16, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((size, 6)).astype("f4"), rng.integers(0, 2, size)


@pytest.mark.stand_in
def test_a_replay_launches_nothing_of_its_own(cupy):
    from cupy._module import launches

    trainer = worker(None, True)
    with tg.training.evaluation.mode(trainer.model, training=True):
        for _ in range(3):
            trainer.step(*batch())
        graph = graph_of(trainer)
        del launches[:]
        trainer.step(*batch())
        assert graph_of(trainer) is graph is not None and not launches
        trainer.step(*batch(4))
        assert launches
        trainer.step(*batch())
        assert graph_of(trainer) is graph


def test_a_plan_has_its_arrays_in_one_arena(cupy):
    """Of the step's own pool: what the graph launches finds them where they were."""
    trainer = worker(None, True, compile=True, loss=lambda y, t: tg.mean(y * y))
    trainer.model.train(True)
    for _ in range(4):
        trainer.step(*batch())
    (plan,) = [made.plans[0] for made in trainer._step.differentiate._found]
    (program,) = plan._workers[0].programs.values()
    arrays = [a for memory in program._memories.values() for a in memory.arrays if a.size]
    assert len(arrays) > 10 and all(isinstance(a, cupy.ndarray) for a in arrays)
    first = min(a.data.ptr for a in arrays)
    assert max(a.data.ptr + a.nbytes for a in arrays) - first <= program.bytes
    assert program.bytes < program.requested
    assert all(a.data.ptr % 256 == 0 for a in arrays)
    alive = weakref.ref(plan)
    trainer._step.differentiate._found.clear()
    del plan, program, arrays
    gc.collect()
    assert alive() is not None  # the graph keeps what it writes to
    trainer._step.graph = None
    gc.collect()
    assert alive() is None


def test_a_bad_label_in_a_plan_is_named():
    """A GPU is not waited for: the label shows when the loss, NaN by then, is read."""
    for capture in (False, True):
        trainer = worker(None, capture, compile=True)
        trainer.model.train(True)
        for _ in range(4):
            trainer.step(*batch())
        with pytest.raises(ArgumentError, match="label"):
            trainer.step(batch()[0], np.full(16, 9))


def test_a_larger_batch_begins_a_new_graph():
    def losses(capture):
        trainer = worker(None, capture)
        trainer.model.train(True)
        return [trainer.step(*batch(size)) for size in (4, 16, 16, 16, 4, 16, 20, 20, 20, 20)]

    assert losses(True) == losses(False)


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("change", ["frozen", "evaluated", "loaded", "precision"])
def test_what_a_graph_has_taken_over_may_change(change, compile):
    def results(capture):
        trainer = worker(None, capture, compile=compile)
        model = trainer.model
        model.train(True)
        found = [trainer.step(*batch()) for _ in range(4)]
        graph = graph_of(trainer) if capture else None
        if change == "frozen":
            next(model.parameters()).requires_grad = False
        elif change == "evaluated":
            model.train(False)
        elif change == "loaded":
            trainer.optimizer.load_state_dict(trainer.optimizer.state_dict())
        else:
            tg.set_float32_matmul_precision("medium")
        try:
            found += [trainer.step(*batch()) for _ in range(4)]
        finally:
            tg.set_float32_matmul_precision("highest")
        assert not capture or graph_of(trainer) is not graph is not None
        return found, [a.tobytes() for a in model.state_dict().values()]

    assert results(True) == results(False)


def test_a_step_that_is_no_graph_is_taken_back():
    def reads(output, labels):
        loss = tg.softmax_cross_entropy(output, labels)
        loss.item()
        return loss

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


def test_batches_that_are_on_the_gpu_already():
    def losses(capture):
        data = tg.data.ArrayDataset(*batch(80))
        loader = tg.data.DataLoader(data, 16, shuffle=True, seed=5, device="cuda")
        return [row["loss"] for row in worker(None, capture).fit(loader, epochs=2)]

    assert losses(True) == losses(False)


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
