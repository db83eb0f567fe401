"""The seed network's step where kernels run: its stage and its linear layer as one op."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinygraph as tg
from tests.strategies import numbers, seeds
from tinygraph import nn
from tinygraph.recipes.numba_cnn import model

FUSED = "conv2d_relu_max_pool2d_linear"


def names(output):
    return [made.op.name for made in tg.plan(tg.Graph(output)).plan.code.instructions if made.op]


def step_of(network, rate=0.1):
    rule = tg.optim.SGD(network.parameters(), lr=rate)

    def step(x, y):
        loss = tg.softmax_cross_entropy(network(x), y)
        rule.zero_grad()
        loss.backward()
        rule.step()
        return loss

    return step


def batch(n, height, width, classes=10):
    rng = np.random.default_rng(n)
    return rng.random((n, 1, height, width), np.float32), rng.integers(0, classes, n)


@pytest.mark.second
@settings(max_examples=6, deadline=None)
@given(
    n=st.integers(1, 70),
    pairs=st.integers(1, 3),
    size=st.sampled_from([(6, 7), (6, 6)]),
    biases=st.tuples(st.booleans(), st.booleans()),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=seeds,
)
def test_values_and_gradients_are_those_of_the_graph(n, pairs, size, biases, dtype, seed):
    """With and without each bias, under the checker; float64 is compared to rounding of its own."""
    classes, d, features = 3, 2 * pairs, 2 * pairs * ((size[0] - 2) // 2) * ((size[1] - 2) // 2)
    shapes = (d, 1, 3, 3), (d,), (classes, features), (classes,)
    wanted = True, biases[0], True, biases[1]
    x, g = (numbers(seed, shape).astype(dtype) for shape in [(n, 1, *size), (n, classes)])
    arrays = [numbers(seed + i, shape).astype(dtype) for i, shape in enumerate(shapes)]

    def run(compiled):
        w, b, v, c = (
            tg.Parameter(a, device="emulator") if there else None
            for a, there in zip(arrays, wanted, strict=True)
        )

        def loss_of(x):
            pooled = tg.max_pool2d(tg.relu(tg.conv2d(x, w, b)), 2)
            loss = tg.sum(tg.tanh(tg.linear(tg.flatten(pooled, 1), v, c)) * g)
            loss.backward()
            return loss

        function = tg.compile(loss_of) if compiled else loss_of
        with tg.cuda.checking():
            for _ in range(2 if compiled else 1):  # buffers are laid out after the first run
                for p in (w, b, v, c):
                    if p is not None:
                        p.grad = None
                y = function(tg.Tensor(x, device="emulator"))
        if compiled:
            assert FUSED in function.explain()
        return [y.numpy(), *[p.grad for p in (w, b, v, c) if p is not None]]

    rounding = 2e-4 if dtype == np.float32 else 1e-11
    for got, want in zip(run(True), run(False), strict=True):
        np.testing.assert_allclose(got, want, rtol=rounding, atol=rounding * max(1, n))


@pytest.mark.second
def test_a_training_is_that_of_the_graph():
    found = []
    for compiled in (False, True):
        tg.manual_seed(0)
        network = model(4, (1, 10, 10)).to("emulator")
        step = tg.compile(step_of(network)) if compiled else step_of(network)
        batches = [[tg.Tensor(a, device="emulator") for a in batch(n, 10, 10)] for n in (9, 4)]
        losses = [step(*batches[i]).item() for i in (0, 0, 0, 1, 0)]
        found.append((losses, network.state_dict()))
    (want_losses, want), (losses, state) = found
    np.testing.assert_allclose(losses, want_losses, rtol=1e-5)
    for name, array in want.items():
        np.testing.assert_allclose(state[name], array, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.second
def test_on_a_gpu_as_on_the_emulator(rehearsed_cuda, as_the_emulator):
    """And again as one CUDA graph."""
    found = []
    for place, captured in (("emulator", False), ("cuda", False), ("cuda", True)):
        tg.manual_seed(0)
        network = model(4, (1, 10, 10)).to(place)
        step = tg.compile(step_of(network))
        run = tg.cuda.capture(step) if captured else step
        x, y = (tg.Tensor(a, device=place) for a in batch(9, 10, 10))
        losses = [run(x, y).item() for _ in range(5)]
        assert FUSED in step.explain()
        found.append((losses, [p.numpy() for p in network.parameters()]))
    (want_losses, want), *others = found
    for losses, arrays in others:
        as_the_emulator(losses, want_losses)
        for got, array in zip(arrays, want, strict=True):
            as_the_emulator(got, array)


def launches_of_a_step(filters, images, execute):
    """The launches of the third step of the plain network, compiled."""
    network = model(filters, (1, 28, 28)).to("emulator")
    step = tg.compile(step_of(network))
    with tg.cuda.recording(execute=execute) as launches:
        for _ in range(3):
            before = len(launches)
            step(*batch(images, 28, 28))
    return launches[before:]


def test_a_step_of_the_seed_network_is_eight_launches():
    """A batch of 1000 with 256 filters, counted and not run; bytes as few as arrays allow."""
    launches = launches_of_a_step(256, 1000, execute=False)
    print([(launch.kernel.name, launch.bytes, launch.operations) for launch in launches])
    assert len(launches) <= 8
    pooled = 1000 * 256 * 13 * 13
    # Pooled values are written once and read twice, their argmax is written and read.
    assert 3 * 4 * pooled + 2 * pooled < sum(launch.bytes for launch in launches) < 15 * pooled


@pytest.mark.second
def test_a_small_step_is_no_more_launches():
    names = [launch.kernel.name.partition("<")[0] for launch in launches_of_a_step(2, 3, True)]
    assert len(names) <= 8 and names[0] == "single_channel_stage_forward"
    assert "single_channel_stage_linear_backward" in names and names[-1] == "sgd_update"


def stage(x, d=2, channels=1, pool=2, kernel=3):
    w = tg.Parameter(np.ones((d, channels, kernel, kernel), np.float32), device=x.device)
    return tg.max_pool2d(tg.relu(tg.conv2d(x, w)), pool)


def head(pooled, outputs=3):
    flat = tg.flatten(pooled, 1)
    w = np.ones((outputs, flat.shape[1]), np.float32)
    return tg.linear(flat, tg.Parameter(w, device=pooled.device))


def images(channels=1, side=6, device="emulator", requires_grad=False):
    values = np.ones((2, channels, side, side), np.float32)
    return tg.Tensor(values, device=device, requires_grad=requires_grad)


def shared_pooled():
    pooled = stage(images())
    return tg.sum(head(pooled)) + tg.sum(pooled)


@pytest.mark.parametrize(
    "make, fused",
    [
        (lambda: tg.sum(head(stage(images()))), True),
        (lambda: tg.sum(head(stage(images(device="cpu")))), False),
        (lambda: tg.sum(head(stage(images(requires_grad=True)))), False),
        (lambda: tg.sum(head(stage(images(2), channels=2))), False),
        (lambda: tg.sum(head(stage(images(), d=3))), False),
        (lambda: tg.sum(head(stage(images(), kernel=2))), False),
        (lambda: tg.sum(head(stage(images(side=8), pool=3))), False),
        (lambda: tg.sum(head(stage(images(side=36)))), False),
        (lambda: tg.sum(head(stage(images()), outputs=11)), False),
        (shared_pooled, False),
    ],
    ids=["plain", "cpu", "images", "channels", "odd", "2x2", "pool", "large", "outputs", "shared"],
)
def test_where_it_applies(make, fused):
    assert (FUSED in names(make())) is fused


def test_flattening_in_another_way_is_left():
    pooled = stage(images())
    rows = tg.reshape(pooled, (4, 4))  # a sample in two rows
    w = tg.Parameter(np.ones((3, 4), np.float32), device="emulator")
    assert FUSED not in names(tg.sum(tg.linear(rows, w)))
    same = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2)).to("emulator")
    rows = tg.reshape(same(images()), (2, -1))
    w = tg.Parameter(np.ones((3, 8), np.float32), device="emulator")
    assert FUSED in names(tg.sum(tg.linear(rows, w)))
