"""Attention against loops over queries, keys and features; masks, causality, nothing to see.

What dropout leaves is known to the loops from numpy's own Philox: word i belongs to pair i.
"""

import functools
import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import numbers, seeds
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.engine.memory import Memory
from tinygraph.engine.random import Words

Q, K, V = (numbers(i, shape) for i, shape in enumerate(((2, 3, 4), (2, 5, 4), (2, 5, 2))))
NAMES = ("query", "key", "value", "attn_mask")
SEED = 20170612


@functools.wraps(tg.scaled_dot_product_attention)
def seeded_attention(*args, **kwargs):
    """The same weights are dropped in each call, so that calls can be compared."""
    tg.manual_seed(SEED)
    return tg.scaled_dot_product_attention(*args, **kwargs)


def attention(query, key, value, attn_mask=None, is_causal=False, scale=None, dropout_p=0.0):
    front = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    query, key, value = (np.broadcast_to(a, (*front, *a.shape[-2:])) for a in (query, key, value))
    pairs = (*front, query.shape[-2], key.shape[-2])
    mask = np.broadcast_to(0.0 if attn_mask is None else attn_mask, pairs)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    kept = np.reshape(reference.kept_by_dropout(math.prod(pairs), dropout_p, SEED), pairs)
    out = np.zeros((*pairs[:-1], value.shape[-1]))
    for at in np.ndindex(pairs[:-1]):
        *b, i = at
        scores = []
        for j in range(pairs[-1]):
            product = sum(p * q for p, q in zip(query[at], key[(*b, j)], strict=True))
            allowed = not (is_causal and j > i) and mask[(*at, j)] is not np.False_
            extra = 0.0 if mask.dtype == bool else mask[(*at, j)]
            scores.append(product * factor + extra if allowed else -math.inf)
        most = max(scores, default=-math.inf)
        if most == -math.inf:
            continue
        weights = [math.exp(s - most) for s in scores]
        for f in range(out.shape[-1]):
            column = (value[(*b, j, f)] * kept[(*at, j)] for j in range(pairs[-1]))
            out[(*at, f)] = math.fsum(w * v for w, v in zip(weights, column, strict=True))
            out[(*at, f)] /= math.fsum(weights) * (1 - dropout_p)
    return out


@st.composite
def problems(draw):
    """Causal, with a mask of numbers, of bools, or with none; up to three axes in front."""
    front = draw(st.sampled_from([(), (2,), (2, 1), (2, 3), (0,), (1, 2, 2)]))
    rows, columns, e, f = (draw(st.integers(1, 3)) for _ in range(4))
    seed = draw(seeds)
    shapes = (rows, e), (columns, e), (columns, f)
    arrays = [numbers(seed + i, (*front, *shape)) for i, shape in enumerate(shapes)]
    kind = draw(st.sampled_from(["none", "causal", "added", "bool"]))
    pairs = (*front, rows, columns)
    own = [draw(st.sampled_from([1, n])) for n in pairs[:-1]][draw(st.integers(0, len(front))) :]
    own.append(columns)  # what all keys of a query share would have no influence
    mask = numbers(seed + 3, own)
    given = {"added": mask, "bool": mask > 0}.get(kind)
    kwargs = {"is_causal": True} if kind == "causal" else {}
    if draw(st.booleans()):
        kwargs["dropout_p"] = draw(st.sampled_from([0.25, 0.5]))
    return Problem((*arrays, given), kwargs, None, NAMES)


def large(front, queries, keys, e, f, mask=None, **kwargs):
    shapes = (*front, queries, e), (*front, keys, e), (*front, keys, f)
    given = None if mask is None else numbers(3, mask)
    arrays = [numbers(i, s) for i, s in enumerate(shapes)]
    return Problem([*arrays, given], kwargs, None, NAMES)


# A query that sees no key, in a tile with others.
UNSEEN = Problem((Q, K, V, np.arange(15).reshape(3, 5) > 4), {}, None, NAMES)


