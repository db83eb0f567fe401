"""Where a batch is cut, and where not; how tiles are shared out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tinygraph.engine.graph import topological_order
from tinygraph.engine.spec import Spec
from tinygraph.ops.elementwise.relu import Relu
from tinygraph.plan.code import Code, Instruction, code_of
from tinygraph.plan.runner import shares_of
from tinygraph.plan.tiles import FEWEST_SAMPLES, TILE_BYTES, find_cut, tile_size, worth_cutting


def code(loss, *arguments, outputs=()):
    nodes = topological_order([loss, *outputs])
    root = loss if loss.requires_grad else None
    return code_of(nodes, [loss, *outputs], root, arguments)


def leaves(n=6):
    x = tg.Tensor(np.ones((n, 3), np.float32))
    return x, tg.Tensor(np.zeros((n, 2), np.float32)), tg.Parameter(np.ones((2, 3), np.float32))


def test_kinds_of_values():
    x, y, w = leaves()
    h = tg.linear(x, w)
    made = code(tg.mse_loss(tg.relu(h), y), x, y)
    cut = find_cut(made, [0, 1])
    assert cut.reason == "" and cut.batch == 6
    kinds = {i.label: kind for i, kind in zip(made.instructions, cut.kinds, strict=True) if i.op}
    assert kinds == {"linear": "map", "relu": "map", "mse_loss": "sum"}
    leaves_of = [kind for i, kind in zip(made.instructions, cut.kinds, strict=True) if not i.op]
    assert sorted(leaves_of) == ["map", "map", "whole"]


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda x, y, w: tg.mse_loss(tg.linear(x, w), y) + 2.0, "takes a sum over the batch"),
        (lambda x, y, w: 2.0 / tg.mse_loss(tg.linear(x, w), y), "takes a sum over the batch"),
        (lambda x, y, w: (lambda a: a * a)(tg.sum(tg.linear(x, w))), "takes a sum over the batch"),
        (
            lambda x, y, w: tg.mse_loss(tg.linear(x, w * 2.0), y),
            "mul computes much that is the same",
        ),
        (
            lambda x, y, w: tg.mse_loss(tg.linear(x - tg.mean(x, axis=0), w), y),
            "a sum over the batch",
        ),
        (lambda x, y, w: tg.mse_loss(tg.linear(tg.cumsum(x, 0), w), y), "mixes samples"),
        (
            lambda x, y, w: tg.mse_loss(tg.transpose(tg.linear(x, w)), tg.transpose(y)),
            "mixes samples",
        ),
        (lambda x, y, w: tg.linear(x, w), "no sum over the batch"),
    ],
)
def test_why_a_batch_is_not_cut(make, words):
    x, y, w = leaves()
    assert words in find_cut(code(make(x, y, w), x, y), [0, 1]).reason


@pytest.mark.parametrize(
    "reshaped",
    [
        lambda h, n: tg.reshape(h, (n, 2, 3)),
        lambda h, n: tg.reshape(h, (n, 2, -1)),
        lambda h, n: tg.reshape(h, (-1, 3)),  # two rows for each sample
        lambda h, n: tg.reshape(tg.reshape(h, (-1, 2)), (-1, 6)),  # three, which become one
        lambda h, n: tg.flatten(tg.reshape(h, (n, 2, 3)), 0, 1),
        lambda h, n: tg.dropout(tg.reshape(h, (-1, 3)), 0.5),
    ],
    ids=["named", "last", "rows", "rows of rows", "flattened", "dropout"],
)
def test_samples_in_several_rows_are_cut(reshaped):
    n = 12
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 4)).astype(np.float32)
    y = rng.standard_normal((n, 2, 3)).astype(np.float32)
    first = rng.standard_normal((6, 4)).astype(np.float32)

    def run(**how):
        tg.manual_seed(5)
        w = tg.Parameter(first.copy())

        def step(x, y):
            h = reshaped(tg.linear(x, w), n)
            loss = tg.mse_loss(tg.tanh(h), tg.reshape(y, h.shape) if h.ndim == 2 else y)
            loss.backward()
            return loss, h

        given = tg.Tensor(x), tg.Tensor(y)
        made = tg.compile(step, **how) if how else step
        for _ in range(2):
            w.grad = None
            loss, h = made(*given)
        if how:
            assert "tiles of 5 samples" in made.explain()
        return loss.value, h.value, w.grad

    for whole, tiled in zip(run(), run(tile=5, threads=2), strict=True):
        np.testing.assert_allclose(tiled, whole, rtol=2e-6, atol=1e-7)


def test_an_argument_may_have_several_rows_for_each_sample():
    """Labels of tokens, flat, beside sequences."""
    rng = np.random.default_rng(0)
    codes, labels = rng.integers(0, 7, (12, 5)), rng.integers(0, 7, 60)
    first = rng.standard_normal((7, 7)).astype(np.float32)

    def run(**how):
        table = tg.Parameter(first.copy())

        def step(codes, labels):
            logits = tg.reshape(tg.tanh(tg.embedding(codes, table)), (60, 7))
            loss = tg.cross_entropy(logits, labels)
            loss.backward()
            return loss

        made = tg.compile(step, **how) if how else step
        loss = made(tg.Tensor(codes), tg.Tensor(labels))
        if how:
            assert "batch of 12: tiles of 4 samples" in made.explain()
        return loss.value, table.grad

    for whole, tiled in zip(run(), run(tile=4, threads=2), strict=True):
        np.testing.assert_allclose(tiled, whole, rtol=2e-6, atol=1e-7)


def test_what_is_the_same_for_all_samples_is_computed_by_each_tile():
    """With the gradient of its parameter, and with the random numbers of the whole batch."""
    x = np.random.default_rng(0).standard_normal((16, 64)).astype(np.float32)

    def run(**how):
        tg.manual_seed(5)
        places = tg.Parameter(np.linspace(-1, 1, 64, dtype=np.float32))

        def step(x):
            shift = tg.dropout(tg.tanh(places), 0.5)
            loss = tg.mean((x + shift) ** 2)
            loss.backward()
            return loss, shift

        made = tg.compile(step, **how) if how else step
        loss, shift = made(tg.Tensor(x))
        if how:
            assert "tiles of 3 samples" in made.explain()
        return loss.value, shift.value, places.grad

    for whole, tiled in zip(run(), run(tile=3, threads=2), strict=True):
        np.testing.assert_allclose(tiled, whole, rtol=2e-6, atol=1e-7)


def test_rows_that_belong_to_no_sample_are_not_cut():
    x, _, w = leaves(4)
    three = tg.reshape(tg.linear(x, w), (-1, 2, 2))  # of two samples each
    assert "away from axis 0" in find_cut(code(tg.sum(three), x), [0]).reason


def test_arguments_that_are_differentiated_and_single_samples():
    x, y, w = leaves()
    x.requires_grad = True
    assert "is wanted" in find_cut(code(tg.mse_loss(tg.linear(x, w), y), x, y), [0, 1]).reason
    x, y, w = leaves(1)
    assert "several" in find_cut(code(tg.mse_loss(tg.linear(x, w), y), x, y), [0, 1]).reason


def test_tiles_of_two_sizes_lie_in_one_arena():
    found = []
    for n in (10, 7):  # tiles of 5 and 5; of 5 and 2
        x, y, w = leaves(n)
        step = tg.compile(
            lambda x, y, w=w: tg.mse_loss(tg.linear(x, w), y).backward(), tile=5, threads=1
        )
        step(x, y)
        found.append(step.explain().split("buffers: ")[1].split(",")[0])
    assert found[0] == found[1]


@given(st.integers(1, 200), st.integers(1, 50), st.integers(1, 8))
def test_shares_cover_the_batch_in_order(batch, tile, workers):
    tiles = [t for share in shares_of(batch, tile, workers) for t in share]
    assert [i for first, stop in tiles for i in range(first, stop)] == list(range(batch))
    assert all(stop - first <= tile for first, stop in tiles)


def test_the_size_of_a_tile_follows_the_bytes_of_its_values():
    def of(features, n, threads=1):
        spec = Spec((n, features), np.dtype(np.float32))
        made = [Instruction(spec, argument=0), Instruction(spec, Relu(), (0,), (False,))]
        return tile_size(Code(made, (1,)), n, threads)

    assert of(1, 50) == 50  # all of it fits
    many = TILE_BYTES // 4 // 100
    assert of(many, 1000) == 100 and of(many, 1000, threads=2) == 100
    assert of(many, 190) == 95  # two of one size, and not 100 and 90
    assert of(many, 250, threads=2) == 125  # one size, though a little too large
    assert of(many, 2 * 151, threads=2) == 76  # no number but 1 divides 151
    assert of(TILE_BYTES, 64) == FEWEST_SAMPLES


@pytest.mark.parametrize("ops, cut", [(1, True), (8, True), (40, False)])
def test_many_small_ops_are_not_worth_tiles(ops, cut):
    """5 MB in all."""
    spec = Spec((16, 5 * 2**20 // 4 // 16 // ops), np.dtype(np.float32))
    chain = [Instruction(spec, Relu(), (at,), (False,)) for at in range(ops)]
    assert worth_cutting(Code([Instruction(spec, argument=0), *chain], (ops,))) is cut


@pytest.mark.parametrize("reduce", [tg.mean, tg.sum])
@pytest.mark.parametrize(
    "times",
    [lambda a, c: a * 0.25, lambda a, c: -(a / c), lambda a, c: c * (2.0 * a) / 3.0],
    ids=["number", "parameter", "chain"],
)
def test_a_multiple_of_a_sum_is_cut(reduce, times):
    """Value and gradients are those of the graph, that of the factor too, in tiles that differ."""
    x, _, w = leaves(7)
    x.value = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)
    c = tg.Parameter(np.float32(1.5))

    def step(x):
        part = reduce(tg.tanh(tg.linear(x, w)))
        loss = times(part, c)
        loss.backward()
        return loss, part

    expected, gradients = [out.item() for out in step(x)], [w.grad, c.grad]
    cut = tg.compile(step, tile=3, threads=2)
    for _ in range(3):
        w.grad = c.grad = None
        np.testing.assert_allclose([out.item() for out in cut(x)], expected, rtol=1e-6)
        for found, right in zip([w.grad, c.grad], gradients, strict=True):
            assert (found is None) == (right is None)
            if right is not None:
                np.testing.assert_allclose(found, right, rtol=1e-6)
    assert "tiles of" in cut.explain()


def labelled(n=10, counted=(0, 3, 4, 9)):
    """Logits' input, and labels of which a few count: none of them in samples 5 to 8."""
    rng = np.random.default_rng(0)
    labels = np.full(n, -100)
    labels[list(counted)] = rng.integers(0, 4, len(counted))
    return rng.standard_normal((n, 3)), labels


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "loss",
    [
        tg.nn.CrossEntropyLoss(),
        lambda x, t: tg.nll_loss(tg.log_softmax(x, 1), t) * 3.0,
        tg.nn.CrossEntropyLoss(reduction="sum"),
    ],
)
def test_a_mean_over_labels_that_count_is_cut(loss, threads):
    """Tiles of other numbers of labels, and of none, add up to the mean of the whole batch."""
    w = tg.Parameter(np.random.default_rng(1).standard_normal((4, 3)))

    def step(x, t):
        y = loss(tg.linear(x, w), t)
        y.backward()
        return y

    compiled = tg.compile(step, tile=2, threads=threads)
    for counted in ((0, 3, 4, 9), (2,), tuple(range(10))):  # another divisor at each call
        found = []
        for function in (step, compiled):
            w.grad = None
            found.append((function(*labelled(counted=counted)).item(), w.grad))
        np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-12)
        np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-10, atol=1e-14)
    assert "tiles of 2 samples" in compiled.explain()


def test_a_mean_over_no_label_is_cut():
    """NaN, and gradients of 0, as of the whole batch."""
    w = tg.Parameter(np.ones((4, 3)))

    def step(x, t):
        y = tg.cross_entropy(tg.linear(x, w), t)
        y.backward()
        return y

    assert np.isnan(tg.compile(step, tile=4)(*labelled(counted=())).item()) and (w.grad == 0).all()


def test_labels_that_the_plan_makes_itself_leave_the_batch_whole():
    x, _, w = leaves()
    t = tg.Tensor(np.zeros(6, np.int64))
    loss = tg.cross_entropy(tg.linear(x, w), tg.where(tg.equal(t, 1), -100, t))
    cut = find_cut(code(loss, x, t), [0, 1])
    assert "softmax_cross_entropy divides by a number that follows from what is" in cut.reason
