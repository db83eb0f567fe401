"""The contract that every op is held to: subclass `OpContract` once for each public function.

    class TestRelu(OpContract):
        function = staticmethod(tg.relu)            # what users call
        reference = staticmethod(reference.relu)    # naive loops, in float64
        problems = elementwise_problems()           # hypothesis strategy of Problem
        bad_input = [Bad("integers", ([1, 2],), {}, DtypeError, "float32 or float64")]

and add the tests of the conventions that are the op's own.  What is demanded stands in
tinygraph/testing/contract.py, once, for these tests and for users' `tg.testing.check_op`: it is
written against the reference and finite differences, never against the op's own numbers.

As soon as all ops of a file have a kernel, the tests named test_kernel_... run it too, on every
device that runs kernels here, and under the emulator's checker; conftest.py leaves them out before.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinygraph as tg
from tinygraph.testing.contract import DTYPES, Contract
from tinygraph.testing.demands import grad_of
from tinygraph.testing.problem import LAYOUTS, Bad, Convention, Problem, cast, laid_out

__all__ = [
    "CHECKED_EXAMPLES",
    "DTYPES",
    "KERNEL_EXAMPLES",
    "LAYOUTS",
    "Bad",
    "Convention",
    "OpContract",
    "Problem",
    "cast",
    "claims_of",
    "grad_of",
    "laid_out",
]

# A launch costs more than a call of numpy, the checker more again: fewer examples than on the cpu,
# 10 and 5 in the profiles dev and ci.
KERNEL_EXAMPLES = settings(max_examples=max(7, settings.default.max_examples // 10))
CHECKED_EXAMPLES = settings(max_examples=max(5, settings.default.max_examples // 50))
# Kernels are templates: the first tier takes the dtype that is trained with.
FLOAT32_FIRST = [np.float32, pytest.param(np.float64, marks=pytest.mark.second)]
# And on the cpu each dtype and each layout, but not each with each.
SECOND_PAIRS = list(product(DTYPES[1:], LAYOUTS[1:]))
ARRAYS = [
    pytest.param(*pair, marks=[pytest.mark.second] if pair in SECOND_PAIRS else [])
    for pair in product(DTYPES, LAYOUTS)
]


def claims_of(array, name, *pairs):
    """For values of one argument, what an op of one array claims of its samples, None for nothing.

    That a claim holds is tried on all problems; here stands where it must be made.
    """
    return [(Problem((array,), {name: value}, (True,)), claim) for value, claim in pairs]


class OpContract(Contract):
    problems: st.SearchStrategy[Problem]
    bad_input: list[Bad]
    conventions: Sequence[Convention] = ()  # zeros, infinities, ties: what is agreed there
    claims: Sequence[tuple[Problem, str | None]] = ()  # of samples, by `batch`
    large_problems: tuple[Problem, ...] = ()  # for kernels: several blocks, the last one in part

    # ---- numpy ------------------------------------------------------------------------------

    @pytest.mark.parametrize(("dtype", "layout"), ARRAYS)
    @given(data=st.data())
    def test_value_equals_reference(self, data, dtype, layout):
        self.try_value(data.draw(self.problems), dtype, layout)

    @given(data=st.data())
    def test_gradient_equals_finite_differences(self, data):
        """gradcheck also demands that nothing is changed, shared or kept."""
        if self.differentiable:
            assert self.try_gradient(data.draw(self.problems)) == "pass"

    @pytest.mark.parametrize(("dtype", "layout"), ARRAYS)
    @given(data=st.data())
    def test_gradient_in_any_dtype_and_layout(self, data, dtype, layout):
        """Against the contiguous float64 gradient, which the test above holds to mathematics."""
        if self.differentiable:
            self.try_gradient_in(data.draw(self.problems), dtype, layout)

    @given(data=st.data())
    def test_each_gradient_alone(self, data):
        if self.differentiable:
            self.try_each_gradient_alone(data.draw(self.problems))

    @given(data=st.data())
    def test_nothing_is_kept_without_gradients(self, data):
        if self.differentiable:
            self.try_nothing_kept(data.draw(self.problems))

    @given(data=st.data())
    def test_batch_claim(self, data):
        problem = data.draw(self.problems)
        self.try_batch_claim(problem, lambda n: data.draw(st.integers(0, n)))

    def test_claims(self):
        for problem, claim in self.claims:
            assert self.claim(problem) == claim, problem

    @given(data=st.data())
    def test_empty_batch(self, data):
        self.try_empty_batch(data.draw(self.problems))

    def test_conventions(self):
        for convention in self.conventions:
            self.try_convention(convention)

    def test_bad_input(self, bad):
        self.try_bad_input(bad)

    # ---- the same for kernels ---------------------------------------------------------------

    @classmethod
    def has_kernel(cls):
        """Whether every op of the function's file has a kernel; a composite has no op there."""
        module = sys.modules[cls.function.__module__]
        classes = [v for v in vars(module).values() if isinstance(v, type)]
        ops = [v for v in classes if issubclass(v, tg.Op) and v.__module__ == module.__name__]
        return all(op.forward_kernel is not tg.Op.forward_kernel for op in ops)

    def draw_call(self, data, dtype, device):
        """A problem, its leaves in some layout, some of which require a gradient."""
        problem, layout = data.draw(self.problems), data.draw(st.sampled_from(LAYOUTS))
        nodes = self.leaves(problem, dtype, layout, device=device)
        for node in nodes:
            if node.requires_grad:
                node.requires_grad = data.draw(st.integers(0, 3)) > 0
        return problem, nodes, layout

    @pytest.mark.parametrize("dtype", FLOAT32_FIRST)
    @KERNEL_EXAMPLES
    @given(data=st.data())
    def test_kernel_equals_reference(self, data, kernel_device, dtype):
        problem, nodes, layout = self.draw_call(data, dtype, kernel_device)
        self.try_kernel(problem, nodes, dtype, layout)

    @pytest.mark.parametrize("dtype", FLOAT32_FIRST)
    def test_kernel_of_more_than_one_block(self, kernel_device, dtype):
        for problem in self.large_problems:
            nodes = self.leaves(problem, dtype, device=kernel_device)
            self.try_kernel(problem, nodes, dtype, "contiguous")
            if self.differentiable and dtype is np.float32:
                self.try_nothing_kept(problem, kernel_device)

    @pytest.mark.second
    @KERNEL_EXAMPLES
    @given(data=st.data())
    def test_kernel_gives_the_same_bits_twice(self, data, kernel_device):
        self.try_same_bits(data.draw(self.problems), kernel_device)

    @KERNEL_EXAMPLES
    @given(data=st.data())
    def test_kernel_keeps_nothing_without_gradients(self, data, kernel_device):
        if self.differentiable:
            self.try_nothing_kept(data.draw(self.problems), kernel_device)

    @KERNEL_EXAMPLES
    @given(data=st.data())
    def test_kernel_of_an_empty_batch(self, data, kernel_device):
        self.try_empty_batch(data.draw(self.problems), kernel_device)

    def test_kernel_conventions(self, kernel_device):
        for convention in self.conventions:
            self.try_convention(convention, kernel_device)

    def test_kernel_bad_input(self, bad, kernel_device):
        self.try_bad_input(bad, kernel_device)

    @pytest.mark.parametrize("dtype", FLOAT32_FIRST)
    @CHECKED_EXAMPLES
    @given(data=st.data())
    def test_kernel_under_the_checker(self, data, dtype):
        problem, nodes, _ = self.draw_call(data, dtype, "emulator")
        self.try_under_the_checker(problem, nodes)

    @pytest.mark.second
    def test_kernel_of_more_than_one_block_under_the_checker(self):
        """With all gradients, and with each of them alone: the others are null pointers then."""
        for problem in self.large_problems:
            if sum(a.size for a in problem.arrays) > 20_000:
                continue  # would take a minute
            floats = {i for i, x in enumerate(self.leaves(problem)) if x.requires_grad}
            for wanted in [floats, *({i} for i in floats if len(floats) > 1)]:
                nodes = self.leaves(problem, np.float32, device="emulator")
                for i, node in enumerate(nodes):
                    node.requires_grad = i in wanted
                self.try_under_the_checker(problem, nodes)
