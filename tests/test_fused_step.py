"""Bytes and operations of the seed network's training step, unfused against fused."""

import numpy as np

import tinygraph as tg
from tinygraph.recipes.numba_cnn import model

BATCH, FILTERS = 1000, 256


def unfused(network, images):
    return network(images)


def fused(network, images):
    w, b, head, head_b = network.parameters()
    return tg.linear(tg.flatten(tg.conv2d_relu_max_pool2d(images, w, b), 1), head, head_b)


def step(logits_of):
    """Bytes and operations of forward and backward, as the graph's table tells, and of SGD."""
    network = model(FILTERS, (1, 28, 28)).to("emulator")
    images = tg.Tensor(np.zeros((BATCH, 1, 28, 28), np.float32), device="emulator")
    labels = tg.Tensor(np.zeros(BATCH, np.int64), device="emulator")
    optimizer = tg.optim.SGD(network.parameters(), lr=0.1)
    with tg.cuda.recording(execute=False) as launches:
        loss = tg.softmax_cross_entropy(logits_of(network, images), labels)
        table = tg.Graph(loss).kernel_table()
        loss.backward()
        before = len(launches)
        optimizer.step()
    return table.bytes + sum(launch.bytes for launch in launches[before:]), table.operations


def compiled_step():
    """The same for the plain network through a plan: its third step, when buffers are laid out."""
    network = model(FILTERS, (1, 28, 28)).to("emulator")
    optimizer = tg.optim.SGD(network.parameters(), lr=0.1)

    @tg.compile
    def step(images, labels):
        loss = tg.softmax_cross_entropy(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    images, labels = np.zeros((BATCH, 1, 28, 28), np.float32), np.zeros(BATCH, np.int64)
    with tg.cuda.recording(execute=False) as launches:
        for _ in range(3):
            before = len(launches)
            step(images, labels)
    last = launches[before:]
    return sum(launch.bytes for launch in last), sum(launch.operations or 0 for launch in last)


def test_the_fused_step_moves_a_tenth_of_an_eager_frameworks():
    """9.9 GB in an eager framework; each of our steps is counted here, never run."""
    moved, operations = {}, {}
    for logits_of in (unfused, fused):
        moved[logits_of], operations[logits_of] = step(logits_of)
    in_plan, operations_in_plan = compiled_step()
    print(in_plan / 1e9, operations_in_plan / 1e9, end=" ")
    print({f.__name__: (moved[f] / 1e9, operations[f] / 1e9) for f in moved})
    pooled = 4 * BATCH * FILTERS * 13 * 13
    assert moved[unfused] > 7e9
    assert 4 * pooled < moved[fused] < 1e9  # pooled values and their gradient, written and read
    assert operations[fused] < operations[unfused]
    # Nobody writes the fused op: a plan takes it, and never writes the pooled values' gradient.
    assert 3 * pooled < in_plan < 4 * pooled and operations_in_plan < operations[unfused]


def test_the_fused_step_learns_the_same():
    """Loss and gradients of the unfused network, on the emulator, to rounding."""
    rng = np.random.default_rng(0)
    network = model(5, (1, 10, 10)).to("emulator")
    images = tg.Tensor(rng.random((7, 1, 10, 10), np.float32), device="emulator")
    labels = tg.Tensor(rng.integers(0, 10, 7), device="emulator")
    found = []
    for function in (unfused, fused):
        network.zero_grad()
        loss = tg.softmax_cross_entropy(function(network, images), labels)
        loss.backward()
        found.append([loss.item(), *[p.grad.copy() for p in network.parameters()]])
    for expected, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)
