"""ReLU against its reference, and its conventions at 0, NaN and the infinities."""

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import elementwise_problems
from tinygraph.base.errors import DtypeError
from tinygraph.ops.elementwise.relu import WORTH_CLIP, Relu


class TestRelu(OpContract):
    function = staticmethod(tg.relu)
    reference = staticmethod(reference.relu)
    problems = elementwise_problems()
    large_problems = tuple(
        Problem((np.random.default_rng(n).standard_normal(n),)) for n in (1000, 2**18 + 1)
    )
    bad_input = [
        Bad("bools", (np.array([True]),), {}, DtypeError, "relu: x: expected float32, float64"),
    ]

    @pytest.mark.parametrize("dtype", ["int8", "int64", "uint8"])
    def test_kernel_of_integers(self, kernel_device, dtype):
        x = np.array([-3, 0, 5]).astype(dtype)
        y = tg.relu(tg.Tensor(x, device=kernel_device))
        assert y.dtype == dtype and y.numpy().tolist() == [max(v, 0) for v in x.tolist()]


@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_a_subclass_has_the_kernel_of_its_base(device):
    class Rectified(Relu):
        """What a user adds, such as a name of his own."""

    x = tg.Tensor([-1.0, 2.0], requires_grad=True, device=device)
    y = Rectified()(x)
    y.backward(np.array([3.0, 4.0], np.float32))
    assert y.numpy().tolist() == [0.0, 2.0]
    assert x.device.to_numpy(x.grad).tolist() == [0.0, 4.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_small_and_large_arrays_give_the_same_bits(dtype):
    """numpy's own function is chosen by size; NaN, infinities and zeros of both signs included."""
    special = [1, -1, 0] if dtype == np.int32 else [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -3]
    small = np.array(special, dtype)
    large = np.tile(small, WORTH_CLIP // len(small) + 1)
    got = tg.relu(large).value
    assert got.tobytes() == np.tile(tg.relu(small).value, WORTH_CLIP // len(small) + 1).tobytes()
