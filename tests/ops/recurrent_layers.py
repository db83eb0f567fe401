"""What the tests of recurrent layers share: problems and bad inputs, by gates and states."""

import numpy as np
from hypothesis import strategies as st

from tests.op_contract import Bad, Problem
from tests.strategies import numbers, seeds
from tinygraph.base.errors import DtypeError, ShapeError

NAMES = ("gi", "s0", "w", "b")


def sequence(seed, steps, samples, units, gates, states, bias=True):
    """Inputs, state, weights and bias."""
    shapes = ((steps, samples, gates * units), (states, samples, units), (gates * units, units))
    gi, s0, w = (numbers(seed + i, shape) for i, shape in enumerate(shapes))
    w = w / units  # sums of many would saturate the cells
    return gi, s0, w, numbers(seed + 3, (gates * units,)) if bias else None


@st.composite
def sequences(draw, gates, states, **kwargs):
    steps, samples, units = (draw(st.integers(low, 3)) for low in (1, 0, 1))
    arrays = sequence(draw(seeds), steps, samples, units, gates, states, draw(st.booleans()))
    return Problem(arrays, {k: draw(st.sampled_from(v)) for k, v in kwargs.items()}, None, NAMES)


def large(gates, states):
    """Several blocks, the last one in part; a step that has none before it."""
    return (
        Problem(sequence(0, 2, 9, 33, gates, states), {}, None, NAMES),
        Problem(sequence(1, 1, 2, 3, gates, states, bias=False), {}, None, NAMES),
    )


def bad(gates, states):
    gi, s0, w, b = sequence(0, 2, 3, 4, gates, states)
    return [
        Bad("no step", (gi[:0], s0, w, b), {}, ShapeError, "gi: expected at least one step"),
        Bad("one axis less", (gi[0], s0, w, b), {}, ShapeError, "gi: expected 3 axes (T, N,"),
        Bad("gates", (gi[..., 1:], s0, w, b), {}, ShapeError, f"gi: expected {gates} gates of 4"),
        Bad("units", (gi, s0, w[:, 1:], b), {}, ShapeError, f"gi: expected {gates} gates of 3"),
        Bad("state", (gi, s0[:, 1:], w, b), {}, ShapeError, f"s0: expected the shape ({states}, 3"),
        Bad("states", (gi, s0[0], w, b), {}, ShapeError, "s0: expected the shape"),
        Bad("bias", (gi, s0, w, b[1:]), {}, ShapeError, "b: expected"),
        Bad("dtype", (gi, s0, w.astype("f4"), b), {}, DtypeError, "gi: expected float32"),
        Bad("integers", (gi.astype(int), s0, w, b), {}, DtypeError, "gi: expected float32 or"),
    ]


def one_step(gates, states, value, **extra):
    """A step of zeros, from zeros: what is agreed there."""
    shapes = (1, 1, gates), (states, 1, 1), (gates, 1)
    return tuple(np.zeros(s) for s in shapes), np.full((states, 1, 1, 1), value)
