"""A Trainer's steps as CUDA graphs, on the stand-in for CuPy: the bits of steps without a graph."""

import gc
import signal
import weakref

import numpy as np
import pytest

import tinygraph as tg
from tests.training.networks import EPOCHS, fingerprint, loaders
from tests.training.test_resume import stop_after
from tinygraph.cuda.graph_memory import GraphMemory
from tinygraph.errors import ArgumentError, CaptureWarning, DeviceError, GraphError
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


def worker(run, capture, rule="adam", loss=tg.softmax_cross_entropy, compile=False, last=()):
    """Dropout, batch normalization, a schedule, a rule with state."""
    tg.manual_seed(3)
    layers = tg.nn.Linear(6, 8), Normalized(), tg.nn.ReLU(), tg.nn.Dropout(0.3), tg.nn.Linear(8, 2)
    model = tg.nn.Sequential(*layers, *last).to("cuda")
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
    arrays = [
        a
        for memory in program._memories.values()
        for a in memory.arrays
        if a is not None and a.size
    ]
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


def reads(output, labels):
    loss = tg.softmax_cross_entropy(output, labels)
    loss.item()
    return loss


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


# ---- where nothing was said ---------------------------------------------------------------------


def test_a_graph_is_the_default_on_a_gpu(tmp_path):
    usual = trained(tmp_path / "usual", None, "adam")
    assert graph_of(usual) is not None
    assert fingerprint(usual) == fingerprint(trained(tmp_path / "eager", False, "adam"))
    model = tg.nn.Linear(2, 2)
    trainer = Trainer(model, tg.optim.SGD(model.parameters(), lr=0.1), tg.mse_loss, progress=False)
    assert type(trainer._step) is tg.training.step.Step


def test_steps_go_on_without_a_graph_where_none_can_be_recorded(tmp_path):
    """The step that shows it is taken back and made again: no bit differs."""
    with pytest.warns(CaptureWarning, match="without a CUDA graph: .* one that read values"):
        without = trained(tmp_path / "without", None, "adam", loss=reads)
    assert without._step.graph is None
    assert fingerprint(without) == fingerprint(trained(tmp_path / "eager", False, "adam"))


def losses(trainer, count=6, before=lambda trainer, step: None):
    trainer.model.train(True)
    found = []
    for step in range(count):
        before(trainer, step)
        found.append(trainer.step(*batch(seed=step)))
    return found, [a.tobytes() for a in trainer.model.state_dict().values()]


def test_memory_that_does_not_suffice_for_a_graph(cupy, monkeypatch):
    def none_left(self, size):
        raise cupy.cuda.memory.OutOfMemoryError(size, 0)

    monkeypatch.setattr(GraphMemory, "_ask_the_driver", none_left)
    with pytest.warns(CaptureWarning, match="expected room for"):
        found = losses(worker(None, None))
    assert found == losses(worker(None, False))


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


@pytest.mark.stand_in
@pytest.mark.parametrize("capture", [None, False])
def test_batches_of_the_host_go_through_pinned_memory(tmp_path, capture):
    """Those of training and of validation, copied ahead by the same stream as with `device`."""
    from cupy._memory import pageable

    trainer = worker(folder(tmp_path / "run"), capture)
    train, held_out = loaders()
    sizes = {inputs.nbytes for one in (train, held_out) for inputs, _ in one}
    del pageable[:]
    trainer.fit(*loaders(), EPOCHS)
    assert pageable and max(pageable) < min(sizes)  # rates and tables of an optimiser alone
    there = [one.batches(tg.device.get_device("cuda")) for one in loaders()]
    assert all(type(part) is tg.Tensor for one in there for batch in one for part in batch)


def test_a_replay_copies_no_running_statistics(monkeypatch):
    """It cannot end half done; and the modules are not walked through again."""
    trainer = worker(None, None)
    losses(trainer, 4)
    monkeypatch.setattr(tg.nn.Module, "named_modules", lambda self: pytest.fail("a walk"))
    copied = []
    monkeypatch.setattr(trainer._step.undo, "_keep", lambda *given: copied.append(given))
    trainer.step(*batch())
    assert not copied and graph_of(trainer) is not None


def test_a_layer_that_is_put_in_the_place_of_another():
    def replaced(trainer, step):
        if step == 5:
            setattr(trainer.model, "2", tg.nn.Tanh())

    captured = worker(None, None)
    assert losses(captured, 10, replaced) == losses(worker(None, False), 10, replaced)
    assert graph_of(captured) is not None


class Cooling(tg.nn.Module):
    """Its temperature is a number of Python's."""

    def __init__(self):
        self.temperature = 1.0

    def forward(self, x):
        return x * self.temperature


class Counting(Cooling):
    """A number that each call changes."""

    def forward(self, x):
        self.temperature *= 0.5
        return x * self.temperature


def test_a_number_of_a_module_that_changes_between_steps():
    def cools(trainer, step):
        if step == 5:
            list(trainer.model.modules())[-1].temperature = 0.25

    captured = worker(None, None, last=[Cooling()])
    assert losses(captured, 10, cools) == losses(worker(None, False, last=[Cooling()]), 10, cools)
    assert graph_of(captured) is not None


def test_a_number_of_a_module_that_every_step_changes():
    with pytest.warns(CaptureWarning, match="have changed 5 times before a replay"):
        found = losses(worker(None, None, last=[Counting()]), 8)
    assert found == losses(worker(None, False, last=[Counting()]), 8)


def test_batches_that_grow_and_grow():
    def grown(capture):
        trainer = worker(None, capture)
        trainer.model.train(True)
        return [trainer.step(*batch(4 + size)) for size in range(8)]

    with pytest.warns(CaptureWarning, match="sizes or settings have changed"):
        found = grown(None)
    assert found == grown(False)


class Plain(tg.optim.SGD):
    """A rule of one's own: its learning rate is an argument of the launch, not device memory."""

    def changing_of(self, device, parts):
        rates = [part.group["lr"] for part in parts]
        return device.constant(np.array(rates, parts[0].value.dtype))


class PlainAdam(Plain):
    """And it counts its steps by itself."""

    numbers = ("count",)

    def changing_of(self, device, parts):
        for part in parts:
            part.state["count"] = part.state.get("count", 0) + 1
        rates = [part.group["lr"] / part.state["count"] for part in parts]
        return device.constant(np.array(rates, parts[0].value.dtype))


def with_rule(rule, capture):
    tg.manual_seed(3)
    model = tg.nn.Linear(6, 2, bias=False).to("cuda")
    return Trainer(
        model,
        rule(model.parameters(), lr=0.1),
        tg.softmax_cross_entropy,
        progress=False,
        capture=capture,
    )


def test_a_learning_rate_that_is_an_argument_of_a_launch():
    def slower(trainer, step):
        trainer.optimizer.groups[0]["lr"] = 0.1 if step < 5 else 0.01

    captured = with_rule(Plain, None)
    assert losses(captured, 10, slower) == losses(with_rule(Plain, False), 10, slower)
    assert graph_of(captured) is not None


def test_a_rule_that_counts_on_the_host_is_no_part_of_a_graph():
    with pytest.warns(CaptureWarning, match="counts on the host"):
        found = losses(with_rule(PlainAdam, None))
    assert found == losses(with_rule(PlainAdam, False))


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
