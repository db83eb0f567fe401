"""Recurrent layers and cells: RNN, LSTM, GRU.

    T N I H    steps, samples, input features, hidden features      D   directions: 1, or 2
    L          layers

A layer is one product of all inputs, and one op that goes through the steps (`tg.lstm_layer`).
Layers stand one on the other; with two directions the second one reads the steps backwards, and
both outputs, side by side, go into the next layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tinygraph.base import ArgumentError, ShapeError, number, one_of, whole
from tinygraph.engine import Operand, Parameter, Tensor, as_tensor, leaf
from tinygraph.nn.init import uniform_
from tinygraph.nn.inputs import as_input
from tinygraph.nn.module import Module
from tinygraph.ops.elementwise.dropout import dropout
from tinygraph.ops.products.linear import linear
from tinygraph.ops.recurrent.gru_layer import gru_layer
from tinygraph.ops.recurrent.lstm_layer import lstm_layer
from tinygraph.ops.recurrent.rnn_layer import rnn_layer
from tinygraph.ops.shaping.concatenate import concatenate, stack
from tinygraph.ops.shaping.getitem import getitem
from tinygraph.ops.shaping.transpose import transpose

BACKWARDS = slice(None, None, -1)
UNPROJECTED = (
    "nn.Linear(hidden_size, proj_size) on the output; where the next step shall read what is "
    "projected, write the step in a loop, of tg.linear, tg.sigmoid and tg.tanh"
)
KINDS: dict[str, tuple[int, int, Callable[..., Tensor]]] = {  # gates, arrays of a state, the op
    "RNN": (1, 1, rnn_layer),
    "GRU": (3, 1, gru_layer),
    "LSTM": (4, 2, lstm_layer),
}


class Recurrent(Module):
    """What the layers and cells share: weights under PyTorch's names, and the state."""

    kind: ClassVar[str]
    nonlinearity: str | None = None
    hidden_size: int

    def _weights(self, suffix: str, inputs: int, hidden: int, bias: bool, dtype: Any) -> None:
        """Make the four parameters of a layer, uniform within 1 / sqrt(H)."""
        rows, bound = KINDS[self.kind][0] * hidden, 1 / math.sqrt(hidden)
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (rows, inputs),
            "weight_hh": (rows, hidden),
        }
        if bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        for name, shape in shapes.items():
            parameter = Parameter(np.empty(shape, dtype), name=name + suffix)
            setattr(self, name + suffix, uniform_(parameter, -bound, bound))

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            uniform_(parameter, -bound, bound)

    def _run(self, x: Tensor, state: Tensor, suffix: str) -> Tensor:
        """The states (S, T, N, H) of one layer that reads x (T, N, I) from a state (S, N, H) on."""
        own = vars(self)
        gates = linear(x, own[f"weight_ih{suffix}"], own.get(f"bias_ih{suffix}"))
        more = [] if self.nonlinearity is None else [self.nonlinearity]
        weights = own[f"weight_hh{suffix}"], own.get(f"bias_hh{suffix}")
        return KINDS[self.kind][2](gates, state, *weights, *more)

    def _zeros(self, x: Tensor, *shape: int) -> Tensor:
        return leaf(x.device.zeros(shape, x.dtype), x.device)

    def _states(self, given: Any, x: Tensor, shape: tuple[int, ...]) -> list[Tensor]:
        """The arrays of a state, each of that shape; zeros where none is given."""
        count, op = KINDS[self.kind][1], type(self).__name__
        if given is None:
            return [self._zeros(x, *shape)] * count
        states = list(given) if count == 2 else [given]
        if len(states) != count:
            raise ShapeError(op, "hx", "a pair (h, c)", f"{len(states)} arrays")
        states = [as_tensor(s, device=x.device) for s in states]
        for s in states:
            if s.shape != shape:
                raise ShapeError(op, "hx", f"the shape {shape}", s.shape)
        return states


