"""Multi-head attention and encoder layers against loops over heads; masks, layouts, copies."""

import copy
import itertools

import numpy as np
import pytest

import tinygraph as tg
from tests.ops.test_attention import attention
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, ShapeError


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def expected(layer, q, k, v, mask=None):
    """(N, L, E) by heads, one after the other; True in a mask (N, H, L, S) takes no part."""
    own, e = layer.state_dict(), layer.embed_dim
    weights = (
        np.split(own["in_proj_weight"], 3)
        if "in_proj_weight" in own
        else [own[f"{side}_proj_weight"] for side in "qkv"]
    )
    biases = np.split(own.get("in_proj_bias", np.zeros(3 * e)), 3)
    q, k, v = (x @ w.T + b for x, w, b in zip((q, k, v), weights, biases, strict=True))
    d, heads = e // layer.num_heads, []
    for h in range(layer.num_heads):
        part = [x[..., h * d : (h + 1) * d] for x in (q, k, v)]
        allowed = None if mask is None else ~mask[:, h]
        heads.append(attention(*part, allowed))
    return np.concatenate(heads, -1) @ own["out_proj.weight"].T + own.get("out_proj.bias", 0)


@pytest.mark.parametrize(
    ("first", "bias", "features"),
    list(itertools.product((True, False), (True, False), (None, 3))),
)
def test_heads_equal_loops(first, bias, features):
    layer = nn.MultiheadAttention(
        6, 2, bias=bias, kdim=features, vdim=features, batch_first=first, dtype="float64"
    )
    q, k, v = numbers(2, 3, 6), numbers(2, 4, features or 6, seed=1), numbers(2, 4, features or 6)
    given = (q, k, v) if first else [x.swapaxes(0, 1) for x in (q, k, v)]
    result = expected(layer, q, k, v)
    for need in (True, False):
        y, weights = layer(*given, need_weights=need)
        y = y.numpy() if first else y.numpy().swapaxes(0, 1)
        np.testing.assert_allclose(y, result, rtol=1e-10, atol=1e-12)
    assert weights is None
    _, weights = layer(*given)
    assert weights.shape == (2, 3, 4)
    np.testing.assert_allclose(weights.numpy().sum(-1), 1, rtol=1e-12)
    assert layer(*given, average_attn_weights=False)[1].shape == (2, 2, 3, 4)


def test_masks_leave_keys_out_where_they_are_true():
    layer = nn.MultiheadAttention(6, 2, batch_first=True, dtype="float64")
    x = numbers(2, 4, 6)
    pairs, padding = np.triu(np.ones((4, 4), bool), 1), np.zeros((2, 4), bool)
    padding[1, 2:] = True
    both = np.broadcast_to(pairs[None, None] | padding[:, None, None], (2, 2, 4, 4))
    each = numbers(4, 4, 4) > 1
    each[..., 0] = False
    cases = [
        ({"attn_mask": pairs}, np.broadcast_to(pairs, both.shape)),
        ({"key_padding_mask": padding, "attn_mask": pairs}, both),
        ({"attn_mask": each}, each.reshape(2, 2, 4, 4)),
        ({"is_causal": True}, np.broadcast_to(pairs, both.shape)),
        ({"attn_mask": np.where(pairs, -np.inf, 0.0)}, np.broadcast_to(pairs, both.shape)),
    ]
    for options, mask in cases:
        for need in (True, False):
            y, _ = layer(x, x, x, need_weights=need, **options)
            np.testing.assert_allclose(y.numpy(), expected(layer, x, x, x, mask), rtol=1e-9)


