"""Elementwise ops as ufuncs, one by one, and their derivatives: what chains are made of.

The mathematics is that of the ops' own files; here it is written so that several ops can share the
blocks of one pass.  g is the upstream gradient of y = op(x, ...).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tinygraph.op import Op
from tinygraph.ops.arithmetic import Add, Div, Mul, Sub
from tinygraph.ops.elementwise import Abs, Exp, Log, Neg, Sqrt
from tinygraph.ops.relu import Relu
from tinygraph.ops.sigmoid import Sigmoid
from tinygraph.ops.tanh import Tanh
from tinygraph.plan.block_program import Filled, Value, Writer

Values = tuple[Value, ...]


class Rule(NamedTuple):
    """How one op is computed and differentiated.

    Attributes
    ----------
    forward : function(writer, inputs) -> Value
    slopes : tuple of function(writer, g, inputs, y) -> Value
        For each input its gradient.
    costly : bool
        Whether computing y a second time takes longer than reading it from memory.
    """

    forward: Callable[[Writer, Values], Value]
    slopes: tuple[Callable[[Writer, Value, Values, Value], Value], ...]
    costly: bool = False


def _sigmoid(w: Writer, x: Values) -> Value:
    below = w.emit(np.exp, w.emit(np.negative, x[0]))
    return w.emit(np.reciprocal, w.emit(np.add, below, 1))


def _sigmoid_slope(w: Writer, g: Value, x: Values, y: Value) -> Value:
    return w.emit(np.multiply, w.emit(np.multiply, w.emit(np.subtract, 1, y), y), g)


def _tanh_slope(w: Writer, g: Value, x: Values, y: Value) -> Value:
    return w.emit(np.multiply, w.emit(np.subtract, 1, w.emit(np.square, y)), g)


def _relu(w: Writer, x: Values) -> Value:
    return w.emit(np.add, w.emit(np.maximum, x[0], Filled(0)), 0)  # -0 becomes 0


def _relu_slope(w: Writer, g: Value, x: Values, y: Value) -> Value:
    return w.emit(np.multiply, g, w.emit(np.not_equal, y, 0, is_bool=True))


def _divisor_slope(w: Writer, g: Value, x: Values, y: Value) -> Value:
    return w.emit(np.negative, w.emit(np.multiply, w.emit(np.divide, g, x[1]), y))


RULES: dict[type[Op], Rule] = {
    Add: Rule(lambda w, x: w.emit(np.add, *x), (lambda w, g, x, y: g, lambda w, g, x, y: g)),
    Sub: Rule(
        lambda w, x: w.emit(np.subtract, *x),
        (lambda w, g, x, y: g, lambda w, g, x, y: w.emit(np.negative, g)),
    ),
    Mul: Rule(
        lambda w, x: w.emit(np.multiply, *x),
        (
            lambda w, g, x, y: w.emit(np.multiply, g, x[1]),
            lambda w, g, x, y: w.emit(np.multiply, g, x[0]),
        ),
    ),
    Div: Rule(
        lambda w, x: w.emit(np.divide, *x),
        (lambda w, g, x, y: w.emit(np.divide, g, x[1]), _divisor_slope),
    ),
    Neg: Rule(lambda w, x: w.emit(np.negative, *x), (lambda w, g, x, y: w.emit(np.negative, g),)),
    Abs: Rule(
        lambda w, x: w.emit(np.absolute, *x),
        (lambda w, g, x, y: w.emit(np.multiply, w.emit(np.sign, x[0]), g),),
    ),
    Exp: Rule(
        lambda w, x: w.emit(np.exp, *x),
        (lambda w, g, x, y: w.emit(np.multiply, g, y),),
        costly=True,
    ),
    Log: Rule(
        lambda w, x: w.emit(np.log, *x),
        (lambda w, g, x, y: w.emit(np.divide, g, x[0]),),
        costly=True,
    ),
    Sqrt: Rule(
        lambda w, x: w.emit(np.sqrt, *x),
        (lambda w, g, x, y: w.emit(np.divide, w.emit(np.divide, g, y), 2),),
    ),
    Relu: Rule(_relu, (_relu_slope,)),
    Sigmoid: Rule(_sigmoid, (_sigmoid_slope,), costly=True),
    Tanh: Rule(lambda w, x: w.emit(np.tanh, *x), (_tanh_slope,), costly=True),
}
