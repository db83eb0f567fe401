"""A gradient in float32, or by a kernel, against the same gradient in float64 on the cpu.

    T      the terms that an element is the sum of: sum over outputs of abs(J * gy)
    D      the depth of the sums: at most the number of elements of the largest array
    kappa  how far the float64 gradient moves when every input moves by one rounding

    G      max abs(gy) max abs(y) / max abs(x): terms of a normaliser have this size, and cancel

    U      max abs(gy) where nothing is reduced: 1 + tanh(x) is rounded as 1 is, however small

    bound = 8 eps sqrt(D) (T + G) + 16 kappa + 8 eps max abs(gradient) + 32 eps U

D roundings of either sign grow as sqrt(D); kappa is what no algorithm can do better than.

Source: Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, sections 1.6, 4.2;
Higham, Mary, "A new approach to probabilistic rounding error analysis", SISC 2019.
"""

from __future__ import annotations

import math

import numpy as np

from tinygraph.engine import Array, philox
from tinygraph.testing.gradcheck_elements import Comparison, largest
from tinygraph.testing.gradcheck_function import PointFunction
from tinygraph.testing.report import Mismatch

DRAWS = 4


def compare_rounded(
    function: PointFunction,
    exact: PointFunction,
    rounded: list[Array | None],
    precise: list[Array | None],
    upstream: Array,
    comparisons: list[Comparison],
) -> Mismatch | None:
    """The worst element of `rounded` that is further from `precise` than its bound, or None."""
    dtypes = [function.arrays[i].dtype for i in function.wrt]
    eps = max([float(np.finfo(dtype).eps) for dtype in dtypes], default=0.0)
    depth = max([function.size, *[a.size for a in function.arrays]])
    condition = _movement(exact, precise, upstream, eps)
    outputs = largest(upstream) * largest(exact.value())
    worst = None
    for one in comparisons:
        a, b = rounded[one.position], precise[one.position]
        if a is None or b is None or not b.size:
            continue
        typical = max(largest(b), largest(one.terms))
        terms = np.where(np.isfinite(one.terms), one.terms, typical)
        cancelling = outputs / (largest(one.inputs[one.position]) or 1.0)
        bound = 8 * eps * (math.sqrt(depth) * (terms + cancelling) + largest(b))
        bound = bound + 16 * condition[one.position] + np.finfo(np.float32).tiny
        if exact.size >= b.size:
            bound = bound + 32 * eps * largest(upstream)
        with np.errstate(all="ignore"):
            error = np.asarray(np.abs(a.astype(np.float64) - b) / bound)
        error[~np.isfinite(error)] = np.inf
        # float32 overflows where b is large, and is allowed to.
        overflow = ~(np.abs(b) <= np.finfo(dtypes[0]).max / 16)
        error[(a == b) | (np.isnan(a) & np.isnan(b)) | one.masked | overflow] = 0
        at = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
        if error[at] > 1 and (worst is None or error[at] > worst.error):
            worst = Mismatch(one.position, at, float(a[at]), float(b[at]), float(error[at]))
    return worst


def _movement(
    exact: PointFunction, precise: list[Array | None], upstream: Array, eps: float
) -> list[Array]:
    """How far each gradient moves when every input and the upstream gradient move by a rounding."""
    rng = np.random.Generator(philox(0, 1))
    moved = [np.zeros(a.shape) for a in exact.arrays]

    def jitter(a: Array) -> Array:
        return a * (1 + eps * rng.choice([-1.0, 1.0], a.shape)) if a.dtype.kind == "f" else a

    for _ in range(DRAWS):
        near = exact.with_arrays([jitter(a) for a in exact.arrays], exact.wrt)
        gradients = near.vjp(jitter(upstream))
        for position, (g, b) in enumerate(zip(gradients, precise, strict=True)):
            if g is not None and b is not None:
                with np.errstate(all="ignore"):
                    step = np.nan_to_num(np.abs(g - b), nan=0.0, posinf=0.0)
                moved[position] = np.maximum(moved[position], step)
    return [np.maximum(m, float(np.sqrt(np.mean(m * m)) if m.size else 0) / 2) for m in moved]
