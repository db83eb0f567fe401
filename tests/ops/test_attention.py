"""Attention against loops over queries, keys and features; masks, causality, nothing to see."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import numbers, seeds
from tinygraph.errors import ArgumentError, DtypeError, ShapeError

Q, K, V = (numbers(i, shape) for i, shape in enumerate(((2, 3, 4), (2, 5, 4), (2, 5, 2))))
NAMES = ("query", "key", "value", "attn_mask")


def attention(query, key, value, attn_mask=None, is_causal=False, scale=None):
    front = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    query, key, value = (np.broadcast_to(a, (*front, *a.shape[-2:])) for a in (query, key, value))
    pairs = (*front, query.shape[-2], key.shape[-2])
    mask = np.broadcast_to(0.0 if attn_mask is None else attn_mask, pairs)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
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
            column = (value[(*b, j, f)] for j in range(pairs[-1]))
            out[(*at, f)] = math.fsum(w * v for w, v in zip(weights, column, strict=True))
            out[(*at, f)] /= math.fsum(weights)
    return out


@st.composite
def problems(draw):
    """Causal, with a mask of numbers, of bools, or with none; up to two axes in front."""
    front = draw(st.sampled_from([(), (2,), (2, 1), (0,)]))
    rows, columns, e, f = (draw(st.integers(1, 3)) for _ in range(4))
    seed = draw(seeds)
    shapes = (rows, e), (columns, e), (columns, f)
    arrays = [numbers(seed + i, (*front, *shape)) for i, shape in enumerate(shapes)]
    kind = draw(st.sampled_from(["none", "causal", "added", "bool"]))
    own = draw(st.sampled_from([front, (1,) * len(front), ()]))
    mask = numbers(seed + 3, (*own, rows, columns))
    given = {"added": mask, "bool": mask > 0}.get(kind)
    kwargs = {"is_causal": True} if kind == "causal" else {}
    return Problem((*arrays, given), kwargs, None, NAMES)


def large(batch, queries, keys, e, f, **kwargs):
    shapes = (batch, queries, e), (batch, keys, e), (batch, keys, f)
    return Problem([numbers(i, s) for i, s in enumerate(shapes)], kwargs, None, NAMES[:3])


# A query that sees no key, in a tile with others.
UNSEEN = Problem((Q, K, V, np.arange(15).reshape(3, 5) > 4), {}, None, NAMES)


class TestScaledDotProductAttention(OpContract):
    function = staticmethod(tg.scaled_dot_product_attention)
    reference = staticmethod(attention)
    problems = problems()
    large_problems = (
        large(2, 33, 40, 5, 3),  # several tiles of queries and keys, the last ones in part
        large(1, 40, 33, 33, 40, is_causal=True),  # features beyond the smallest kernel
        UNSEEN,
    )
    claims = [
        (Problem((Q, K, V), {}, (True, True, True)), "map"),
        (Problem((Q, K, V), {}, (True, False, False)), None),
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
        Bad("gqa", (Q, K, V), {"enable_gqa": True}, ArgumentError, "enable_gqa"),
        Bad("scale", (Q, K, V), {"scale": math.nan}, ArgumentError, "scale"),
        Bad("dropout", (Q, K, V), {"dropout_p": 2.0}, ArgumentError, "dropout_p"),
        Bad("integers", (Q.astype(int), K, V), {}, DtypeError, "float32 or float64"),
        Bad("dtypes", (Q, K, V.astype("f4")), {}, DtypeError, "expected float32"),
    ]

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

    def test_dropped_weights_are_scaled(self):
        tg.manual_seed(0)
        q, k, v = tg.zeros(1, 2000, 1), tg.zeros(1, 2, 1), tg.ones(1, 2, 1)
        y = tg.scaled_dot_product_attention(q, k, v, dropout_p=0.5).numpy()
        assert set(np.unique(y)) == {0, 1, 2} and y.mean() == pytest.approx(1, abs=0.1)

    @pytest.mark.parametrize("features", [65, 129])
    def test_features_beyond_the_kernels(self, kernel_device, features):
        """One by one where tiles have no room."""
        args = [numbers(i, (1, 3, features)) for i in range(3)]
        y = tg.scaled_dot_product_attention(*[tg.Tensor(a, device=kernel_device) for a in args])
        np.testing.assert_allclose(y.numpy(), attention(*args), rtol=1e-10)

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
