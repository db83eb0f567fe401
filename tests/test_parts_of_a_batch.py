"""A batch computed in parts, under a runner that says where each begins and how much it counts."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.engine.running import Runner, here

N = 10
PARTS = [(0, 3), (3, 7), (7, 10)]


class Part(Runner):
    def __init__(self, first, stop, samples=N):
        self.first_sample, self.weight = first, (stop - first) / samples
        self.threads = 1
        self.leaves = []

    def complete(self, leaf):
        self.leaves.append(leaf)
        self.below.complete(leaf)


def network(device="cpu"):
    tg.manual_seed(1)
    layers = [nn.Linear(6, 8), nn.Dropout(0.5), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2)]
    return nn.Sequential(*layers).to(device)


def batch(samples=N):
    rng = np.random.default_rng(0)
    return rng.standard_normal((samples, 6)).astype(np.float32), rng.integers(0, 2, samples)


def learner(model, compiled, **options):
    def learn(x, t):
        loss = tg.cross_entropy(model(x), t)
        loss.backward()
        return loss

    made = tg.compile(learn, **options) if compiled else learn
    device = model[0].weight.device
    return lambda x, t: made(tg.Tensor(x).to(device), tg.Tensor(t).to(device))


def gradients(model):
    found = [p.grad.copy() for p in model.parameters()]
    for p in model.parameters():
        p.grad = None
    return found


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "plan"])
@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_the_parts_add_up_to_the_batch(device, compiled):
    model = network(device)
    whole, parted = learner(model, compiled), learner(model, compiled)
    x, t = batch()
    for step in range(5):  # the plan is recorded, run, looked at again, replayed
        tg.manual_seed(step)
        whole(x, t)
        expected = gradients(model)
        total = [0] * len(expected)
        for first, stop in PARTS:
            tg.manual_seed(step)
            with Part(first, stop):
                parted(x[first:stop], t[first:stop])
            total = [a + b for a, b in zip(total, gradients(model), strict=True)]
        for got, wanted in zip(total, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-7)


def test_a_plan_in_tiles():
    tg.manual_seed(2)
    model = nn.Sequential(nn.Linear(6, 64), nn.Dropout(0.5), nn.Linear(64, 2))
    x, t = batch(100)
    whole, parted = learner(model, False), learner(model, True, tile=8)
    tg.manual_seed(0)
    whole(x, t)
    expected, total = gradients(model), 0
    for first, stop in [(0, 45), (45, 100)]:
        tg.manual_seed(0)
        with Part(first, stop, 100):
            parted(x[first:stop], t[first:stop])
        total = [g + h for g, h in zip(gradients(model), total or [0] * 4, strict=True)]
    for got, wanted in zip(total, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("device", ["cpu", "emulator"])
@pytest.mark.parametrize("features", [(1,), (3,), (2, 5)], ids=str)
def test_what_is_dropped_is_what_the_whole_batch_drops(device, features):
    x = tg.ones((N, *features)).to(device)
    tg.manual_seed(7)
    whole = tg.dropout(x, 0.4).numpy()
    for first, stop in PARTS:
        tg.manual_seed(7)
        with Part(first, stop):
            part = tg.dropout(x[first:stop], 0.4).numpy()
        assert (part == whole[first:stop]).all()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "plan"])
def test_a_leaf_is_complete_once_and_then_has_its_gradient(compiled):
    model, (x, t) = network(), batch()
    learn = learner(model, compiled)
    for _ in range(3):
        part = Part(0, N)
        with part:
            learn(x, t)
        assert len(part.leaves) == 4 and set(part.leaves) == set(model.parameters())
        gradients(model)


def test_a_tensor_that_is_an_argument_is_complete_too():
    w = tg.Tensor([1.0, 2.0], requires_grad=True)

    @tg.compile
    def learn(w):
        (w * w).sum().backward()

    for _ in range(2):
        with Part(0, N) as part:
            learn(w)
        assert part.leaves == [w]


def test_a_given_gradient_counts_less_too():
    w = tg.Tensor([1.0, 2.0], requires_grad=True)
    with Part(0, 5):
        (w * 3).backward(np.array([2.0, 4.0], np.float32))
    assert w.grad.tolist() == [3.0, 6.0]


def test_alone_nothing_counts_less():
    assert (here.top.first_sample, here.top.weight, here.top.threads) == (0, 1.0, None)
