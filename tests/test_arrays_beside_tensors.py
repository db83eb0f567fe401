"""An array that comes with a tensor goes to the tensor's device; so does what a module is given.

Oracle: the same call on the cpu.
"""

import numpy as np
import pytest

import tinygraph as tg
from tests.nn.test_layers import LAYERS, LOSSES
from tests.onnx.test_ops import ALL, outputs_of, problems
from tinygraph import nn
from tinygraph.base.errors import DeviceError
from tinygraph.testing.problem import cast

RNG = np.random.default_rng(3)


def numbers(*shape):
    return RNG.standard_normal(shape).astype("f4")


def same(found, wanted):
    for a, b in zip(outputs_of(found), outputs_of(wanted), strict=True):
        assert str(a.device) == "emulator"
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-4, 1e-5)


def there(array):
    return tg.Tensor(array, device="emulator")


@pytest.mark.parametrize("name", ALL)
def test_one_operand_of_a_function_is_there(name):
    contract, problem = ALL[name], max(problems(name, 4), key=lambda p: len(p.arrays))
    arrays = [np.asarray(cast(a, np.float32)) for a in problem.arrays]
    wanted = contract.apply(problem, [tg.Tensor(a) for a in arrays])
    for k in range(len(arrays)) if len(arrays) > 1 else ():
        mixed = [there(a) if i == k else a for i, a in enumerate(arrays)]
        same(contract.apply(problem, mixed), wanted)


@pytest.mark.parametrize("row", [r for r in LAYERS if list(r[0].parameters())], ids=lambda r: r[0])
def test_a_layer_is_given_an_array(row):
    layer, array, _ = row
    layer.to(dtype="float32")
    wanted = layer(array.astype("f4"))
    try:
        layer.to("emulator")
        same(layer(array.astype("f4")), wanted)
        same(layer(array.astype("f4").tolist()), wanted)
        same(layer(there(array.astype("f4"))), wanted)
        with pytest.raises(DeviceError, match="all on"):  # a tensor is where it was put
            layer(tg.Tensor(array.astype("f4")))
    finally:
        layer.to("cpu")


@pytest.mark.parametrize("row", LOSSES, ids=lambda r: r[0].__name__)
def test_one_operand_of_a_loss_is_there(row):
    make, x, y, *_ = row
    x, y = x.astype("f4"), y.astype("f4") if y.dtype.kind == "f" else y
    wanted = make()(x, y)
    same(make()(there(x), y), wanted)
    same(make()(x, there(y)), wanted)


X, LABELS, W = numbers(7, 5), np.arange(7) % 5, numbers(5) ** 2
SHARES = (numbers(7, 5) > 0).astype("f4")


@pytest.mark.parametrize(
    ("make", "labels"),
    [
        (lambda: nn.CrossEntropyLoss(W), LABELS),
        (lambda: nn.CrossEntropyLoss(W, label_smoothing=0.1, ignore_index=2), LABELS),
        (lambda: nn.CrossEntropyLoss(W, label_smoothing=0.1), SHARES),
        (lambda: nn.NLLLoss(W), LABELS),
        (lambda: nn.BCEWithLogitsLoss(W, pos_weight=W), SHARES),
        (lambda: nn.BCEWithLogitsLoss(pos_weight=W), SHARES),
    ],
)
def test_weights_of_classes(make, labels):
    wanted = make()(X, labels)
    loss = make().to("emulator")
    same(loss(X, labels), wanted)
    same(loss(there(X), labels), wanted)
    same(loss(X, there(labels)), wanted)
    with pytest.raises(DeviceError, match=r"weight: expected one on emulator, got on cpu"):
        make()(there(X), labels)


