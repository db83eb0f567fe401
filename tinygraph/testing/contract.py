"""What an op must do, written once: for our own ops (tests/op_contract.py) and users' (`check_op`).

Each method takes one problem, tries one demand on it, and raises AssertionError where it is not
met.  Values are held to a reference, gradients to finite differences; the rest of the contract says
that the op neither changes its inputs, nor keeps state, nor claims more of a batch than is so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Literal

import numpy as np

from tinygraph.base import TinygraphError
from tinygraph.cuda import checking
from tinygraph.engine import Array, Device, Tensor, get_device, no_grad
from tinygraph.testing.demands import (
    arrays_in,
    demand,
    divisor_on_tile,
    exactly_equal,
    grad_of,
    on_device,
    on_tile,
    samples_of,
)
from tinygraph.testing.gradcheck import gradcheck
from tinygraph.testing.problem import Bad, Convention, Problem, cast, laid_out

DTYPES: tuple[Any, ...] = (np.float32, np.float64)


class Contract:
    """The demands on one function of tensors; subclass it, or fill its attributes.

    Attributes
    ----------
    function : callable
        The op as users call it: tensors, then keywords.
    reference : callable
        The same from float64 arrays, by other means than the op's.
    tolerance : float
        Widens the float bounds of an op that sums more than usual.
    differentiable : bool
    constants : tuple of int
        Positions of float arguments that never require a gradient.
    """

    function: Any
    reference: Any
    tolerance = 1.0
    differentiable = True
    constants: tuple[int, ...] = ()

    # ---- how the op is called ---------------------------------------------------------------

    def leaves(
        self,
        problem: Problem,
        dtype: Any = np.float64,
        layout: str = "contiguous",
        requires_grad: bool = True,
        device: str | Device = "cpu",
    ) -> list[Tensor]:
        """One leaf for each array; the arrays keep the layout, as leaves made by ops do."""
        nodes = []
        for position, a in enumerate(problem.args):
            if a is None:
                continue
            node = Tensor(0.0, device=device)
            node.value = laid_out(cast(a, dtype), layout, device)
            variable = a.dtype.kind == "f" and position not in self.constants
            node.requires_grad = requires_grad and self.differentiable and variable
            nodes.append(node)
        return nodes

    def apply(self, problem: Problem, nodes: Sequence[Tensor]) -> Tensor:
        """Call the function with nodes in the place of the problem's arrays."""
        left = iter(nodes)
        args = [None if a is None else next(left) for a in problem.args]
        y: Tensor = problem.call(self.function, args)
        return y

    def bound(self, dtype: Any, expected: Array) -> float:
        """How far a result may be from the float64 one: a few roundings of its largest part."""
        size = float(np.max(np.abs(expected[np.isfinite(expected)]), initial=1.0))
        return self.tolerance * size * (2e-6 if dtype == np.float32 else 1e-12)

    def upstream(self, y: Tensor, seed: int = 0) -> Array:
        """A random upstream gradient: one of ones hides mistakes."""
        return np.asarray(np.random.default_rng(seed).standard_normal(y.shape))

    # ---- values -----------------------------------------------------------------------------

    def try_value(
        self, problem: Problem, dtype: Any, layout: str, device: str | Device = "cpu"
    ) -> None:
        """The value is that of the reference, in the dtype, for arrays with any strides."""
        y = self.apply(problem, self.leaves(problem, dtype, layout, device=device))
        self.compare_with_reference(y, problem, dtype)

    def compare_with_reference(self, y: Tensor, problem: Problem, dtype: Any) -> None:
        """The value of a node with what the reference gives for the arguments in that dtype."""
        rounded = [None if a is None else cast(cast(a, dtype), np.float64) for a in problem.args]
        expected = np.asarray(problem.call(self.reference, rounded))
        demand(
            y.shape == expected.shape,
            f"the value has shape {y.shape}, the reference {expected.shape}",
        )
        if expected.dtype.kind != "f":
            np.testing.assert_array_equal(y.numpy(), expected, "value and reference differ")
            return
        demand(y.dtype == dtype, f"the value of {np.dtype(dtype)} arguments has dtype {y.dtype}")
        np.testing.assert_allclose(
            y.numpy(),
            expected,
            rtol=1e-5,
            atol=self.bound(dtype, expected),
            err_msg="the value (ACTUAL) differs from the reference (DESIRED)",
        )

    def try_convention(self, convention: Convention, device: str | Device = "cpu") -> None:
        """Value and gradients at a point, exactly, with NaN and the signs of zeros."""
        arrays = tuple(None if a is None else np.asarray(a) for a in convention.args)
        problem = Problem(arrays, convention.kwargs)
        nodes = self.leaves(problem, np.float64, device=device)
        y = self.apply(problem, nodes)
        exactly_equal(y.numpy(), convention.value, f"{convention.name}: value")
        if convention.gradients:
            y.backward(np.ones(y.shape))
            for i, (node, expected) in enumerate(zip(nodes, convention.gradients, strict=True)):
                if expected is not None:
                    what = f"{convention.name}: gradient of input {i}"
                    demand(node.grad is not None, f"{what} is missing")
                    exactly_equal(grad_of(node), expected, what)

    # ---- gradients --------------------------------------------------------------------------

    def try_gradient(self, problem: Problem) -> str:
        """The gradient is that of finite differences; gradcheck's verdict, "fail" apart."""
        wrt = [i for i, node in enumerate(self.leaves(problem)) if node.requires_grad]
        arrays = problem.arrays

        def call(*nodes: Tensor) -> Tensor:
            return self.apply(problem, nodes)

        call.__name__ = getattr(self.function, "__name__", call.__name__)
        report = gradcheck(call, arrays, wrt)
        return str(report.verdict)

    def try_gradient_in(
        self, problem: Problem, dtype: Any, layout: str, device: str | Device = "cpu"
    ) -> None:
        """The same gradient in any dtype and layout as for contiguous float64 arrays."""
        nodes = self.leaves(problem, dtype, layout, device=device)
        self.compare_with_exact_gradient(self.apply(problem, nodes), nodes, problem, dtype, layout)

    def compare_with_exact_gradient(
        self, y: Tensor, nodes: Sequence[Tensor], problem: Problem, dtype: Any, layout: str
    ) -> None:
        """The gradients below y with those that numpy gives for contiguous float64 arrays."""
        copies = [None if a is None else cast(a.copy(), dtype) for a in problem.args]
        rounded = problem._replace(args=tuple(copies))
        exact = self.leaves(rounded)
        z = self.apply(problem, exact)
        g = self.upstream(z).astype(dtype)
        z.backward(g)
        y.backward(laid_out(g, layout, y.device))
        for i, (a, b) in enumerate(zip(exact, nodes, strict=True)):
            if b.requires_grad:
                got, exactly = grad_of(b), grad_of(a)
                demand(
                    got.dtype == dtype and got.shape == b.shape,
                    f"the gradient of input {i} is not like the input",
                )
                np.testing.assert_allclose(
                    got,
                    exactly,
                    rtol=1e-4,
                    atol=10 * self.bound(dtype, exactly),
                    err_msg=f"the gradient of input {i} differs from that in contiguous float64",
                )

    def try_each_gradient_alone(self, problem: Problem) -> None:
        """With one input wanted, its gradient is the same and the others are not computed."""
        together = self.leaves(problem)
        y = self.apply(problem, together)
        g = self.upstream(y)
        y.backward(g)
        for i, wanted in enumerate(together):
            if not wanted.requires_grad:
                continue
            nodes = self.leaves(problem, requires_grad=False)
            nodes[i].requires_grad = True
            self.apply(problem, nodes).backward(g)
            np.testing.assert_allclose(
                grad_of(nodes[i]),
                grad_of(wanted),
                rtol=1e-12,
                atol=1e-12,
                err_msg=f"the gradient of input {i} differs where it alone is wanted",
            )
            others = [node for j, node in enumerate(nodes) if j != i]
            demand(
                all(node.grad is None for node in others),
                "an input that requires no gradient was given one",
            )

    def try_nothing_kept(self, problem: Problem, device: str | Device = "cpu") -> None:
        """Where no gradient is wanted, no array is kept but those that the node has anyway."""
        y = self.apply(problem, self.leaves(problem, requires_grad=False, device=device))
        there = [x.value for x in (y, *y.inputs)]
        kept = [a for a in arrays_in(y.saved) if a.size]
        demand(
            all(any(np.shares_memory(a, b) for b in there) for a in kept),
            "without gradients forward keeps arrays: `saved if True in mem.needs else None`",
        )

    # ---- the batch --------------------------------------------------------------------------

    def last_op(self, problem: Problem) -> tuple[Tensor, tuple[Tensor, ...], tuple[bool, ...]]:
        """The last node, its inputs, and which of them carry the problem's samples.

        A function that applies several ops claims nothing by itself: then there are none.
        """
        nodes = self.leaves(problem)
        y = self.apply(problem, nodes)
        carried = dict(zip(nodes, problem.carries or (), strict=False))
        composite = any(x.op is not None for x in y.inputs)
        carries = tuple([carried.get(x, False) for x in y.inputs])
        return y, y.inputs, carries if carried and not composite else ()

    def claim(self, problem: Problem) -> Literal["map", "sum"] | None:
        """What the op says of the samples in this problem; of rows that no sample has, nothing."""
        y, inputs, carries = self.last_op(problem)
        if y.op is None or not carries:
            return None
        claim = y.op.batch(tuple(x.spec for x in inputs), carries)
        rows = y.shape[0] % max(1, samples_of(inputs, carries)) if claim == "map" else 0
        return None if rows else claim

    def try_batch_claim(self, problem: Problem, choose: Callable[[int], int]) -> None:
        """What `batch` promises a plan: the op on two tiles, joined or summed, is the op on all.

        `choose(n)` says after how many of n samples the batch is cut.  A tile draws the random
        numbers of its own samples, as in a plan.
        """
        y, inputs, carries = self.last_op(problem)
        claim = self.claim(problem)
        if not claim:
            return
        n = samples_of(inputs, carries)
        if not n:
            return  # nothing can be cut: see try_empty_batch
        cut = choose(n)
        whole = on_tile(y.op, inputs, carries, slice(0, n))
        tiles = [tile for tile in (slice(0, cut), slice(cut, n)) if tile.start < tile.stop]
        parts = [on_tile(y.op, inputs, carries, tile) for tile in tiles]
        if claim == "map":
            joined = np.concatenate(parts)
        else:
            divisors = [divisor_on_tile(y.op, inputs, carries, t) for t in (slice(0, n), *tiles)]
            with np.errstate(all="ignore"):  # 0 / 0 where no term counts
                scales = np.divide(divisors[1:], divisors[0])
            shares = [p * s if s else np.zeros_like(p) for p, s in zip(parts, scales, strict=True)]
            joined = np.sum(shares, axis=0)
        demand(
            joined.shape == whole.shape,
            f"batch claims {claim!r}: tiles give {joined.shape}, the whole batch {whole.shape}",
        )
        np.testing.assert_allclose(
            joined,
            whole,
            rtol=1e-10,
            atol=1e-10,
            err_msg=f"batch claims {claim!r}, but {n} samples cut after {cut} give another value",
        )

    def try_empty_batch(self, problem: Problem, device: str | Device = "cpu") -> None:
        """No sample: an empty output or an empty sum; gradients of shared inputs are zeros."""
        y, inputs, carries = self.last_op(problem)
        claim = self.claim(problem)
        if not claim:
            return
        nodes = [
            Tensor(x.value[:0] if c else x.value, x.dtype.kind == "f", device=device)
            for x, c in zip(inputs, carries, strict=True)
        ]
        empty = y.op(*nodes)
        expected = (0, *y.shape[1:]) if claim == "map" else y.shape
        demand(
            empty.shape == expected,
            f"without a sample the value has shape {empty.shape}, not {expected}",
        )
        if not self.differentiable:
            return
        empty.backward(np.ones(empty.shape))
        for i, node in enumerate(nodes):
            if node.grad is not None:
                demand(
                    node.grad.shape == node.shape and not np.any(grad_of(node)),
                    f"without a sample the gradient of input {i} is not zero",
                )

    # ---- kernels ----------------------------------------------------------------------------

    def try_kernel(
        self, problem: Problem, nodes: Sequence[Tensor], dtype: Any, layout: str
    ) -> None:
        """Value and gradients of the kernels, for leaves on a device that runs them."""
        y = self.apply(problem, nodes)
        demand(y.device == nodes[0].device, f"the value is on {y.device}")
        self.compare_with_reference(y, problem, dtype)
        if self.differentiable and y.requires_grad:
            self.compare_with_exact_gradient(y, nodes, problem, dtype, layout)

    def try_same_bits(self, problem: Problem, device: str | Device) -> None:
        """Two runs agree in every bit."""
        bits = set()
        for _ in range(2):
            nodes = self.leaves(problem, np.float32, device=device)
            y = self.apply(problem, nodes)
            if self.differentiable:
                y.backward(self.upstream(y))
            arrays = [y.numpy(), *[grad_of(x) for x in nodes if x.grad is not None]]
            bits.add(b"".join(a.tobytes() for a in arrays))
        demand(len(bits) == 1, f"two runs on {device} differ")

    def try_under_the_checker(self, problem: Problem, nodes: Sequence[Tensor]) -> None:
        """No race, nothing out of bounds, nothing read before it was written, nothing left out."""
        with checking():
            y = self.apply(problem, nodes)
            if self.differentiable and y.requires_grad:
                y.backward(self.upstream(y))

    # ---- what is refused --------------------------------------------------------------------

    def try_bad_input(self, bad: Bad, device: str | Device = "cpu") -> None:
        """The error has the class, is one of tinygraph's, and has the words."""
        args = bad.args if device == "cpu" else [on_device(a, device) for a in bad.args]
        try:
            # Without a graph an op looks at values at once, on a GPU too.
            with nullcontext() if get_device(device).on_host else no_grad():
                self.function(*args, **bad.kwargs)
        except Exception as error:
            got = f"{type(error).__name__}: {error}"
            demand(
                isinstance(error, bad.error),
                f"{bad.name}: raised {got}; expected {bad.error.__name__}",
            )
            demand(
                isinstance(error, TinygraphError),
                f"{bad.name}: a bare error from deep inside: {got}",
            )
            demand(bad.words in str(error), f"{bad.name}: {bad.words!r} is not in: {error}")
        else:
            raise AssertionError(f"{bad.name}: accepted; expected {bad.error.__name__}")