class TestScaledDotProductAttention(OpContract):
    function = staticmethod(seeded_attention)
    reference = staticmethod(attention)
    problems = problems()
    large_problems = (
        large((2,), 33, 40, 5, 3),  # several tiles of queries and keys, the last ones in part
        large((1,), 40, 33, 33, 40, is_causal=True),  # features beyond the smallest kernel
        large((2,), 35, 37, 3, 2, dropout_p=0.3),
        large((1,), 34, 39, 2, 2, is_causal=True, dropout_p=0.5),
        large((2, 2), 34, 35, 2, 2, mask=(2, 1, 35)),  # of each head, for all samples and queries
        large((2, 2), 34, 18, 2, 2, mask=(2, 1, 34, 18), dropout_p=0.25),
        large((3,), 17, 18, 2, 2, mask=(17, 18)),
        UNSEEN,
    )
    claims = [
        (Problem((Q, K, V), {}, (True, True, True)), "map"),
        (Problem((Q, K, V), {}, (True, False, False)), None),
        (Problem((Q[:, None], K[:, None], V[:, None]), {}, (True, True, True)), "map"),
        (Problem((Q, K, V, numbers(3, (2, 1, 5))), {}, (True,) * 4), "map"),
        (Problem((Q, K, V, numbers(3, (2, 1, 5))), {}, (True, True, True, False)), None),
        (Problem((Q, K, V, numbers(3, (3, 5))), {}, (True, True, True, False)), "map"),
        (Problem((Q[0], K[0], V[0]), {}, (True, True, True)), None),  # rows see one another
    ]
    conventions = [
        Convention(
            "no key takes part",
            (Q[:, :1], K, V, np.zeros((1, 5), bool)),
            value=np.zeros((2, 1, 2)),
        ),
        Convention("no key", (Q, K[:, :0], V[:, :0]), value=np.zeros((2, 3, 2))),
    ]
    bad_input = [
        Bad("features", (Q, K[..., 1:], V), {}, ShapeError, "key: expected 4 features, as query"),
        Bad("rows", (Q, K, V[:, 1:]), {}, ShapeError, "value: expected 5 rows, one for each key"),
        Bad("one axis", (Q[0, 0], K, V), {}, ShapeError, "query: expected at least two axes"),
        Bad("batch", (Q, K[:1].repeat(3, 0), V), {}, ShapeError, "(2,)"),
        Bad("mask", (Q, K, V, np.ones((5, 5), bool)), {}, ShapeError, "(5, 5) and (2, 3, 5)"),
        Bad("mask", (Q, K, V, np.ones((2, 1, 1, 5), bool)), {}, ShapeError, "attn_mask: expected"),
        Bad("both", (Q, K, V, np.ones((3, 5), bool), 0.0, True), {}, ArgumentError, "is_causal"),
        Bad(
            "no heads", (Q[0], K[0], V[0]), {"enable_gqa": True}, ShapeError, "key: expected heads"
        ),
        Bad("heads", (Q, K[:0], V), {"enable_gqa": True}, ShapeError, "divide those of query"),
        Bad("scale", (Q, K, V), {"scale": math.nan}, ArgumentError, "scale"),
        Bad("dropout", (Q, K, V), {"dropout_p": 2.0}, ArgumentError, "dropout_p"),
        Bad("integers", (Q.astype(int), K, V), {}, DtypeError, "float32 or float64"),
        Bad("dtypes", (Q, K, V.astype("f4")), {}, DtypeError, "expected float32"),
    ]

    def test_queries_that_share_a_head(self, device):
        q, k, v = numbers(0, (2, 6, 3, 2)), numbers(1, (2, 3, 4, 2)), numbers(2, (2, 2, 4, 3))
        leaves = [tg.Tensor(a, device=device, requires_grad=True) for a in (q, k, v)]
        y = tg.scaled_dot_product_attention(*leaves, enable_gqa=True)
        gy = numbers(3, y.shape)
        y.backward(gy)
        sums = [np.zeros(a.shape) for a in (q, k, v)]
        for head in range(6):
            heads = head, head // 2, head // 3
            parts = zip((q, k, v), heads, strict=True)
            alone = [tg.Tensor(a[:, h], requires_grad=True) for a, h in parts]
            expected = tg.scaled_dot_product_attention(*alone)
            np.testing.assert_allclose(y.numpy()[:, head], expected.value, rtol=1e-6, atol=1e-12)
            expected.backward(gy[:, head])
            for total, h, leaf in zip(sums, heads, alone, strict=True):
                total[:, h] += leaf.grad
        for leaf, total in zip(leaves, sums, strict=True):
            np.testing.assert_allclose(leaf.device.to_numpy(leaf.grad), total, 1e-6, 1e-12)

    def test_scores_beyond_what_exp_can_hold(self, device):
        q, k = tg.Tensor([[1e4]], device=device), tg.Tensor([[1.0], [2.0]], device=device)
        y = tg.scaled_dot_product_attention(q, k, tg.Tensor([[5.0], [7.0]], device=device))
        assert y.numpy().tolist() == [[7.0]]

    def test_the_first_queries_of_a_causal_one_see_no_later_key(self, device):
        """A NaN there has no influence, though it is read."""
        v = V[:, :3].copy()
        expected = attention(Q, K[:, :3], v, is_causal=True)
        k = K[:, :3].copy()
        k[:, 2] = np.nan
        args = [tg.Tensor(a, device=device) for a in (Q, k, v)]
        y = tg.scaled_dot_product_attention(*args, is_causal=True).numpy()
        np.testing.assert_allclose(y[:, :2], expected[:, :2], rtol=1e-6)
        assert np.isnan(y[:, 2]).all()

    def test_where_no_key_takes_part_nothing_flows(self, device):
        args = [tg.Tensor(a, requires_grad=True, device=device) for a in (Q, K, V)]
        mask = np.ones((3, 5), bool)
        mask[1] = False
        tg.scaled_dot_product_attention(*args, mask).backward(np.ones((2, 3, 2)))
        assert (args[0].grad[:, 1] == 0).all() and all(np.isfinite(a.grad).all() for a in args)

    def test_a_learnt_mask_gets_its_gradient(self):
        mask = np.zeros((3, 5))
        report = tg.testing.gradcheck(tg.scaled_dot_product_attention, [Q, K, V, mask])
        assert report.verdict == "pass"

    @pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
    def test_how_many_weights_are_kept(self, p):
        """A binomial count, as of dropout; the values tell keys apart."""
        n = 200
        q, k, v = tg.zeros(1, n, 1), tg.zeros(1, n, 1), tg.eye(n).reshape(1, n, n)
        weights = seeded_attention(q, k, v, dropout_p=p).numpy()
        kept = np.count_nonzero(weights)
        assert abs(kept - n * n * (1 - p)) < 5 * np.sqrt(n * n * p * (1 - p))
        np.testing.assert_allclose(weights[weights != 0], 1 / n / (1 - p), rtol=1e-5)

    def test_each_evaluation_draws_anew_and_a_seed_repeats(self, device):
        nodes = [tg.Tensor(a, requires_grad=True, device=device) for a in (Q, K, V)]
        graph = tg.Graph(tg.scaled_dot_product_attention(*nodes, dropout_p=0.5).sum())

        def run():
            tg.manual_seed(3)
            found = []
            for _ in range(3):
                for x in nodes:
                    x.grad = None
                found.append(graph.forward()[0].item())
                graph.backward()
                found += [float(np.abs(x.device.to_numpy(x.grad)).sum()) for x in nodes]
            return found

        first = run()
        assert len(set(first)) == len(first) and run() == first

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_every_device_and_dtype_drops_the_same_weights(self, device, dtype):
        """Rows of the identity as values show which weights there are."""
        n = 37
        q, k = (tg.Tensor(np.zeros((2, n, 1), dtype), device=device) for _ in range(2))
        v = tg.Tensor(np.tile(np.eye(n, dtype=dtype), (2, 1, 1)), device=device)
        y = seeded_attention(q, k, v, dropout_p=0.4).numpy()
        kept = np.reshape(reference.kept_by_dropout(2 * n * n, 0.4, SEED), y.shape)
        np.testing.assert_array_equal(y != 0, kept)

    def test_a_graph_that_is_replayed_draws_from_another_start(self):
        """Seed and stream are then numbers in memory, and those of the launch count from there."""
        given = Words(9, 2, 0, np.array([SEED, 3], np.uint64)), Words(SEED, 5)
        found = []
        for words in given:
            nodes = [tg.Tensor(a, requires_grad=True, device="emulator") for a in (Q, K, V)]
            with mock.patch.object(Memory, "words", lambda *_, words=words: words):
                y = tg.scaled_dot_product_attention(*nodes, dropout_p=0.5)
            y.backward(np.ones(y.shape))
            found.append([y.numpy(), *(x.grad for x in nodes)])
        for a, b in zip(*found, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_a_share_of_1_gives_zeros(self, device):
        nodes = [tg.Tensor(a, requires_grad=True, device=device) for a in (Q, K, V)]
        y = tg.scaled_dot_product_attention(*nodes, dropout_p=1.0)
        y.backward(np.ones(y.shape))
        assert not y.numpy().any() and not any(np.any(x.device.to_numpy(x.grad)) for x in nodes)

    def test_what_all_keys_of_a_query_share_has_no_influence(self, device):
        """A mask of one column, and one of a single number: gradients are 0 but for rounding."""
        args = [tg.Tensor(numbers(i, (2, 18, 2)), device=device) for i in range(3)]
        expected = tg.scaled_dot_product_attention(*args).numpy()
        for shape in ((18, 1), (1, 1), (2, 18, 1)):
            mask = tg.Tensor(numbers(3, shape), requires_grad=True, device=device)
            y = tg.scaled_dot_product_attention(*args, mask)
            np.testing.assert_allclose(y.numpy(), expected, rtol=1e-10)
            y.backward(numbers(4, y.shape))
            np.testing.assert_allclose(mask.device.to_numpy(mask.grad), np.zeros(shape), atol=1e-12)

    def test_dropout_keeps_a_bit_for_each_weight_at_most(self, device):
        nodes = [tg.ones(2, 64, 1, requires_grad=True, device=device) for _ in range(3)]
        y = tg.scaled_dot_product_attention(*nodes, dropout_p=0.5)
        kept = [a for a in y.saved if hasattr(a, "nbytes")]
        assert kept and max(a.nbytes for a in kept) <= 2 * 64 * 64 / 8

    def test_a_plan_s_tiles_drop_what_the_whole_batch_does(self):
        """Samples and heads in front; weights of a tile have the words of their own samples."""
        arrays = [numbers(i, (8, 2, 5, 3)) for i in range(3)]

        def loss(q, k, v):
            return tg.scaled_dot_product_attention(q, k, v, dropout_p=0.5)

        compiled = tg.compile(loss, tile=3, threads=2)
        tg.manual_seed(5)
        expected = [loss(*map(tg.Tensor, arrays)).numpy() for _ in range(3)]
        tg.manual_seed(5)
        found = [compiled(*arrays).numpy() for _ in range(3)]
        assert "tiles of 3 samples" in compiled.explain()
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert (found[0] != found[1]).any()

    def test_a_plan_on_kernels_draws_anew(self):
        arrays = [tg.Tensor(a, requires_grad=True, device="emulator") for a in (Q, K, V)]

        def loss(*nodes):
            return tg.scaled_dot_product_attention(*nodes, dropout_p=0.5).sum()

        runs = []
        for function in (loss, tg.compile(loss)):
            tg.manual_seed(5)
            runs.append([])
            for _ in range(3):
                for x in arrays:
                    x.grad = None
                y = function(*arrays)
                y.backward()
                runs[-1].append([y.item(), *(float(x.grad.sum()) for x in arrays)])
        np.testing.assert_allclose(runs[0], runs[1], rtol=1e-10)
        assert runs[0][0] != runs[0][1]

    @pytest.mark.second
    @pytest.mark.parametrize(
        ("features", "dtype"), [(129, "f4"), (100, "f8"), (257, "f4"), (129, "f8")]
    )
    def test_wide_heads(self, kernel_device, features, dtype):
        """The widest kernels, and one by one where tiles have no room; one query sees nothing."""
        args = [numbers(i, (2, 11, features)).astype(dtype) for i in range(3)]
        mask = np.arange(121).reshape(11, 11) > 10
        nodes = [tg.Tensor(a, device=kernel_device, requires_grad=True) for a in args]
        others = [tg.Tensor(a.astype("f8"), requires_grad=True) for a in args]
        y, z = (tg.scaled_dot_product_attention(*x, mask) for x in (nodes, others))
        tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == "f4" else {"rtol": 1e-9, "atol": 1e-12}
        np.testing.assert_allclose(y.numpy(), attention(*args, mask), **tolerance)
        upstream = numbers(5, y.shape)
        y.backward(upstream.astype(dtype))
        z.backward(upstream)
        for x, other in zip(nodes, others, strict=True):
            np.testing.assert_allclose(x.device.to_numpy(x.grad), other.grad, **tolerance)

    def test_no_array_of_pairs_is_made_by_kernels(self):
        """Of 4 million pairs, 16 MB: what kernels write is counted."""
        graph = tg.Graph(
            tg.scaled_dot_product_attention(
                *[
                    tg.Tensor(np.zeros((1, 2048, 8), "f4"), requires_grad=True, name=n)
                    for n in "qkv"
                ]
            )
        )
        table = graph.kernel_table()
        assert max(row.bytes for row in table.rows) < 2048 * 2048