@pytest.mark.parametrize("padding_idx", [None, 0, -1])
@pytest.mark.parametrize("indices", [np.array([[0, 4], [2, 1]]), [[0, 4]], 4, np.int32(0)])
def test_embeddings(indices, padding_idx):
    layer = nn.Embedding(5, 3, padding_idx)
    table, indices_there = layer.weight.numpy().copy(), there(np.asarray(indices))
    wanted = layer(indices)
    wanted.sum().backward()
    gradient = layer.weight.grad
    layer.to("emulator").zero_grad()
    for given in (indices, indices_there):
        layer.zero_grad()
        y = layer(given)
        same(y, wanted)
        y.sum().backward()
        np.testing.assert_array_equal(layer.weight.device.to_numpy(layer.weight.grad), gradient)
    same(tg.embedding(indices_there, table, padding_idx), wanted)
    same(nn.functional.embedding(indices, layer.weight, padding_idx), wanted)


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_recurrent_layers(kind):
    layer, x, h = kind(3, 4, bidirectional=True), numbers(5, 2, 3), numbers(2, 2, 4)
    cell, one = {nn.RNN: nn.RNNCell, nn.GRU: nn.GRUCell, nn.LSTM: nn.LSTMCell}[kind](3, 4), h[0]
    state, alone = ((h, h), (one, one)) if kind is nn.LSTM else (h, one)
    single = tuple(s[:, 0] for s in state) if kind is nn.LSTM else h[:, 0]
    calls = [
        lambda: layer(x)[0],
        lambda: layer(x, state)[0],
        lambda: layer(x[:, 0], single)[0],
        lambda: outputs_of(cell(x[0]))[0],
        lambda: outputs_of(cell(x[0], alone))[0],
    ]
    wanted = [call() for call in calls]
    layer.to("emulator")
    cell.to("emulator")
    for call, y in zip(calls, wanted, strict=True):
        same(call(), y)
    same(layer(there(x), state)[0], wanted[1])


def test_attention_and_transformers():
    x, keep = numbers(2, 3, 4), np.triu(np.ones((3, 3), bool), 1)
    none = np.zeros((2, 3), bool)
    attention = nn.MultiheadAttention(4, 2, batch_first=True).eval()
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 1).eval()
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8, batch_first=True), 1).eval()
    calls = [
        lambda put: attention(put(x), x, x, none, attn_mask=keep)[0],
        lambda put: attention(x, put(x), x)[0],
        lambda put: encoder(put(x), keep, none),
        lambda put: decoder(put(x), x, tgt_mask=keep),
        lambda put: decoder(x, put(x)),
        lambda put: encoder.layers[0](put(x)),
        lambda put: nn.functional.scaled_dot_product_attention(x, x, x, put(numbers_of_mask)),
    ]
    numbers_of_mask = numbers(3, 3)
    wanted = [call(tg.Tensor) for call in calls]
    for module in (attention, encoder, decoder):
        module.to("emulator")
    for call, y in zip(calls[:-1], wanted, strict=False):
        same(call(lambda array: array), y)
    for call, y in zip(calls, wanted, strict=True):
        same(call(there), y)


def test_networks_whose_first_layer_has_no_parameters():
    x = numbers(2, 4, 6, 6)
    network = nn.Sequential(
        nn.ReLU(), nn.Residual(nn.ReLU(), nn.Conv2d(4, 4, 1)), nn.Flatten(), nn.Linear(144, 2)
    )
    wanted = network(x)
    network.to("emulator")
    same(network(x), wanted)


def test_functions_with_masks():
    x, mask = numbers(4, 5), numbers(4, 5) > 0
    for call in (
        lambda put: tg.where(mask, put(x), 0.0),
        lambda put: tg.where(put(mask), x, x * 2),
        lambda put: tg.masked_fill(put(x), mask, 1.0),
        lambda put: tg.masked_fill(x, put(mask), 1.0),
        lambda put: tg.logical_and(mask, put(x)),
        lambda put: tg.logical_xor(put(mask), x),
        lambda put: tg.gather(x, 1, put(np.zeros((4, 1), int))),
        lambda put: mask & (put(x) > 0),
        lambda put: tg.stack([x, put(x)]),
    ):
        same(call(there), call(tg.Tensor))
