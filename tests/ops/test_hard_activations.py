"""hardtanh, relu6, hardsigmoid and hardswish against their references, and at their bends."""

import math

import numpy as np
import pytest

import tinygraph as tg
from tests.op_contract import Bad
from tests.reference import elementwise
from tests.unary_contract import INTEGERS, UnaryContract, edges
from tinygraph.base.errors import ArgumentError

inf, nan = math.inf, math.nan


def gate(v):
    return min(max(v + 3, 0), 6) / 6


class TestHardtanh(UnaryContract):
    function = staticmethod(tg.hardtanh)
    reference = staticmethod(
        lambda x, min_val=-1.0, max_val=1.0: elementwise(lambda v: min(max(v, min_val), max_val), x)
    )
    takes = INTEGERS
    settings = {}, {"min_val": -0.3}, {"min_val": 0, "max_val": 1.7}
    conventions = [
        edges((-1.0, -1.0, 0.0), (1.0, 1.0, 0.0), (-inf, -1.0, 0.0), (0.0, 0.0, 1.0)),
        edges((nan, nan, 1.0)),
    ]
    bad_settings = (
        Bad("bounds", ([1.0], 2.0, 2.0), {}, ArgumentError, "max_val: expected a number above 2"),
        Bad("a bound", ([1.0], -inf), {}, ArgumentError, "min_val: expected a finite number"),
        Bad(
            "a bound that no element is",
            (np.uint8([1]),),
            {},
            ArgumentError,
            "hardtanh: min_val: expected a number that uint8",
        ),
    )

    @pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
    def test_kernel_of_integers(self, kernel_device, dtype):
        """The fractions of the bounds are cut off, as in PyTorch."""
        x = tg.Tensor(np.arange(-4, 5, dtype=dtype), device=kernel_device)
        y = tg.hardtanh(x, -2.9, 3.9)
        assert y.dtype == dtype and y.numpy().tolist() == [-2, -2, -2, -1, 0, 1, 2, 3, 3]


class TestRelu6(UnaryContract):
    function = staticmethod(tg.relu6)
    reference = staticmethod(lambda x: elementwise(lambda v: min(max(v, 0), 6), x))
    takes = INTEGERS
    interval = -8.0, 8.0
    conventions = [edges((0.0, 0.0, 0.0), (6.0, 6.0, 0.0), (inf, 6.0, 0.0), (nan, nan, 1.0))]

    @pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
    def test_kernel_of_integers(self, kernel_device, dtype):
        x = np.array([-3, 0, 5, 7, 100]).astype(dtype)
        y = tg.relu6(tg.Tensor(x, device=kernel_device))
        assert y.dtype == dtype
        assert y.numpy().tolist() == [min(max(v, 0), 6) for v in x.tolist()]


class TestHardsigmoid(UnaryContract):
    function = staticmethod(tg.hardsigmoid)
    reference = staticmethod(lambda x: elementwise(gate, x))
    interval = -5.0, 5.0
    conventions = [edges((-3.0, 0.0, 0.0), (3.0, 1.0, 0.0), (-inf, 0.0, 0.0), (0.0, 0.5, 1 / 6))]


class TestHardswish(UnaryContract):
    function = staticmethod(tg.hardswish)
    reference = staticmethod(lambda x: elementwise(lambda v: v * gate(v), x))
    interval = -5.0, 5.0
    conventions = [
        edges((-3.0, -0.0, 0.0), (3.0, 3.0, 1.0), (-inf, -0.0, 0.0), (inf, inf, 1.0)),
        edges((0.0, 0.0, 0.5), (1e300, 1e300, 1.0), (nan, nan, nan)),
    ]
