"""to: the tensor itself, or a node on another device through which gradients flow back."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import ArgumentError, DeviceError, DtypeError


def test_is_the_tensor_itself_where_it_lies(device):
    x = tg.Tensor([1.0], device=device)
    assert x.to(device) is x and x.to(x.device) is x


def test_an_unknown_device():
    with pytest.raises(ArgumentError, match="device: name: expected 'cpu'"):
        tg.Tensor([1.0]).to("tpu")


def test_an_absent_device():
    with pytest.raises(DeviceError, match="cuda: expected"):
        tg.Tensor([1.0]).to("cuda")


def test_there_and_back_with_gradients():
    """Part of a graph on another device: d/dx sum of 3 relu(x)."""
    x = tg.Tensor(np.array([[-1.0, 2.0], [3.0, -4.0]]).T, requires_grad=True)
    away = x.to("emulator")
    y = tg.relu(away)
    assert (away.device, y.device) == ("emulator", "emulator")
    back = y.to("cpu")
    assert back.device == "cpu"
    (back * 3).sum().backward()
    np.testing.assert_array_equal(back.value, [[0, 3], [2, 0]])
    np.testing.assert_array_equal(x.grad, [[0, 3], [3, 0]])


def test_in_a_graph_that_is_run_again():
    x = tg.Tensor([1.0, -1.0], requires_grad=True, name="x")
    graph = tg.Graph(tg.relu(x.to("emulator")).to("cpu"))
    (y,) = graph.forward({"x": np.array([-2.0, 5.0, 7.0], np.float32)})
    np.testing.assert_array_equal(y.value, [0, 5, 7])
    graph.backward(np.ones(3))
    np.testing.assert_array_equal(x.grad, [0, 1, 1])


def test_arrays_go_where_the_first_tensor_lies():
    x = tg.Tensor(np.ones(3), device="emulator")
    assert tg.mse_loss(x, np.zeros(3)).device == "emulator"
    assert tg.mse_loss(np.zeros(3), x).item() == 1
    with pytest.raises(DeviceError, match=r"all on emulator, got one on cpu.*x.to\(device\)"):
        tg.mse_loss(x, tg.Tensor(np.zeros(3)))


def test_an_op_without_a_kernel_names_the_way_out():
    class Twice(tg.Op):
        def forward(self, mem, x):
            return 2 * x, None

    x = tg.Tensor(np.ones(3), requires_grad=True, device="emulator")
    with pytest.raises(DeviceError, match=r"twice: no kernel yet. Way out: x.to\('cpu'\)"):
        Twice()(x)
    assert Twice()(x.to("cpu")).device == "cpu"


def test_another_dtype_a_device_with_it_or_both_of_a_tensor():
    x = tg.Tensor([1.5, -2.5], requires_grad=True)
    other = tg.zeros(3, dtype=tg.float64, device="emulator")
    for y, dtype, device in (
        (x.to(tg.float64), "f8", "cpu"),
        (x.to(float), "f8", "cpu"),
        (x.to(np.int32), "i4", "cpu"),
        (x.to("emulator", tg.float64), "f8", "emulator"),
        (x.to(device="emulator"), "f4", "emulator"),
        (x.to(dtype=tg.long, non_blocking=True), "i8", "cpu"),
        (x.to(other), "f8", "emulator"),
    ):
        assert (y.dtype, y.device) == (dtype, device)
    assert x.to(tg.float32) is x.to("cpu", tg.float32) is x.to(tg.zeros(1)) is x.to() is x
    y = x.to("emulator", tg.float64)
    (y * y).sum().backward()
    assert x.grad.dtype == np.float32 and x.grad.tolist() == [3, -5]


def test_a_copy_shares_nothing_and_passes_the_gradient():
    x = tg.Tensor([1.0], requires_grad=True)
    y = x.to("cpu", copy=True)
    assert y is not x and y.value is not x.value and not np.shares_memory(y.value, x.value)
    (3 * y).backward()
    assert x.grad.tolist() == [3]
    assert x.to("cpu", copy=False) is x


def test_a_dtype_that_no_tensor_has():
    with pytest.raises(DtypeError, match="to: dtype: .*got complex128"):
        tg.zeros(1).to(complex)
