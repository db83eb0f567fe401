"""Layers of recurrent cells: all steps of a sequence in one op.

    T N H      steps, samples, units of a cell          G   gates of a cell, each of H numbers
    S          arrays of a state: h, for some cells c   K   arrays that a step keeps for backward

    gi (T, N, G*H)   what the input gives to the gates, its bias included: one product for all steps
    s0 (S, N, H)     the state before the first step
    w (G*H, H), b (G*H,)   from h to the gates

    gh_t = h_(t-1) @ w^T + b          s_t = cell(gi_t, gh_t, s_(t-1))          y = s_1, ..., s_T

Backward walks the steps the other way (back-propagation through time): the gradient of s_(t-1) is
what its own use gives, what the cell passes on, and ggh_t @ w; the gradient of w is one product
over all steps.

A member states one step: in numpy, `step` and `step_back`; in CUDA, a functor of the name of the
class in the .cu file with the stem of the module (see ops/recurrent/recurrent.cuh).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinygraph.base import ShapeError, above
from tinygraph.cuda import InOut, op_kernel
from tinygraph.engine import Array, Gradients, Memory, Needs, Spec, require_float
from tinygraph.ops.common import column_sums, documented, for_each, total
from tinygraph.ops.common.arguments import require_bias, require_ndim
from tinygraph.ops.products.gemm import gemm


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), in x."""
    x *= 0.5
    np.tanh(x, out=x)
    x *= 0.5
    x += 0.5
    return x


