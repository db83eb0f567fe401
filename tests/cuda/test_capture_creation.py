"""Leaves that a captured step makes on its device, on the stand-in for CuPy."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import GraphError


@pytest.fixture(autouse=True)
def cupy(rehearsed_cuda):
    return rehearsed_cuda


def everything(x):
    """What a model makes of sizes, on the device of its input (4, 4)."""
    at = {"device": x.device}
    past = tg.tril(tg.ones(4, 4, dtype=tg.bool, **at))
    diagonal = tg.einsum("ii->i", x) * tg.linspace(0, 1, 4, **at)
    made = [
        tg.arange(4, **at) + tg.arange(0, 1, 0.25, **at),
        tg.zeros(4, **at) + tg.ones(4, dtype=tg.int32, **at) + tg.full((4,), 2.5, **at),
        tg.zeros_like(x) + tg.ones_like(x) * 3 + tg.full_like(x, 7),
        x.new_zeros(4) + x.new_ones(4) + x.new_full((4,), 2.0),
        tg.one_hot(tg.arange(4, **at), 4) * 5 + tg.eye(4, dtype=tg.float64, **at),
        tg.masked_fill(x, ~past, -2.0) + tg.where(past, x, tg.zeros_like(x)),
        tg.tril(x, -1) - tg.triu(x, 1) + diagonal + tg.zeros_like(tg.empty(4, **at)),
        tg.arange(4, **at)[:, None] >= tg.arange(4, **at)[None],
    ]
    return sum(part * float(n + 1) for n, part in enumerate(made)) + x


def test_a_captured_step_makes_them_anew_at_each_launch():
    step = tg.cuda.capture(everything)
    for seed in range(5):
        x = np.random.default_rng(seed).standard_normal((4, 4)).astype("f4")
        want = everything(tg.Tensor(x)).value
        np.testing.assert_allclose(step(x).detach().numpy(), want, rtol=1e-6, atol=1e-6)
    assert step.captured


class Gpt(nn.Module):
    """As such programs have it: places counted, and a mask made, in each forward."""

    def __init__(self):
        self.words, self.places = nn.Embedding(7, 8), nn.Embedding(5, 8)
        self.qkv, self.head = nn.Linear(8, 24), nn.Linear(8, 7)

    def forward(self, x):
        t = x.shape[1]
        h = self.words(x) + self.places(tg.arange(t, device=x.device))
        q, k, v = self.qkv(h).split(8, dim=-1)
        scores = q @ k.transpose(-2, -1) / 8**0.5
        mask = tg.tril(tg.ones(t, t, device=x.device))
        scores = scores.masked_fill(mask == 0, float("-inf"))
        return self.head(h + scores.softmax(dim=-1) @ v)


@pytest.mark.second
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("options", [{}, {"compile": True}], ids=["plain", "compiled"])
def test_a_gpt_trains_as_a_graph(options):
    words = np.random.default_rng(0).integers(0, 7, (36, 5))

    def loss(y, t):
        return tg.cross_entropy(y.reshape(-1, 7), t.reshape(-1))

    trained = {}
    for capture in (True, False):
        tg.manual_seed(0)
        model = Gpt().to("cuda")
        loader = tg.data.DataLoader(tg.data.ArrayDataset(words, np.roll(words, -1, 1)), 6)
        sgd = tg.optim.SGD(model.parameters(), lr=0.1)
        trainer = tg.training.Trainer(model, sgd, loss, capture=capture, **options)
        trainer.fit(loader, epochs=2)
        trained[capture] = model.state_dict()
    for name, array in trained[True].items():
        np.testing.assert_array_equal(array, trained[False][name], err_msg=name)


@pytest.mark.parametrize(
    "copies",
    [
        lambda x: x + tg.tensor([1.0, 2.0], device="cuda"),
        lambda x: x + tg.from_numpy(np.ones(2, "f4")).to("cuda"),
        lambda x: x * np.ones(2, "f4"),
    ],
)
def test_what_is_copied_from_the_host_names_a_way_out(copies):
    step = tg.cuda.capture(copies)
    for _ in range(2):
        step(np.ones(2, "f4"))
    with pytest.raises(
        GraphError, match=r"copied an array .* pass arrays as its inputs; tg\.arange"
    ):
        step(np.ones(2, "f4"))
    once = tg.tensor([1.0, 2.0], device="cuda")  # the way out
    step = tg.cuda.capture(lambda x, y: x + once + y)
    for _ in range(4):
        y = step(np.ones(2, "f4"), np.ones(2, "f4"))
    assert step.captured and y.numpy().tolist() == [3, 4]
