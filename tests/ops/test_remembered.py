"""What is remembered of shapes, dtypes and precision: what else may change between calls does."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import DtypeError, ShapeError
from tinygraph.base.frozen import frozen
from tinygraph.cuda import recording
from tinygraph.ops.products.linear import Linear

F = np.float32


def tensor(array, device, dtype=F):
    return tg.Tensor(np.asarray(array, dtype), device=device)


@pytest.fixture
def precision():
    before = tg.get_float32_matmul_precision()
    yield tg.set_float32_matmul_precision
    tg.set_float32_matmul_precision(before)


@pytest.mark.parametrize(
    "product",
    [
        lambda x: tg.linear(x, x),
        lambda x: tg.linear(x, x, x[0]),
        lambda x: x @ x,
        lambda x: tg.conv2d(x.reshape(1, 20, 4, 5), x.reshape(20, 20, 1, 1)),
    ],
    ids=["linear without bias", "linear", "matmul", "conv2d"],
)
def test_a_change_of_precision_is_heeded_back_and_forth(precision, product):
    x = tensor(np.arange(400).reshape(20, 20), "emulator")

    def macros(name):
        precision(name)
        with recording(execute=False) as launches:
            product(x)
        return dict(launches[-1].kernel.source.defines).get("GEMM_MMA", 0)

    names = ["highest", "high", "medium", "high", "highest"]
    assert [int(macros(name)) for name in names] == [0, 19, 16, 19, 0]


@pytest.mark.second
@pytest.mark.parametrize(
    "op",
    [tg.relu, lambda x: x + x[0], lambda x: x @ x, lambda x: x.sum(0), tg.softmax, tg.exp],
    ids=["relu", "add", "matmul", "sum", "softmax", "exp"],
)
def test_the_same_shapes_on_other_devices_and_of_another_dtype(rehearsed_cuda, op):
    numbers = np.random.default_rng(0).standard_normal((5, 5))
    for dtype in (np.float32, np.float64, np.float32):
        want = op(tensor(numbers, "cpu", dtype)).numpy()
        for device in ("emulator", "cuda", "emulator"):
            got = op(tensor(numbers, device, dtype))
            assert got.device == device and got.dtype == dtype
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)


def test_minus_zero_is_another_hyper_parameter_than_zero(kernel_device):
    x = tensor([-1.0, 2.0], kernel_device)
    for slope in (0.0, -0.0, 0.0):
        y = tg.leaky_relu(x, slope).numpy()
        assert np.signbit(y[0]) == np.signbit(-1.0 * slope) and y[1] == 2


def test_hyper_parameters_of_the_same_shapes_are_told_apart(kernel_device):
    x = tensor([-1.0, 2.0], kernel_device)
    for slope in (0.5, 0.25, 0.5):
        np.testing.assert_array_equal(tg.leaky_relu(x, slope).numpy(), [-slope, 2])
    for low, high in ((0, 1), (-0.5, None), (None, 0.5)):
        np.testing.assert_array_equal(
            tg.clip(x, low, high).numpy(), np.clip([-1.0, 2.0], low, high)
        )


def test_shapes_of_one_size_are_told_apart(kernel_device):
    numbers = np.arange(12.0)
    for shape, other in (((3, 4), (4,)), ((4, 3), (3,)), ((2, 6), (2, 1)), ((3, 4), (3, 1))):
        x, y = numbers.reshape(shape), np.arange(float(np.prod(other))).reshape(other)
        got = tensor(x, kernel_device) + tensor(y, kernel_device)
        np.testing.assert_array_equal(got.numpy(), x + y)
        got = tensor(x, kernel_device).sum(0)
        np.testing.assert_array_equal(got.numpy(), x.sum(0))


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (ShapeError, lambda x: tg.linear(x, x.reshape(3, 2))),
        (ShapeError, lambda x: tg.linear(x, x, x[0])),
        (DtypeError, lambda x: tg.linear(x, x.astype("float64"))),
        (ShapeError, lambda x: x @ x),
        (ShapeError, lambda x: x + x[:, :2]),
        (ShapeError, lambda x: x.sum(2)),
    ],
)
def test_errors_are_raised_again(device, error, call):
    x = tensor(np.ones((2, 3)), device)
    said = []
    for _ in range(3):
        with pytest.raises(error) as raised:
            call(x)
        said.append(str(raised.value))
    assert said[0] == said[1] == said[2]


@frozen
class Labelled(Linear):
    labels: list[str]  # has no hash, so that the op has none


class Scaled(tg.Op):
    """x * factors[0]; the list of factors is no hyper-parameter that has a hash."""

    __hash__ = None

    def __init__(self, factors):
        self.factors = factors

    def forward(self, mem, x):
        return np.multiply(x, self.factors[0], out=mem.empty(x.shape, x.dtype)), None

    def backward(self, mem, grad, saved, needs):
        return (grad * F(self.factors[0]),)


@pytest.mark.parametrize("name", ["cpu", "emulator"])
def test_an_op_of_a_user_that_has_no_hash(name):
    op = Labelled(["a"])
    with pytest.raises(TypeError):
        hash(op)
    x = tensor([[1.0, 2.0]], name)
    for _ in range(2):
        np.testing.assert_array_equal(op(x, x).numpy(), [[5]])


def test_what_an_op_of_a_user_infers_is_asked_each_time():
    x = tg.Tensor([1.0, 2.0], requires_grad=True)
    for factor in (2.0, 3.0):
        op = Scaled([factor])
        np.testing.assert_array_equal(op(x).numpy(), [factor, 2 * factor])
        op.factors[0] = 5.0
        np.testing.assert_array_equal(op(x).numpy(), [5, 10])
