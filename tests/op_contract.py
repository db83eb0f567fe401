"""The contract that every op is held to: subclass `OpContract` once for each public function.

    class TestRelu(OpContract):
        function = staticmethod(tg.relu)            # what users call
        reference = staticmethod(reference.relu)    # naive loops, in float64
        problems = elementwise_problems()           # hypothesis strategy of Problem
        bad_input = [Bad("integers", ([1, 2],), {}, DtypeError, "float32 or float64")]

and add the tests of the conventions that are the op's own.  The tests here are written against the
mathematics of the reference and finite differences, never against the op's own numbers.

As soon as all ops of a file have a kernel, the tests named test_kernel_... run it too, on every
device that runs kernels here, and under the emulator's checker; conftest.py leaves them out before.
"""

from __future__ import annotations

import math
import re
import sys
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinygraph as tg
from tinygraph.device import get_device
from tinygraph.memory import Memory
from tinygraph.random import uniform

LAYOUTS = ["contiguous", "sliced", "transposed", "reversed"]
DTYPES = [np.float32, np.float64]

# A launch costs more than a call of numpy, the checker more again: fewer examples than on the cpu,
# 10 and 5 in the profiles dev and ci.
KERNEL_EXAMPLES = settings(max_examples=max(10, settings.default.max_examples // 10))
CHECKED_EXAMPLES = settings(max_examples=max(5, settings.default.max_examples // 50))


class Problem(NamedTuple):
    """One call: array arguments (float64 or integers), keywords, and which arrays hold samples.

    `args` may hold None for an optional array that is left out.  `carries` marks the arrays whose
    axis 0 is the batch; None means that the problem has no batch axis.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = {}  # never changed
    carries: tuple[bool, ...] | None = None


class Bad(NamedTuple):
    """A wrong call, the error it must raise, and words that the message must contain."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    error: type[Exception]
    words: str


def cast(array, dtype):
    """Floats to the dtype under test; integers and None stay."""
    return array.astype(dtype) if array is not None and array.dtype.kind == "f" else array


def laid_out(array, layout, device="cpu"):
    """The same numbers with other strides, on a device."""
    device = get_device(device)
    if array is None or array.ndim == 0 or layout == "contiguous":
        return array if array is None else device.from_numpy(array)
    if layout == "sliced":
        room = np.zeros([2 * n + 1 for n in array.shape], array.dtype)
        index = tuple(slice(1, 2 * n + 1, 2) for n in array.shape)
    elif layout == "transposed":
        room = np.empty(array.shape[::-1], array.dtype)
        room.T[...] = array
        return device.from_numpy(room).T
    else:
        room = np.empty(array.shape, array.dtype)
        index = tuple(slice(None, None, -1) for _ in array.shape)
    room[index] = array
    return device.from_numpy(room)[index]


def grad_of(node):
    """A node's gradient on the host."""
    return node.device.to_numpy(node.grad)


class TileMemory(Memory):
    """What a plan gives the op on a tile: streams that go on at the tile's first sample."""

    def __init__(self, device, needs, first):
        super().__init__(device, needs)
        self.first, self.stream = first, 0

    def random(self, shape, dtype=np.float32):
        self.stream += 1
        return uniform(shape, dtype, 0, self.stream, first=self.first * math.prod(shape[1:]))


def on_tile(op, inputs, carries, tile):
    """The value of an op on a slice of the samples."""
    values = [x.value[tile] if c else x.value for x, c in zip(inputs, carries, strict=True)]

    def tile_memory(needs, device):
        return TileMemory(device, needs, tile.start)

    with mock.patch("tinygraph.op.eager_memory", tile_memory):
        return op(*[tg.Tensor(v) for v in values]).value


class OpContract:
    function: Any
    reference: Any
    problems: st.SearchStrategy[Problem]
    bad_input: list[Bad]
    tolerance = 1.0  # widens the float bounds of an op that sums more than usual
    differentiable = True
    constants: tuple[int, ...] = ()  # positions of float arguments that never require a gradient
    large_problems: tuple[Problem, ...] = ()  # for kernels: several blocks, the last one in part

    # ---- how the op is called ---------------------------------------------------------------

    def leaves(
        self, problem, dtype=np.float64, layout="contiguous", requires_grad=True, device="cpu"
    ):
        """One leaf for each array; the arrays keep the layout, as leaves made by ops do."""
        nodes = []
        for position, a in enumerate(problem.args):
            if a is None:
                continue
            node = tg.Tensor(0.0, device=device)
            node.value = laid_out(cast(a, dtype), layout, device)
            variable = a.dtype.kind == "f" and position not in self.constants
            node.requires_grad = requires_grad and variable
            nodes.append(node)
        return nodes

    def apply(self, problem, nodes):
        """Call the function with nodes in the place of the problem's arrays."""
        left = iter(nodes)
        args = [None if a is None else next(left) for a in problem.args]
        return self.function(*args, **problem.kwargs)

    def bound(self, dtype, expected):
        """How far a result may be from the float64 one: a few roundings of its largest part."""
        size = float(np.max(np.abs(expected[np.isfinite(expected)]), initial=1.0))
        return self.tolerance * size * (2e-6 if dtype == np.float32 else 1e-12)

    def upstream(self, y, seed=0):
        return np.random.default_rng(seed).standard_normal(y.shape)

    # ---- the contract -----------------------------------------------------------------------

    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("dtype", DTYPES)
    @given(data=st.data())
    def test_value_equals_reference(self, data, dtype, layout):
        problem = data.draw(self.problems)
        self.compare_with_reference(
            self.apply(problem, self.leaves(problem, dtype, layout)), problem, dtype
        )

    def compare_with_reference(self, y, problem, dtype):
        """The value of a node with what naive loops give for the arguments in that dtype."""
        rounded = [None if a is None else cast(cast(a, dtype), np.float64) for a in problem.args]
        expected = np.asarray(self.reference(*rounded, **problem.kwargs))
        assert y.shape == expected.shape
        if expected.dtype.kind == "f":
            assert y.dtype == dtype
            np.testing.assert_allclose(
                y.numpy(), expected, rtol=1e-5, atol=self.bound(dtype, expected)
            )
        else:
            np.testing.assert_array_equal(y.numpy(), expected)

    @given(data=st.data())
    def test_gradient_equals_finite_differences(self, data):
        if not self.differentiable:
            return
        problem = data.draw(self.problems)
        arrays = [a for a in problem.args if a is not None]
        wrt = [i for i, node in enumerate(self.leaves(problem)) if node.requires_grad]
        report = tg.testing.gradcheck(lambda *nodes: self.apply(problem, nodes), arrays, wrt)
        assert report.verdict == "pass", report.diagnosis

    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("dtype", DTYPES)
    @given(data=st.data())
    def test_gradient_in_any_dtype_and_layout(self, data, dtype, layout):
        """Against the contiguous float64 gradient, which the test above holds to mathematics."""
        if not self.differentiable:
            return
        problem = data.draw(self.problems)
        nodes = self.leaves(problem, dtype, layout)
        self.compare_with_exact_gradient(self.apply(problem, nodes), nodes, problem, dtype, layout)

    def compare_with_exact_gradient(self, y, nodes, problem, dtype, layout):
        """The gradients below y with those that numpy gives for contiguous float64 arrays."""
        rounded = problem._replace(args=tuple(cast(a, dtype) for a in map(_own, problem.args)))
        exact = self.leaves(rounded)
        z = self.apply(problem, exact)
        g = self.upstream(z).astype(dtype)
        z.backward(g)
        y.backward(laid_out(g, layout, y.device))
        for a, b in zip(exact, nodes, strict=True):
            if b.requires_grad:
                assert b.grad.dtype == dtype and b.grad.shape == b.shape
                np.testing.assert_allclose(
                    grad_of(b), a.grad, rtol=1e-4, atol=10 * self.bound(dtype, a.grad)
                )

    @given(data=st.data())
    def test_nothing_is_mutated_and_nothing_is_shared(self, data):
        if not self.differentiable:
            return
        problem = data.draw(self.problems)
        nodes = self.leaves(problem)
        before = [node.value.copy() for node in nodes]
        y = self.apply(problem, nodes)
        g = self.upstream(y)
        g_before = g.copy()
        y.backward(g, retain_graph=True)
        first = [None if node.grad is None else node.grad.copy() for node in nodes]
        for node in nodes:
            node.grad = None
        y.backward(g)
        np.testing.assert_array_equal(g, g_before)
        written = {y.inputs[i] for i in y.op.updates} if y.op else set()
        for node, value, grad in zip(nodes, before, first, strict=True):
            if node not in written:
                np.testing.assert_array_equal(node.value, value)
            if grad is not None:
                assert grad.tobytes() == node.grad.tobytes()  # the same bits when run twice
        arrays = [node.grad for node in nodes if node.grad is not None and node.grad.size]
        others = [node.value for node in nodes] + [g, y.value]
        for i, a in enumerate(arrays):
            assert not any(np.shares_memory(a, b) for b in [*arrays[:i], *others])

    @given(data=st.data())
    def test_each_gradient_alone(self, data):
        """With one input wanted, its gradient is the same and the others are not computed."""
        if not self.differentiable:
            return
        problem = data.draw(self.problems)
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
            np.testing.assert_allclose(nodes[i].grad, wanted.grad, rtol=1e-12, atol=1e-12)
            assert all(node.grad is None for j, node in enumerate(nodes) if j != i)

    @given(data=st.data())
    def test_batch_claim(self, data):
        """What `batch` promises a plan: the op on two tiles, joined or summed, is the op on all.

        A tile draws the random numbers of its own samples, as in a plan.
        """
        problem = data.draw(self.problems)
        y, inputs, carries = self.last_op(problem)
        claim = carries and y.op.batch(tuple(x.spec for x in inputs), carries)
        if not claim:
            return
        n = next(len(x) for x, carried in zip(inputs, carries, strict=True) if carried)
        cut = data.draw(st.integers(0, n))
        whole = on_tile(y.op, inputs, carries, slice(0, n))
        tiles = [tile for tile in (slice(0, cut), slice(cut, n)) if tile.start < tile.stop]
        parts = [on_tile(y.op, inputs, carries, tile) for tile in tiles]
        if claim == "map":
            joined = np.concatenate(parts)
        else:
            scales = [y.op.tile_scale(tile.stop - tile.start, n) for tile in tiles]
            joined = sum(part * scale for part, scale in zip(parts, scales, strict=True))
        np.testing.assert_allclose(joined, whole, rtol=1e-10, atol=1e-10)

    @given(data=st.data())
    def test_empty_batch(self, data):
        """No sample: an empty output or an empty sum; gradients of shared inputs are zeros."""
        self.try_empty_batch(data.draw(self.problems), "cpu")

    def try_empty_batch(self, problem, device):
        y, inputs, carries = self.last_op(problem)
        claim = carries and y.op.batch(tuple(x.spec for x in inputs), carries)
        if not claim:
            return
        nodes = [tg.Tensor(x.value[:0] if c else x.value, x.dtype.kind == "f", device=device)
                 for x, c in zip(inputs, carries, strict=True)]  # fmt: skip
        empty = y.op(*nodes)
        assert empty.shape == ((0, *y.shape[1:]) if claim == "map" else y.shape)
        if not self.differentiable:
            return
        empty.backward(np.ones(empty.shape))
        for node in nodes:
            if node.grad is not None:
                assert node.grad.shape == node.shape and not np.any(grad_of(node))

    def last_op(self, problem):
        """The op of the last node, its inputs, and which of them carry the problem's samples."""
        nodes = self.leaves(problem)
        y = self.apply(problem, nodes)
        carried = dict(zip(nodes, problem.carries or (), strict=False))
        return y, y.inputs, tuple(carried.get(x, False) for x in y.inputs) if carried else ()

    # ---- the same for kernels ---------------------------------------------------------------

    @classmethod
    def has_kernel(cls):
        """Whether every op of the function's file has a kernel."""
        module = sys.modules[cls.function.__module__]
        classes = [v for v in vars(module).values() if isinstance(v, type)]
        ops = [v for v in classes if issubclass(v, tg.Op) and v.__module__ == module.__name__]
        return bool(ops) and all(op.forward_kernel is not tg.Op.forward_kernel for op in ops)

    def draw_call(self, data, dtype, device):
        """A problem, its leaves in some layout, some of which require a gradient."""
        problem, layout = data.draw(self.problems), data.draw(st.sampled_from(LAYOUTS))
        nodes = self.leaves(problem, dtype, layout, device=device)
        for node in nodes:
            if node.requires_grad:
                node.requires_grad = data.draw(st.integers(0, 3)) > 0
        return problem, nodes, layout

    @pytest.mark.parametrize("dtype", DTYPES)
    @KERNEL_EXAMPLES
    @given(data=st.data())
    def test_kernel_equals_reference(self, data, kernel_device, dtype):
        problem, nodes, layout = self.draw_call(data, dtype, kernel_device)
        y = self.apply(problem, nodes)
        assert y.device == kernel_device
        self.compare_with_reference(y, problem, dtype)
        if self.differentiable and y.requires_grad:
            self.compare_with_exact_gradient(y, nodes, problem, dtype, layout)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_kernel_of_more_than_one_block(self, kernel_device, dtype):
        for problem in self.large_problems:
            nodes = self.leaves(problem, dtype, device=kernel_device)
            y = self.apply(problem, nodes)
            self.compare_with_reference(y, problem, dtype)
            if self.differentiable:
                self.compare_with_exact_gradient(y, nodes, problem, dtype, "contiguous")

    @KERNEL_EXAMPLES
    @given(data=st.data())
    def test_kernel_gives_the_same_bits_twice(self, data, kernel_device):
        problem = data.draw(self.problems)
        bits = set()
        for _ in range(2):
            nodes = self.leaves(problem, np.float32, device=kernel_device)
            y = self.apply(problem, nodes)
            if self.differentiable:
                y.backward(self.upstream(y))
            arrays = [y.numpy(), *[x.device.to_numpy(x.grad) for x in nodes if x.grad is not None]]
            bits.add(b"".join(a.tobytes() for a in arrays))
        assert len(bits) == 1

    @KERNEL_EXAMPLES
    @given(data=st.data())
    def test_kernel_of_an_empty_batch(self, data, kernel_device):
        self.try_empty_batch(data.draw(self.problems), kernel_device)

    @pytest.mark.parametrize("dtype", DTYPES)
    @CHECKED_EXAMPLES
    @given(data=st.data())
    def test_kernel_under_the_checker(self, data, dtype):
        """No race, nothing out of bounds, nothing read before it was written, nothing left out."""
        problem, nodes, _ = self.draw_call(data, dtype, "emulator")
        self.run_under_the_checker(problem, nodes)

    def test_kernel_of_more_than_one_block_under_the_checker(self):
        """With all gradients, and with each of them alone: the others are null pointers then."""
        for problem in self.large_problems:
            if sum(a.size for a in problem.args if a is not None) > 20_000:
                continue  # would take a minute
            floats = {i for i, x in enumerate(self.leaves(problem)) if x.requires_grad}
            for wanted in [floats, *({i} for i in floats if len(floats) > 1)]:
                nodes = self.leaves(problem, np.float32, device="emulator")
                for i, node in enumerate(nodes):
                    node.requires_grad = i in wanted
                self.run_under_the_checker(problem, nodes)

    def run_under_the_checker(self, problem, nodes):
        with tg.cuda.checking():
            y = self.apply(problem, nodes)
            if self.differentiable and y.requires_grad:
                y.backward(self.upstream(y))

    def test_bad_input(self, bad):
        with pytest.raises(bad.error, match=re.escape(bad.words)) as caught:
            self.function(*bad.args, **bad.kwargs)
        assert isinstance(caught.value, tg.errors.TinygraphError), "a bare error from deep inside"


def _own(array):
    return None if array is None else array.copy()
