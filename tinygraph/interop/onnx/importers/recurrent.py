"""RNN, GRU and LSTM: the ops of whole layers where they compute the same, else step by step.

    T N I H    steps, samples, input features, hidden features      D   directions

Weights are (D, gates * H, I) and (D, gates * H, H), their biases side by side (D, 2 * gates * H).
The gates of ONNX are i o f c and z r h, those of tinygraph, as of PyTorch, i f c o and r z h.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinygraph import ops
from tinygraph.engine import Tensor
from tinygraph.interop.onnx.nodes import Node, Value, array, importer, tensor

_ORDER = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
_USUAL = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}
_ACTIVATIONS: dict[str, Callable[[Tensor, Any, Any], Tensor]] = {
    "relu": lambda x, a, b: ops.relu(x),
    "tanh": lambda x, a, b: ops.tanh(x),
    "sigmoid": lambda x, a, b: ops.sigmoid(x),
    "softsign": lambda x, a, b: ops.softsign(x),
    "softplus": lambda x, a, b: ops.softplus(x),
    "leakyrelu": lambda x, a, b: ops.leaky_relu(x, 0.01 if a is None else a),
    "elu": lambda x, a, b: ops.elu(x, 1.0 if a is None else a),
    "thresholdedrelu": lambda x, a, b: ops.where(ops.greater(x, 1.0 if a is None else a), x, 0.0),
    "affine": lambda x, a, b: ops.add(ops.mul(x, 1.0 if a is None else a), b or 0.0),
    "scaledtanh": lambda x, a, b: ops.mul(
        ops.tanh(ops.mul(x, 1.0 if b is None else b)), 1.0 if a is None else a
    ),
    "hardsigmoid": lambda x, a, b: ops.clip(
        ops.add(ops.mul(x, 0.2 if a is None else a), 0.5 if b is None else b), 0.0, 1.0
    ),
}
_WITH_BETA = ("affine", "hardsigmoid", "scaledtanh")
_WITH_ALPHA = ("elu", "leakyrelu", "thresholdedrelu", *_WITH_BETA)


class Layer(NamedTuple):
    """One direction: its weights, the state before its first step, its activations."""

    w: Tensor
    r: Tensor
    wb: Tensor | None
    rb: Tensor | None
    h: Tensor
    c: Tensor | None
    peepholes: Tensor | None
    activations: list[Callable[[Tensor], Tensor]]
    names: tuple[str, ...]


@importer("RNN", "GRU", "LSTM")
def recurrent(
    node: Node,
    x: Value,
    w: Value,
    r: Value,
    b: Value = None,
    lengths: Value = None,
    h0: Value = None,
    c0: Value = None,
    p: Value = None,
) -> Any:
    """With layout=1 samples come first."""
    batch_first = bool(node["layout"])
    if batch_first:
        x = ops.movedim(x, 0, 1)
        h0, c0 = (None if s is None else ops.movedim(s, 0, 1) for s in (h0, c0))
    steps, samples, directions = x.shape[0], x.shape[1], w.shape[0]
    if directions != (2 if node["direction"] == "bidirectional" else 1):
        raise node.refuse("w", f"{node['direction']} weights", w.shape)
    _require_shapes(node, samples, x, (w, r, b, h0, c0, p))
    sizes = None if lengths is None else array(lengths).astype(np.int64)
    if sizes is not None and (sizes.shape != (samples,) or np.all(sizes == steps)):
        if sizes.shape != (samples,):
            raise node.refuse("sequence_lens", f"{samples} numbers", sizes.shape)
        sizes = None
    if sizes is not None and not np.all((sizes >= 0) & (sizes <= steps)):
        raise node.refuse("sequence_lens", f"0 to {steps} steps", sizes.tolist())
    runs = []
    for d in range(directions):
        backwards = node["direction"] == "reverse" or d == 1
        layer = _layer(node, d, samples, x, (w, r, b, h0, c0, p))
        runs.append(_run(node, layer, x, sizes, backwards))
    y = ops.stack([run[0] for run in runs], 1)  # (T, D, N, H)
    last = [ops.stack([run[i] for run in runs], 0) for i in range(1, len(runs[0]))]
    if batch_first:
        y, last = ops.permute(y, (2, 0, 1, 3)), [ops.movedim(s, 0, 1) for s in last]
    return y, *last


def _require_shapes(node: Node, samples: int, x: Tensor, given: Any) -> None:
    """Weights, biases and states have the sizes that the file and the input say."""
    gates, directions = len(_ORDER[node.kind]), given[0].shape[0]
    hidden = node["hidden_size"] or given[1].shape[-1]
    rows, state = gates * hidden, (directions, samples, hidden)
    wanted: dict[str, tuple[int, ...]] = {
        "W": (directions, rows, x.shape[-1]),
        "R": (directions, rows, hidden),
        "B": (directions, 2 * rows),
        "initial_h": state,
        "initial_c": state,
        "P": (directions, 3 * hidden),
    }
    for (name, shape), value in zip(wanted.items(), given, strict=True):
        if value is not None and tuple(value.shape) != shape:
            expected = f"{shape}, {gates} gates of {hidden}"
            raise node.refuse(name, expected, tuple(value.shape))
    if node["clip"] is not None and not node["clip"] > 0:
        raise node.refuse("clip", "a number above 0", node["clip"])


def _layer(node: Node, d: int, samples: int, x: Tensor, given: Any) -> Layer:
    w, r, b, h0, c0, p = given
    hidden, gates = r.shape[-1], len(_ORDER[node.kind])
    zeros = tensor(np.zeros((samples, hidden), x.dtype))
    functions = _activations(node, w.shape[0])
    each = len(_USUAL[node.kind])
    names = tuple([name for name, _ in functions[d * each : (d + 1) * each]])
    return Layer(
        w[d],
        r[d],
        None if b is None else b[d, : gates * hidden],
        None if b is None else b[d, gates * hidden :],
        zeros if h0 is None else h0[d],
        (zeros if c0 is None else c0[d]) if node.kind == "LSTM" else None,
        None if p is None else p[d],
        [function for _, function in functions[d * each : (d + 1) * each]],
        names,
    )


def _activations(node: Node, directions: int) -> list[tuple[str, Callable[[Tensor], Tensor]]]:
    """The functions of all directions, each with its name.

    Those that have an alpha or a beta take the next one of their list, as the standard says.
    """
    usual = _USUAL[node.kind] * directions
    names = [name.lower() for name in node["activations"] or usual]
    if node.kind == "RNN" and directions == 1 and names == ["tanh", "tanh"]:
        names = ["tanh"]  # the default is one for two directions
    if len(names) != len(usual):
        raise node.refuse("activations", f"{len(usual)} names", node["activations"])
    lists = [list(node[f"activation_{which}"] or ()) for which in ("alpha", "beta")]
    found = []
    for name in names:
        if name not in _ACTIVATIONS:
            raise node.refuse("activations", f"some of {sorted(_ACTIVATIONS)}", name)
        takes = name in _WITH_ALPHA, name in _WITH_BETA
        a, b = (
            each.pop(0) if has and each else None for has, each in zip(takes, lists, strict=True)
        )
        found.append((name, _bound(_ACTIVATIONS[name], a, b)))
    for which, left in zip(("alpha", "beta"), lists, strict=True):
        if left:
            expected = f"as many as functions with {which}"
            raise node.refuse(f"activation_{which}", expected, f"{len(left)} more")
    return found


def _bound(function: Callable[..., Tensor], a: Any, b: Any) -> Callable[[Tensor], Tensor]:
    return lambda x: function(x, a, b)


def _run(node: Node, layer: Layer, x: Tensor, sizes: Any, backwards: bool) -> tuple[Tensor, ...]:
    """h of all steps (T, N, H), and the state after the last one."""
    usual = layer.names == _USUAL[node.kind] or (node.kind, layer.names) == ("RNN", ("relu",))
    plain = usual and sizes is None and layer.peepholes is None and not node["clip"]
    if plain and not node["input_forget"] and not _resets_before(node):
        return _by_op(node, layer, x, backwards)
    return _by_steps(node, layer, x, sizes, backwards)


def _resets_before(node: Node) -> bool:
    """Whether a GRU resets the state before the product, as by default."""
    return node.kind == "GRU" and not node["linear_before_reset"]


def _by_op(node: Node, layer: Layer, x: Tensor, backwards: bool) -> tuple[Tensor, ...]:
    order = _ORDER[node.kind]
    w, r, wb, rb = (_reordered(v, order) for v in (layer.w, layer.r, layer.wb, layer.rb))
    gates = ops.linear(x, w, wb)
    gates = ops.flip(gates, 0) if backwards else gates
    states = [s for s in (layer.h, layer.c) if s is not None]
    start = ops.stack(states, 0)
    if node.kind == "RNN":
        y = ops.rnn_layer(gates, start, r, rb, layer.names[0])
    else:
        y = (ops.lstm_layer if node.kind == "LSTM" else ops.gru_layer)(gates, start, r, rb)
    last = [y[i, -1] for i in range(len(states))]
    h = y[0]
    return ops.flip(h, 0) if backwards else h, *last


def _reordered(x: Any, order: tuple[int, ...]) -> Any:
    if x is None or len(order) == 1:
        return x
    parts = ops.chunk(x, len(order), 0)
    return ops.concatenate([parts[i] for i in order], 0)


def _by_steps(
    node: Node, layer: Layer, x: Tensor, sizes: Any, backwards: bool
) -> tuple[Tensor, ...]:
    """A state stays where a sequence has ended; what it would have given there is 0."""
    step = {"RNN": _rnn_step, "GRU": _gru_step, "LSTM": _lstm_step}[node.kind]
    steps = x.shape[0]
    h, c = layer.h, layer.c
    outputs: list[Any] = [None] * steps
    for t in range(steps)[::-1] if backwards else range(steps):
        new, cell = step(node, layer, x[t], h, c)
        if sizes is None:
            h, c, outputs[t] = new, cell, new
            continue
        going = (t < sizes)[:, None]
        outputs[t] = ops.where(going, new, 0.0)
        h = ops.where(going, new, h)
        c = None if c is None else ops.where(going, cell, c)
    return (ops.stack(outputs, 0), h) if c is None else (ops.stack(outputs, 0), h, c)


def _clipped(node: Node, x: Tensor) -> Tensor:
    return ops.clip(x, -node["clip"], node["clip"]) if node["clip"] else x


def _rnn_step(node: Node, layer: Layer, x: Tensor, h: Tensor, c: Any) -> tuple[Tensor, Any]:
    total = ops.add(ops.linear(x, layer.w, layer.wb), ops.linear(h, layer.r, layer.rb))
    return layer.activations[0](_clipped(node, total)), None


def _gru_step(node: Node, layer: Layer, x: Tensor, h: Tensor, c: Any) -> tuple[Tensor, Any]:
    f, g = layer.activations
    zx, rx, nx = ops.chunk(ops.linear(x, layer.w, layer.wb), 3, -1)
    size = h.shape[-1]
    gates = None if layer.rb is None else layer.rb[: 2 * size]
    zh, rh = ops.chunk(ops.linear(h, layer.r[: 2 * size], gates), 2, -1)
    z, r = f(_clipped(node, ops.add(zx, zh))), f(_clipped(node, ops.add(rx, rh)))
    weight, bias = layer.r[2 * size :], None if layer.rb is None else layer.rb[2 * size :]
    if node["linear_before_reset"]:
        inner = ops.mul(r, ops.linear(h, weight, bias))
    else:
        inner = ops.linear(ops.mul(r, h), weight, bias)
    n = g(_clipped(node, ops.add(nx, inner)))
    return ops.add(n, ops.mul(z, ops.sub(h, n))), None


def _lstm_step(node: Node, layer: Layer, x: Tensor, h: Tensor, c: Any) -> tuple[Tensor, Any]:
    f, g, k = layer.activations
    gates = ops.add(ops.linear(x, layer.w, layer.wb), ops.linear(h, layer.r, layer.rb))
    i, o, forget, new = ops.chunk(gates, 4, -1)
    peepholes: Any = (None,) * 3 if layer.peepholes is None else ops.chunk(layer.peepholes, 3, -1)
    pi, po, pf = peepholes
    i = f(_clipped(node, i if pi is None else ops.add(i, ops.mul(pi, c))))
    forget = f(_clipped(node, forget if pf is None else ops.add(forget, ops.mul(pf, c))))
    forget = ops.sub(1.0, i) if node["input_forget"] else forget
    cell = ops.add(ops.mul(forget, c), ops.mul(i, g(_clipped(node, new))))
    o = f(_clipped(node, o if po is None else ops.add(o, ops.mul(po, cell))))
    return ops.mul(o, k(cell)), cell