class Layers(Recurrent):
    """The layers of a sequence: `RNN`, `LSTM`, `GRU`."""

    _settings: ClassVar[tuple[str, ...]] = ("input_size", "hidden_size")
    _unusual: ClassVar[dict[str, Any]] = {
        "num_layers": 1,
        "bias": True,
        "batch_first": False,
        "dropout": 0.0,
        "bidirectional": False,
    }

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        dtype: Any = np.float32,
    ) -> None:
        op = type(self).__name__
        if proj_size:
            raise ArgumentError(op, "proj_size", "0", proj_size, UNPROJECTED)
        self.input_size = whole(op, "input_size", input_size)
        self.hidden_size = whole(op, "hidden_size", hidden_size)
        self.num_layers = whole(op, "num_layers", num_layers)
        self.bias, self.batch_first = bool(bias), bool(batch_first)
        self.dropout = number(op, "dropout", dropout, 0, 1)
        self.bidirectional = bool(bidirectional)
        for layer, inputs in enumerate(self._sizes()):
            for suffix in self._suffixes(layer):
                self._weights(suffix, inputs, self.hidden_size, self.bias, dtype)

    def _sizes(self) -> list[int]:
        """What each layer reads."""
        return [self.input_size, *[self.hidden_size * self._directions] * (self.num_layers - 1)]

    @property
    def _directions(self) -> int:
        return 1 + self.bidirectional

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: self._directions]

    def forward(self, input: Operand, hx: Any = None) -> tuple[Tensor, Any]:
        x = as_input(self, input)
        op = type(self).__name__
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            legend = "(N, T, I)" if self.batch_first else "(T, N, I)"
            expected = f"{legend} or (T, I) with I = {self.input_size}"
            raise ShapeError(op, "input", expected, x.shape)
        single = x.ndim == 2
        if single:
            x = getitem(x, (slice(None), None))
            hx = None if hx is None else _with_axis(hx, x)
        elif self.batch_first:
            x = transpose(x, 0, 1)
        shape = (self.num_layers * self._directions, x.shape[1], self.hidden_size)
        y, last = self._stacked(x, self._states(hx, x, shape))
        if single:
            y, last = y[:, 0], [s[:, 0] for s in last]
        elif self.batch_first:
            y = transpose(y, 0, 1)
        return y, tuple(last) if len(last) == 2 else last[0]

    def _stacked(self, x: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """The output of the last layer, and the last state of all."""
        ends: list[Tensor] = []
        for layer in range(self.num_layers):
            if layer:
                x = dropout(x, self.dropout, self.training)
            sides = []
            for way, suffix in enumerate(self._suffixes(layer)):
                place = layer * self._directions + way
                state = stack([s[place] for s in states])  # (S, N, H)
                each = self._run(x[BACKWARDS] if way else x, state, suffix)
                ends.append(each[:, -1])
                sides.append(each[0][BACKWARDS] if way else each[0])
            x = sides[0] if len(sides) == 1 else concatenate(sides, axis=-1)
        return x, [stack([end[i] for end in ends]) for i in range(len(states))]


def _with_axis(hx: Any, x: Tensor) -> Any:
    """A state without samples as one of a single sample, where x is."""
    if isinstance(hx, (tuple, list)):
        return tuple(_with_axis(s, x) for s in hx)
    return as_tensor(hx, device=x.device)[:, None]


class RNN(Layers):
    """Plain recurrent layers, h' = tanh(W x + b + U h + b'): see `tg.rnn_layer`.

    Parameters
    ----------
    input_size, hidden_size : int
        I and H.
    num_layers : int
        Each reads what the one below gives.
    nonlinearity : {"tanh", "relu"}
    bias : bool
    batch_first : bool
        Whether inputs and outputs are (N, T, ...) instead of (T, N, ...); states are not.
    dropout : float
        Between layers, in training.
    bidirectional : bool
        A second direction, whose outputs stand behind those of the first.

    Of `LSTM` a `proj_size` beside 0, PyTorch's projection of the state, is refused.

    Examples
    --------
    >>> import tinygraph as tg
    >>> y, h = tg.nn.RNN(4, 8, num_layers=2)(tg.zeros(5, 3, 4))
    >>> y.shape, h.shape
    ((5, 3, 8), (2, 3, 8))
    """

    kind = "RNN"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        dtype: Any = np.float32,
    ) -> None:
        self.nonlinearity = one_of("RNN", "nonlinearity", nonlinearity, ("tanh", "relu"))
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            dtype=dtype,
        )  # fmt: skip