def test_a_single_sample_and_layouts():
    layer = nn.MultiheadAttention(6, 3)
    x = numbers(4, 2, 6).astype("f4")
    y, weights = layer(x, x, x)
    one, of_one = layer(x[:, 1], x[:, 1], x[:, 1])
    np.testing.assert_allclose(one.numpy(), y.numpy()[:, 1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(of_one.numpy(), weights.numpy()[1], rtol=1e-5)


@pytest.mark.parametrize("norm_first", [True, False])
def test_an_encoder_layer_by_its_formula(norm_first):
    layer = nn.TransformerEncoderLayer(
        4, 2, 5, 0.0, "gelu", batch_first=True, norm_first=norm_first, dtype="float64"
    )
    for name, p in layer.named_parameters():
        p.value = numbers(*p.shape, seed=len(name))
    x, own = numbers(2, 3, 4), layer.state_dict()

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return scaled * own[f"{name}.weight"] + own[f"{name}.bias"]

    def attend(x):
        return expected(layer.self_attn, x, x, x)

    def feed(x):
        inner = tg.gelu(x @ own["linear1.weight"].T + own["linear1.bias"]).numpy()
        return inner @ own["linear2.weight"].T + own["linear2.bias"]

    if norm_first:
        y = x + attend(norm(x, "norm1"))
        y = y + feed(norm(y, "norm2"))
    else:
        y = norm(x + attend(x), "norm1")
        y = norm(y + feed(y), "norm2")
    np.testing.assert_allclose(layer(x).numpy(), y, rtol=1e-9)


def test_the_layers_of_an_encoder_are_copies():
    layer = nn.TransformerEncoderLayer(4, 2, 5)
    encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(4))
    first, second = encoder.layers
    assert first is not layer and first.linear1.weight is not second.linear1.weight
    np.testing.assert_array_equal(first.linear1.weight.value, second.linear1.weight.value)
    assert next(encoder.named_parameters())[0] == "layers.0.self_attn.in_proj_weight"
    first.linear1.weight.value[...] = 0
    assert (second.linear1.weight.value != 0).any() and (layer.linear1.weight.value != 0).any()


def test_dropout_only_in_training():
    layer, x = nn.TransformerEncoderLayer(4, 2, 8, 0.5), np.ones((3, 2, 4), "f4")
    assert (layer(x).value != layer(x).value).any()
    layer.eval()
    np.testing.assert_array_equal(layer(x).value, layer(x).value)
    attends = nn.MultiheadAttention(4, 2, dropout=0.5)
    assert (attends(x, x, x)[0].value != attends(x, x, x)[0].value).any()


def test_a_deep_copy_stands_alone(device):
    network = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).to(device)
    network[0].weight.grad = network[0].weight.device.from_numpy(np.ones((2, 2), "f4"))
    network[0].bias.requires_grad = False
    other = copy.deepcopy(network)
    for (name, a), (_, b) in zip(
        network.state_dict().items(), other.state_dict().items(), strict=True
    ):
        np.testing.assert_array_equal(a, b, err_msg=name)
    weight = other[0].weight
    assert type(weight) is nn.Parameter and str(weight.device) == device and weight.name
    assert weight.grad is not network[0].weight.grad and not other[0].bias.requires_grad
    weight.value = np.zeros((2, 2), "f4")
    assert network[0].weight.numpy().any() and type(other[1].running_mean) is nn.Buffer
    shared = nn.Sequential(network[0], network[0])
    twice = copy.deepcopy(shared)
    assert twice[0] is twice[1]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: nn.MultiheadAttention(6, 4), ArgumentError, "num_heads: .*divides 6"),
        (lambda: nn.MultiheadAttention(6, 2, add_zero_attn=True), ArgumentError, "add_zero_attn"),
        (lambda: nn.MultiheadAttention(6, 2, kdim=0), ArgumentError, "kdim"),
        (lambda: nn.TransformerEncoderLayer(6, 2, activation="elu"), ArgumentError, "activation"),
        (lambda: nn.MultiheadAttention(2, 1)(*[np.ones(2, "f4")] * 3), ShapeError, "query"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_sample_without_keys_is_zero_with_weights_and_without():
    layer = nn.MultiheadAttention(4, 2, batch_first=True, bias=False)
    x, padding = (
        tg.tensor(numbers(2, 3, 4).astype("f4"), requires_grad=True),
        np.zeros((2, 3), bool),
    )
    padding[0] = True
    for need in (True, False):
        y, weights = layer(x, x, x, padding, need_weights=need)
        assert not y.numpy()[0].any() and y.numpy()[1].any()
        y.backward(np.ones(y.shape))
        assert np.isfinite(x.grad).all()
    assert weights is None
