"""Mistakes in ops that move numbers: order, repeated positions, views of the upstream gradient."""

import numpy as np

from tests.testing.mutants import Mutant, with_first, with_input


def assigned(call, position, indices):
    """gw[indices] = gy in place of +=: right where no index is repeated."""
    g = np.zeros_like(call.g[position])
    g[indices] = call.gy
    return with_input(call, position, g)


def gathered_once(call):
    """np.put_along_axis in place of np.add.at."""
    g = np.zeros_like(call.g[0])
    axis = call.op.axis % g.ndim
    if call.x[1].shape != call.gy.shape or any(
        n > m for a, (n, m) in enumerate(zip(call.gy.shape, g.shape, strict=True)) if a != axis
    ):
        return call.g
    part = tuple(slice(n) if a != axis else slice(None) for a, n in enumerate(call.gy.shape))
    np.put_along_axis(g[part], call.x[1], call.gy, axis)
    return with_first(call, g)


def even_only(call):
    """Right for an even length of axis 0: the last row is lost where it is odd."""
    g = call.g[0].copy()
    if g.ndim and len(g) % 2 and len(g) > 1:
        g[-1] = 0
    return with_first(call, g)


MUTANTS = [
    Mutant(
        "Reshape",
        "in Fortran order",
        "transposed|reshaped",
        lambda c: [c.gy.reshape(c.x[0].shape, order="F").copy()],
    ),
    Mutant(
        "Reshape", "a view of upstream in the wrong shape", "wrong shape", lambda c: [c.gy[...]]
    ),
    Mutant("Flatten", "reversed", "flipped", lambda c: [np.flip(c.g[0]).copy()]),
    Mutant("Squeeze", "sign", "wrong sign", lambda c: [-c.g[0]]),
    Mutant("Unsqueeze", "twice", "twice", lambda c: [2 * c.g[0]]),
    Mutant(
        "Transpose",
        "a view of upstream, reshaped",
        "transposed|reshaped",
        lambda c: [c.gy.reshape(c.x[0].shape)],
    ),
    Mutant(
        "Expand",
        "a view of upstream: one copy only",
        "only|first use|overwritten",
        lambda c: [c.gy[(0,) * (c.gy.ndim - c.x[0].ndim)][tuple(slice(n) for n in c.x[0].shape)]],
    ),
    Mutant(
        "Expand",
        "mean of the copies",
        "too small|half",
        lambda c: [c.g[0] * c.x[0].size / max(c.gy.size, 1)],
    ),
    Mutant(
        "Concatenate",
        "the same part for all",
        "order|reads|backwards|shifted|input",
        lambda c: [c.g[0] if g.shape == c.g[0].shape else g for g in c.g],
    ),
    Mutant("Stack", "in reverse", "order", lambda c: c.g[::-1]),
    Mutant(
        "Split", "shifted", "shifted|flipped|order", lambda c: with_first(c, np.roll(c.g[0], 1, -1))
    ),
    Mutant(
        "Getitem", "right for an even length", "border|indices|zero where|leaves out", even_only
    ),
    Mutant(
        "Pad",
        "not cut off at the right side",
        "shifted|flipped|order|transposed",
        lambda c: [np.roll(c.g[0], 1, -1) if c.g[0].ndim else c.g[0]],
    ),
    Mutant("Embedding", "= in place of +=", "overwritten", lambda c: assigned(c, 1, c.x[0])),
    Mutant("Gather", "= in place of +=", "overwritten", gathered_once),
]
