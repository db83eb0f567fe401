"""Cast and astype: which numbers come out, and where there is a gradient."""

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.strategies import elementwise_problems
from tinygraph.errors import DtypeError
from tinygraph.ops.cast import Cast


class TestAstype(OpContract):
    function = staticmethod(tg.astype)
    reference = staticmethod(reference.astype)
    problems = elementwise_problems(-5.0, 5.0).map(lambda p: p._replace(kwargs={"dtype": "int32"}))
    differentiable = False
    bad_input = [
        Bad("unknown", ([1.0], "float31"), {}, DtypeError, "astype: dtype: expected the name of a"),
        Bad("complex", ([1.0], "complex64"), {}, DtypeError, "cast: dtype: expected a float"),
        Bad("long double", ([1.0], np.longdouble), {}, DtypeError, "a float up to 64 bits"),
        Bad("text", ([1.0], str), {}, DtypeError, "got <U"),
    ]

    def test_the_same_dtype_is_the_same_node(self):
        x = tg.Tensor([1.0])
        assert x.astype("float32") is x and x.astype(np.float64) is not x

    def test_the_gradient_is_cast_back(self):
        x = tg.Tensor([1.0, 2.0], requires_grad=True)
        y = x.astype("float64") ** 2
        assert y.dtype == np.float64
        y.backward(np.ones(2))
        assert x.grad.dtype == np.float32 and x.grad.tolist() == [2, 4]

    def test_down_to_float32(self):
        x = tg.Tensor(np.array([0.1, 1e300]), requires_grad=True)
        y = x.astype("float32")
        assert y.value[0] == np.float32(0.1) and y.value[1] == np.inf
        y.backward(np.float32([0.1, 2]))
        assert x.grad.dtype == np.float64 and x.grad[0] == float(np.float32(0.1))

    @pytest.mark.parametrize("dtype", ["int32", "uint8", bool])
    def test_no_gradient_through_integers_and_bools(self, dtype):
        x = tg.Tensor([0.0, 2.0], requires_grad=True)
        y = x.astype(dtype)
        assert not y.requires_grad and not y.astype("float32").requires_grad
        assert y.astype("float32").value.tolist() == [0, 1 if dtype is bool else 2]


class TestCast(OpContract):
    """The node itself, to the dtype that x has already: the identity."""

    function = staticmethod(lambda x: Cast(x.dtype)(x))
    reference = staticmethod(reference.astype)
    problems = elementwise_problems()
    bad_input = [Bad("complex", (np.ones(2, complex),), {}, DtypeError, "floats up to 64 bits")]
