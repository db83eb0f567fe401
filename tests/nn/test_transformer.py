"""Decoder layers against their formula, and encoders and decoders against PyTorch where it is."""

import itertools

import numpy as np
import pytest

import tinygraph as tg
from tests.nn.test_attention import expected, numbers
from tinygraph import nn
from tinygraph.base.errors import ArgumentError

CAUSAL = np.triu(np.ones((3, 3), bool), 1)
HIDDEN = np.array([[False, False, False, True], [False, False, True, True]])  # keys to see not


def decoder_layer(norm_first, **options):
    layer = nn.TransformerDecoderLayer(
        4, 2, 5, 0.0, "gelu", batch_first=True, norm_first=norm_first, dtype="float64", **options
    )
    for i, p in enumerate(layer.parameters()):
        p.value = numbers(*p.shape, seed=i)
    return layer


def by_formula(layer, x, memory):
    """The three parts one after the other: causal attention, attention to memory, linear layers."""
    own = layer.state_dict()
    masks = CAUSAL, np.broadcast_to(HIDDEN[:, None], (2, 3, 4))
    pair, hidden = (
        np.broadcast_to(m[:, None] if m.ndim == 3 else m, (2, 2, *m.shape[-2:])) for m in masks
    )

    def norm(x, number):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return scaled * own[f"norm{number}.weight"] + own[f"norm{number}.bias"]

    def feed(x):
        inner = tg.gelu(x @ own["linear1.weight"].T + own["linear1.bias"]).numpy()
        return inner @ own["linear2.weight"].T + own["linear2.bias"]

    parts = [
        lambda x: expected(layer.self_attn, x, x, x, pair),
        lambda x: expected(layer.multihead_attn, x, memory, memory, hidden),
        feed,
    ]
    for number, part in enumerate(parts, start=1):
        x = x + part(norm(x, number)) if layer.norm_first else norm(x + part(x), number)
    return x


@pytest.mark.parametrize("norm_first", [True, False])
def test_a_decoder_layer_by_its_formula(norm_first):
    layer, x, memory = decoder_layer(norm_first), numbers(2, 3, 4), numbers(2, 4, 4, seed=1)
    result = by_formula(layer, x, memory)
    for causal in ({"tgt_mask": CAUSAL}, {"tgt_is_causal": True}):
        y = layer(x, memory, memory_key_padding_mask=HIDDEN, **causal)
        np.testing.assert_allclose(y.numpy(), result, rtol=1e-9)
    last = layer(x[:, :2], memory, memory_key_padding_mask=HIDDEN, tgt_is_causal=True)
    np.testing.assert_allclose(last.numpy(), result[:, :2], rtol=1e-9)  # what follows is not seen


def test_a_decoder_is_its_layers_and_a_norm():
    layer = decoder_layer(False)
    decoder = nn.TransformerDecoder(layer, 2, nn.LayerNorm(4, dtype="float64"))
    first, second = decoder.layers
    second.linear1.bias.value[...] += 1.0
    x, memory = numbers(2, 3, 4), numbers(2, 4, 4, seed=1)
    masks = {"tgt_mask": CAUSAL, "memory_key_padding_mask": HIDDEN}
    y = by_formula(second, by_formula(first, x, memory), memory)
    y = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(decoder(x, memory, **masks).numpy(), y, rtol=1e-9)
    assert (layer.linear1.bias.value != second.linear1.bias.value).all()  # a copy


def test_names_of_parameters():
    """In PyTorch's order, in which optimisers and vectors of parameters have them."""
    names = [name for name, _ in nn.TransformerDecoderLayer(4, 2, 5).named_parameters()]
    attention = ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]
    expected = [f"{part}.{name}" for part in ("self_attn", "multihead_attn") for name in attention]
    for part in ("linear1", "linear2", "norm1", "norm2", "norm3"):
        expected += [f"{part}.weight", f"{part}.bias"]
    assert names == expected


def test_an_activation_that_is_not_known():
    with pytest.raises(ArgumentError, match="TransformerDecoderLayer: activation"):
        nn.TransformerDecoderLayer(4, 2, activation="elu")


# ---- PyTorch ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "first", "norm_first", "bias"),
    list(itertools.product(["Encoder", "Decoder"], (True, False), (True, False), (True, False))),
)
def test_numbers_and_gradients_are_those_of_pytorch(kind, first, norm_first, bias):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    options = {"batch_first": first, "norm_first": norm_first, "bias": bias}

    def stack(of):
        layer = getattr(of, f"Transformer{kind}Layer")(4, 2, 5, 0.0, **options)
        quiet = {"enable_nested_tensor": False} if kind == "Encoder" else {}
        return getattr(of, f"Transformer{kind}")(layer, 2, of.LayerNorm(4), **quiet)

    theirs, ours = stack(torch.nn).double(), stack(nn).double()
    state = {name: value.numpy() for name, value in theirs.state_dict().items()}
    assert list(state) == list(ours.state_dict())
    state = {name: numbers(*a.shape, seed=i) for i, (name, a) in enumerate(state.items())}
    ours.load_state_dict(state)
    theirs.load_state_dict({name: torch.tensor(a) for name, a in state.items()})
    x, memory = numbers(2, 3, 4), numbers(2, 4, 4, seed=1)
    given = [x] if kind == "Encoder" else [x, memory]
    given = given if first else [a.swapaxes(0, 1).copy() for a in given]
    masks = {"mask": CAUSAL}
    if kind == "Decoder":
        masks = {"tgt_mask": CAUSAL, "memory_key_padding_mask": HIDDEN}
    y = ours(*given, **masks)
    reference = theirs(
        *map(torch.tensor, given), **{name: torch.tensor(mask) for name, mask in masks.items()}
    )
    np.testing.assert_allclose(y.numpy(), reference.detach().numpy(), rtol=1e-9, atol=1e-12)
    upstream = numbers(*y.shape, seed=2)
    y.backward(upstream)
    reference.backward(torch.tensor(upstream))
    for (name, p), (_, q) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        np.testing.assert_allclose(p.grad, q.grad.numpy(), rtol=1e-7, atol=1e-9, err_msg=name)
