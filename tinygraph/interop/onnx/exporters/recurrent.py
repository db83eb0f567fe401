"""Exporters of recurrent layers: RNN, GRU and LSTM of ONNX.

    tinygraph    y (S, T, N, H), gi (T, N, G*H): what a linear layer before it has made of x
    ONNX         Y (T, 1, N, H), X (T, N, I) and W (1, G*H, I): that linear layer is part of it

The gates stand in another order there; the parameters keep theirs, and are put in order in the
file.  ONNX's LSTM gives the cell of the last step alone: where others are read, the steps are
written out, in a Scan.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.engine import Tensor
from tinygraph.interop.onnx.library import onnx
from tinygraph.interop.onnx.table import exporter
from tinygraph.interop.onnx.writer import Writer, element_type
from tinygraph.ops.products.linear import Linear
from tinygraph.ops.recurrent.gru_layer import GruLayer
from tinygraph.ops.recurrent.lstm_layer import LstmLayer
from tinygraph.ops.recurrent.rnn_layer import ReluLayer, TanhLayer
from tinygraph.ops.shaping.getitem import Getitem

# Where ONNX's gates stand among ours: z r n of r z n, and i o f c of i f c o.
ORDERS: dict[Any, tuple[int, ...]] = {GruLayer: (1, 0, 2), LstmLayer: (0, 3, 1, 2)}


@exporter(TanhLayer, ReluLayer)
def rnn_layer(w: Writer, node: Tensor, *inputs: str) -> str:
    activation = "Relu" if isinstance(node.op, ReluLayer) else "Tanh"
    y, _ = layer(w, "RNN", node, inputs, 2, [inputs[1]], activations=[activation])
    return by_state(w, y)


@exporter(GruLayer)
def gru_layer(w: Writer, node: Tensor, *inputs: str) -> str:
    y, _ = layer(w, "GRU", node, inputs, 2, [inputs[1]], linear_before_reset=1)
    return by_state(w, y)


@exporter(LstmLayer)
def lstm_layer(w: Writer, node: Tensor, *inputs: str) -> str:
    """What nobody reads, the cells of earlier steps, has the values of the last one."""
    h, c = (w.node("Slice", inputs[1], w.ints(s), w.ints(s + 1), w.ints(0)) for s in (0, 1))
    if not reads_last_cell_alone(node, w):
        return lstm_by_steps(w, node, h, c, *inputs)
    y, _, last = layer(w, "LSTM", node, inputs, 3, [h, c])
    cells = w.node("Expand", w.node("Unsqueeze", last, w.ints(1)), w.ints(1, node.shape[1], 1, 1))
    return w.node("Concat", by_state(w, y), cells, axis=0)


def by_state(w: Writer, y: str) -> str:
    """ONNX's (T, 1, N, H) as (1, T, N, H)."""
    return w.node("Transpose", y, perm=[1, 0, 2, 3])


def layer(
    w: Writer,
    kind: str,
    node: Tensor,
    inputs: tuple[str, ...],
    outputs: int,
    states: list[str],
    **attributes: Any,
) -> list[str]:
    """The operator of a layer, with the linear layer before it."""
    gates, (gi, weight, *bias) = node.inputs[0], (inputs[0], *inputs[2:])
    units, dtype = node.shape[-1], node.dtype
    count = gates.shape[-1] // units
    order = ORDERS.get(type(node.op), (0,))
    rows = (np.array(order)[:, None] * units + np.arange(units)).reshape(-1)

    def put_in_order(x: str) -> str:
        return x if count == 1 else w.node("Gather", x, w.constant(rows, np.int64), axis=0)

    if type(gates.op) is Linear:
        x, *named = [w.name_of(each) for each in gates.inputs]
        read, bias_in = put_in_order(named[0]), named[1:]
    else:  # the gates themselves are read, in order
        x, read, bias_in = gi, w.constant(np.eye(count * units)[rows], dtype), []
    zeros = [] if bias and bias_in else [w.constant(np.zeros(count * units), dtype)]
    both = [put_in_order(b[0]) if b else zeros[0] for b in (bias_in, bias)]
    front = w.ints(0)
    weights = [w.node("Unsqueeze", m, front) for m in (read, put_in_order(weight))]
    b = w.node("Unsqueeze", w.node("Concat", *both, axis=0), front)
    return w.nodes_of(kind, outputs, x, *weights, b, "", *states, hidden_size=units, **attributes)


def reads_last_cell_alone(node: Tensor, w: Writer) -> bool:
    """Whether of (h, c) all that read c take its last step."""
    last = (-1, node.shape[1] - 1)
    for reader in w.readers(node):
        if type(reader.op) is not Getitem:
            return False
        state, step, *_ = [e for e in reader.op._aligned(node.shape) if e is not None]
        is_first = isinstance(state, int) and state in (0, -2)
        is_last = isinstance(step, int) and step in last
        if not (is_first or is_last):
            return False
    return True


def lstm_by_steps(
    w: Writer, node: Tensor, h: str, c: str, gi: str, _: str, weight: str, bias: str = ""
) -> str:
    """h and c of all steps: a Scan over the gates, whose body is one step."""
    turned = w.node("Transpose", weight, perm=[1, 0])
    front, step = w.ints(0), w.inner()
    before = [w.node("Squeeze", s, front) for s in (h, c)]
    h0, c0, gates = (step.fresh(name) for name in ("h", "c", "gates"))
    a = step.node("Add", gates, step.node("MatMul", h0, turned))
    a = step.node("Add", a, bias) if bias else a
    four = step.nodes_of("Split", 4, a, axis=-1, num_outputs=4)
    i, f, o = (step.node("Sigmoid", gate) for gate in (four[0], four[1], four[3]))
    new = step.node("Mul", i, step.node("Tanh", four[2]))
    c1 = step.node("Add", step.node("Mul", f, c0), new)
    h1 = step.node("Mul", o, step.node("Tanh", c1))
    seen = [step.node("Identity", s) for s in (h1, c1)]
    kind = element_type(node.dtype)
    ends = [
        [onnx.helper.make_tensor_value_info(name, kind, None) for name in names]
        for names in ((h0, c0, gates), (h1, c1, *seen))
    ]
    body = onnx.helper.make_graph(step.nodes, "step", *ends)
    states = w.nodes_of("Scan", 4, *before, gi, body=body, num_scan_inputs=1)
    return w.node("Concat", *[w.node("Unsqueeze", s, front) for s in states[2:]], axis=0)