class GRU(Layers):
    """Layers of gated recurrent units: see `tg.gru_layer`; the settings are those of `RNN`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> y, h = tg.nn.GRU(4, 8, bidirectional=True, batch_first=True)(tg.zeros(3, 5, 4))
    >>> y.shape, h.shape
    ((3, 5, 16), (2, 3, 8))
    """

    kind = "GRU"


class LSTM(Layers):
    """Layers of long short-term memory: see `tg.lstm_layer`; the settings are those of `RNN`.

    The state is a pair (h, c), each (L * D, N, H).

    Examples
    --------
    >>> import tinygraph as tg
    >>> y, (h, c) = tg.nn.LSTM(4, 8)(tg.zeros(5, 3, 4))
    >>> y.shape, h.shape, c.shape
    ((5, 3, 8), (1, 3, 8), (1, 3, 8))
    """

    kind = "LSTM"


class Cell(Recurrent):
    """One step, whose state the user hands on: `RNNCell`, `LSTMCell`, `GRUCell`."""

    _settings: ClassVar[tuple[str, ...]] = ("input_size", "hidden_size")
    _unusual: ClassVar[dict[str, Any]] = {"bias": True}

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, dtype: Any = np.float32
    ) -> None:
        op = type(self).__name__
        self.input_size = whole(op, "input_size", input_size)
        self.hidden_size = whole(op, "hidden_size", hidden_size)
        self.bias = bool(bias)
        self._weights("", self.input_size, self.hidden_size, self.bias, dtype)

    def forward(self, input: Operand, hx: Any = None) -> Any:
        x = as_input(self, input)
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            expected = f"(N, I) or (I,) with I = {self.input_size}"
            raise ShapeError(type(self).__name__, "input", expected, x.shape)
        shape = (*x.shape[:-1], self.hidden_size)
        states = self._states(hx, x, shape)
        rows = 1 if x.ndim == 1 else len(x)
        state = stack([s.reshape(rows, self.hidden_size) for s in states])
        after = self._run(x.reshape(1, rows, self.input_size), state, "")
        found = [after[i, 0].reshape(shape) for i in range(len(states))]
        return tuple(found) if len(found) == 2 else found[0]


class RNNCell(Cell):
    """One step of `RNN`: from x (N, I) and h (N, H) to h (N, H).

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.nn.RNNCell(4, 8, nonlinearity="relu")(tg.zeros(3, 4)).shape
    (3, 8)
    """

    kind = "RNN"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        *,
        dtype: Any = np.float32,
    ) -> None:
        self.nonlinearity = one_of("RNNCell", "nonlinearity", nonlinearity, ("tanh", "relu"))
        super().__init__(input_size, hidden_size, bias, dtype=dtype)


class GRUCell(Cell):
    """One step of `GRU`: from x (N, I) and h (N, H) to h (N, H)."""

    kind = "GRU"


class LSTMCell(Cell):
    """One step of `LSTM`: from x (N, I) and (h, c) to (h, c), each (N, H).

    Examples
    --------
    >>> import tinygraph as tg
    >>> h, c = tg.nn.LSTMCell(4, 8)(tg.zeros(3, 4))
    >>> h.shape, c.shape
    ((3, 8), (3, 8))
    """

    kind = "LSTM"
