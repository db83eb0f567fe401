"""What shards and tiles draw is what the whole batch would have drawn, at the place of a sample.

The numbers are small integers, so that sums are exact: gradients have the bits of loops in numpy.
"""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn

N, T, C = 8, 3, 4
SEED = 11


class Model(nn.Module):
    """One number for each feature, whose gradient shows what was dropped."""

    def __init__(self, rule):
        self.scale, self.rule = nn.Parameter(np.ones(C, np.float32)), rule

    def forward(self, x):
        return self.rule(x * self.scale, self.scale)


RULES = {
    "a sample in one row": lambda y, w: tg.dropout(y, 0.5),
    "a sample in several rows": lambda y, w: tg.dropout(y.reshape(-1, C), 0.5),
    "each number a row": lambda y, w: tg.dropout(y.reshape(-1), 0.5),
    "two samples in a row": lambda y, w: tg.dropout(y.reshape(-1, 2 * T * C), 0.5),
    "the second draw": lambda y, w: (
        0.0 * tg.dropout(y, 0.5) + tg.dropout(y.reshape(-1, C), 0.5).reshape(y.shape)
    ),
    "a parameter": lambda y, w: y.detach() * tg.dropout(w, 0.5),
    "a mask for each sample": lambda y, w: (
        y * tg.dropout(tg.ones(y.shape[0], 1, C, device=y.device.name), 0.5)
    ),
}


def kept(rule):
    """2 or 0 for each number of the batch, from numpy's generator itself."""
    shape = {"a parameter": (1, 1, C), "a mask for each sample": (N, 1, C)}.get(rule, (N, T, C))
    words = np.random.Philox(
        key=(int(rule == "the second draw") << 64) | SEED, counter=(1 << 256) - 1
    )
    drawn = words.random_raw(int(np.prod(shape))).reshape(shape)
    return np.broadcast_to(2.0 * (drawn >= np.uint64(1 << 63)), (N, T, C))


def numbers():
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (N, T, C)).astype(np.float32)
    return x, rng.integers(-4, 5, (N, T, C)).astype(np.float32)


def gradient(rule, shards, device, compiled, **options):
    model, (x, t) = Model(RULES[rule]).to(device), numbers()

    def learn(x, t):
        loss = (model(x).reshape(-1, T, C) * t).sum() / x.shape[0]
        loss.backward()
        return loss

    made = tg.compile(learn, **options) if compiled else learn

    def on_device(x, t):
        return made(tg.Tensor(x).to(device), tg.Tensor(t).to(device))

    run = on_device if shards is None else tg.distributed.data_parallel(on_device, model, shards)
    found = []
    for _ in range(3):  # a plan is recorded, traced again, and run
        model.scale.grad = None
        tg.manual_seed(SEED)
        run(x, t)
        found.append(model.scale.device.to_numpy(model.scale.grad))
    assert all((each == found[0]).all() for each in found)
    return found[0]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "plan"])
@pytest.mark.parametrize("device", ["cpu", "emulator"])
@pytest.mark.parametrize("rule", RULES)
def test_shards_drop_what_the_whole_batch_drops(rule, device, compiled):
    x, t = numbers()
    wanted = (kept(rule) * x * t).sum((0, 1)) / N
    for shards in (None, 1, 2, 4, 3, 8):
        if rule == "two samples in a row" and shards in (3, 8):
            continue  # a shard has an odd number of samples
        found = gradient(rule, shards, device, compiled)
        # A third of a batch is no exact number.
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 if shards == 3 else 0)


@pytest.mark.parametrize("shards", [None, 1, 2])
@pytest.mark.parametrize("rule", ["a sample in one row", "a sample in several rows"])
def test_tiles_of_shards_too(rule, shards):
    x, t = numbers()
    wanted = (kept(rule) * x * t).sum((0, 1)) / N
    assert (gradient(rule, shards, "cpu", True, threads=1, tile=2) == wanted).all()


@pytest.mark.parametrize("shards", [2, 3, 8])
@pytest.mark.parametrize("rows", [1, 2], ids=["one row", "two rows"])
@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_attention_drops_what_it_drops_in_the_whole_batch(device, rows, shards):
    """Queries and keys of zeros: the weights are all alike, and what is left of them is seen."""
    values = nn.Parameter(np.ones((6, 2), np.float32), device=device)
    x = np.random.default_rng(1).integers(-4, 5, (N, 6, 2)).astype(np.float32)

    def learn(x):
        x = tg.Tensor(x).to(device)
        v = (x * values).reshape(-1, 6 // rows, 2)
        loss = tg.scaled_dot_product_attention(0 * v, 0 * v, v, dropout_p=0.5)
        loss = (loss.reshape(-1, 6, 2) * x).sum() / x.shape[0]
        loss.backward()
        return loss

    tg.manual_seed(SEED)
    learn(x)
    wanted, values.grad = values.device.to_numpy(values.grad), None
    tg.manual_seed(SEED)
    tg.distributed.data_parallel(learn, [values], shards)(x)
    np.testing.assert_allclose(values.device.to_numpy(values.grad), wanted, rtol=1e-5, atol=1e-5)