class Recurrent:
    """Mixed into the ops of layers: shapes, the walks over the steps, their launches."""

    name: ClassVar[str]
    gates: ClassVar[int]
    states: ClassVar[int] = 1
    kept: ClassVar[int]
    shares_gates: ClassVar[bool] = True  # whether gi and gh have the same gradient

    # ---- what a member writes ---------------------------------------------------------------

    def step(self, gi: Array, gh: Array, before: Array, after: Array, kept: Array) -> None:
        """Write the state after a step, and what backward needs; gh may be overwritten."""
        raise NotImplementedError

    def step_back(
        self, kept: Array, before: Array, after: Array, g: Array, ggi: Array, ggh: Array
    ) -> None:
        """Write the gradients of the gates, and in g, in the place of the gradient of the state
        after the step, what the cell passes on to the one before.

        Where gates are shared, ggi and ggh are one array.
        """
        raise NotImplementedError

    # ---- what all share ---------------------------------------------------------------------

    def infer(self, gi: Spec, s0: Spec, w: Spec, b: Spec | None = None) -> Spec:
        require_float(self.name, gi=gi, s0=s0, w=w, b=b)
        require_ndim(self.name, "gi", gi, 3, f"(T, N, {self.gates} * H)")
        require_ndim(self.name, "w", w, 2, f"({self.gates} * H, H)")
        steps, samples, numbers = gi.shape
        units = w.shape[1]
        if not steps:
            raise ShapeError(self.name, "gi", "at least one step", gi.shape)
        if numbers != self.gates * units or w.shape[0] != numbers:
            expected = f"{self.gates} gates of {units} units, as w has columns"
            got = f"gi.shape {gi.shape}, w.shape {w.shape}"
            raise ShapeError(self.name, "gi", expected, got)
        if s0.shape != (self.states, samples, units):
            expected = f"the shape {(self.states, samples, units)}"
            raise ShapeError(self.name, "s0", expected, s0.shape)
        require_bias(self.name, b, numbers)
        return Spec((self.states, steps, samples, units), gi.dtype)

    def forward(
        self, mem: Memory, gi: Array, s0: Array, w: Array, b: Array | None = None
    ) -> tuple[Array, Any]:
        (steps, samples, numbers), units = gi.shape, w.shape[1]
        y = mem.empty((self.states, steps, samples, units), gi.dtype)
        rows = steps if True in mem.needs else 1
        kept = mem.empty((rows, samples, self.kept * units), gi.dtype)
        gh = mem.empty((samples, numbers), gi.dtype)
        before = s0
        for t in range(steps):
            np.matmul(before[0], w.T, out=gh)
            if b is not None:
                gh += b
            self.step(gi[t], gh, before, y[:, t], kept[t % rows])
            before = y[:, t]
        return y, (s0, w, y, kept) if True in mem.needs else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        s0, w, y, kept = saved
        steps, samples, units = y.shape[1:]
        ggi = mem.empty((steps, samples, self.gates * units), gy.dtype)
        ggh = ggi if self.shares_gates else mem.empty(ggi.shape, gy.dtype)
        g = mem.zeros(s0.shape, gy.dtype)
        through = mem.empty((samples, units), gy.dtype)
        for t in reversed(range(steps)):
            g += gy[:, t]
            self.step_back(kept[t], y[:, t - 1] if t else s0, y[:, t], g, ggi[t], ggh[t])
            np.matmul(ggh[t], w, out=through)
            g[0] += through
        return self._gradients(mem, (ggi, g), ggh, s0, w, y, needs)

    def _gradients(
        self, mem: Memory, done: tuple[Array, Array], ggh: Array, s0: Array, w: Array, y: Array,
        needs: Needs,
    ) -> Gradients:  # fmt: skip
        """All gradients, of which those of gi and s0 are done."""
        gw = gb = None
        if needs[2]:
            gw = np.matmul(ggh[0].T, s0[0], out=mem.empty(w.shape, w.dtype))
            later, units = ggh[1:].reshape(-1, len(w)), w.shape[1]
            if len(later):
                rest = y[0, :-1].reshape(-1, units)
                gw += np.matmul(later.T, rest, out=mem.empty(w.shape, w.dtype))
        if True in needs[3:]:
            gb = total(ggh, (0, 1), mem.empty((len(w),), w.dtype))
        return (*done, gw, gb)[: len(needs)]

    def forward_kernel(
        self, mem: Memory, gi: Array, s0: Array, w: Array, b: Array | None = None
    ) -> tuple[Array, Any]:
        (steps, samples, numbers), units = gi.shape, w.shape[1]
        y = mem.empty((self.states, steps, samples, units), gi.dtype)
        wanted = True in mem.needs
        kept = mem.empty((steps if wanted else 0, samples, self.kept * units), gi.dtype)
        gh = mem.empty((samples, numbers), gi.dtype)
        absent = mem.empty((0,), gi.dtype)  # a null pointer
        run = op_kernel(self.name, "recurrent_forward", gi.dtype, type(self).__name__)
        before = [s0[i] for i in range(self.states)]
        for t in range(steps):
            gemm("nt", before[0], w, gh, samples, numbers, units, mem=mem)
            after = [y[i, t] for i in range(self.states)]
            bias = absent if b is None else b
            c, c_after = (before[1], after[1]) if self.states == 2 else (absent, absent)
            own = kept[t] if wanted else absent
            size = samples * units
            for_each(run, size, gi[t], gh, bias, before[0], c, after[0], c_after, own, size, units)
            before = after
        return y, (s0, w, y, kept) if wanted else None

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        s0, w, y, kept = saved
        steps, samples, units = y.shape[1:]
        size, numbers = samples * units, len(w)
        ggi = mem.empty((steps, samples, numbers), gy.dtype)
        ggh = ggi if self.shares_gates else mem.empty(ggi.shape, gy.dtype)
        g, through = mem.zeros(s0.shape, gy.dtype), mem.zeros((samples, units), gy.dtype)
        absent = mem.empty((0,), gy.dtype)
        run = op_kernel(self.name, "recurrent_backward", gy.dtype, type(self).__name__)
        two = self.states == 2
        for t in reversed(range(steps)):
            before = y[:, t - 1] if t else s0
            of_c = (gy[1, t], before[1], y[1, t], InOut(g[1])) if two else (absent,) * 4
            other = absent if self.shares_gates else ggh[t]
            gc, c, c_after, run_c = of_c
            for_each(
                run, size, gy[0, t], gc, through, kept[t], before[0], c, y[0, t], c_after,
                InOut(g[0]), run_c, ggi[t], other, size, units,
            )  # fmt: skip
            gemm("nn", ggh[t], w, through, samples, units, numbers, mem=mem)
        total = mem.empty(s0.shape, gy.dtype)
        total[...] = g
        total[0] = above.add_arrays(mem, g[0], through)
        gw = gb = None
        if needs[2]:
            gw = mem.empty(w.shape, w.dtype)
            h = mem.empty((steps, samples, units), w.dtype)  # those before each step
            h[0], h[1:] = s0[0], y[0, :-1]
            gemm("tn", ggh, h, gw, numbers, units, steps * samples, mem=mem)
        if True in needs[3:]:
            gb = mem.empty((numbers,), w.dtype)
            column_sums(mem, ggh.reshape(steps * samples, numbers), gb)
        return (ggi, total, gw, gb)[: len(needs)]


recurrent = documented(
    """
    Parameters
    ----------
    gi : Tensor (T, N, G * H)
        What the inputs give to the gates of each step, one gate after the other: a linear layer of
        all inputs.  float32 or float64.
    s0 : Tensor (S, N, H)
        The state before the first step.
    w : Tensor (G * H, H)
        From the output of the step before to the gates.
    b : Tensor (G * H,), optional
        Bias of that.

    Returns
    -------
    Tensor (S, T, N, H)
        The state after each step.

    Raises
    ------
    ShapeError
        There is no step, or the shapes do not fit.
    DtypeError
        The inputs are not all float32 or all float64.
    """
)
