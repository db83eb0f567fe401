"""A training step as a CUDA graph, on the stand-in for CuPy: the numbers of eager steps."""

import numpy as np
import pytest

import tinygraph as tg
from tests.cuda.test_rehearsed_cuda import OPTIMIZERS, batches, network
from tinygraph.errors import GraphError

pytestmark = pytest.mark.second


@pytest.fixture(autouse=True)
def cupy(rehearsed_cuda):
    return rehearsed_cuda


def schedule(optimizer, step):
    """Another learning rate for each step."""
    optimizer.groups[0]["lr"] = 0.05 / (1 + step)


class Training:
    """A model that learns batch by batch, with or without a graph."""

    def __init__(self, make, capture):
        self.model = network("cuda")
        self.optimizer = make(self.model.parameters())
        self.step = tg.cuda.capture(self.learn) if capture else self.eager

    def learn(self, x, t):
        loss = tg.softmax_cross_entropy(self.model(x), t)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def eager(self, x, t):
        return self.learn(tg.Tensor(x, device="cuda"), tg.Tensor(t, device="cuda"))


def train(make, capture, steps=6, before=schedule):
    training, losses = Training(make, capture), []
    for number, (x, t) in enumerate(batches(steps)):
        before(training.optimizer, number)
        losses.append(training.step(x, t).item())
    return losses, training


def assert_equal(one, other):
    assert one[0] == other[0]
    one, other = one[1], other[1]
    for key, array in one.model.state_dict().items():
        assert array.tobytes() == other.model.state_dict()[key].tobytes(), key
    mine, theirs = one.optimizer.state_dict()["state"], other.optimizer.state_dict()["state"]
    assert mine.keys() == theirs.keys()
    for parameter, state in mine.items():
        for key, value in state.items():
            np.testing.assert_array_equal(theirs[parameter][key], value)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_replays_give_the_bits_of_eager_steps(name):
    """Dropout draws anew, the learning rate changes, bias corrections move on."""
    captured = train(OPTIMIZERS[name], True)
    assert captured[1].step.captured
    assert_equal(captured, train(OPTIMIZERS[name], False))


def test_a_replay_launches_what_was_captured_and_nothing_else(cupy):
    from cupy._module import launches

    _, training = train(OPTIMIZERS["adam"], True, steps=4)
    graph = training.step._recording.graph
    del launches[:]
    training.step(*batches()[0])
    assert training.step._recording.graph is graph and not launches
    assert len(graph.work) > 20


def test_a_batch_of_another_shape_is_learnt_from_without_the_graph():
    def steps(capture):
        losses, training = train(OPTIMIZERS["adam"], capture, steps=4)
        for batch in (*batches(1, size=3), *batches(2)):
            losses.append(training.step(*batch).item())
        return losses, training

    assert_equal(steps(True), steps(False))


def other_momentum(optimizer, step):
    optimizer.groups[0]["momentum"] = 0.9 if step < 4 else 0.5


def loaded_state(optimizer, step):
    if step == 4:
        optimizer.load_state_dict(optimizer.state_dict())


@pytest.mark.parametrize("change", [other_momentum, loaded_state])
def test_what_a_graph_has_taken_over_may_change(change):
    captured = train(OPTIMIZERS["sgd"], True, 9, change)
    assert captured[1].step.captured
    assert_equal(captured, train(OPTIMIZERS["sgd"], False, 9, change))


def broken(what):
    x = tg.Tensor(np.ones((4, 4), "f4"), requires_grad=True, device="cuda")
    kept = []

    def step(y):
        loss = (x * y).sum()
        if what == "reads":
            loss.item()
        elif what == "waits":
            x.device.synchronize()
        elif what == "copies":
            tg.Tensor(np.ones(3, "f4"), device="cuda")
        else:
            kept.append(x.device.empty((100 * (1 + len(kept)), 7), "f4"))
        return loss

    return tg.cuda.capture(step)


@pytest.mark.parametrize("what", ["reads", "waits", "copies"])
def test_a_step_that_is_no_graph(what):
    step = broken(what)
    for _ in range(2):
        step(np.ones((4, 4), "f4"))
    for _ in range(2):
        with pytest.raises(GraphError, match="capture: step: expected launches alone"):
            step(np.ones((4, 4), "f4"))
        assert not step.captured


def test_memory_that_the_pool_has_not_is_no_part_of_a_graph(cupy):
    step = broken("grows")
    for _ in range(2):
        step(np.ones((4, 4), "f4"))
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="cudaMalloc"):
        step(np.ones((4, 4), "f4"))


def test_a_bad_label_in_a_replay_is_named():
    _, training = train(OPTIMIZERS["sgd"], True, steps=4)
    x, t = batches()[0]
    with pytest.raises(tg.errors.ArgumentError, match="class numbers from 0 to 3, got 9"):
        training.step(x, np.where(t == t[0], 9, t)).item()
