"""What a Tensor answers under PyTorch's names: shapes, numbers, conversions, memory."""

import inspect

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import DtypeError, GraphError, ShapeError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


SLOTS = set(tg.Tensor.__slots__)  # described by the text of the class, or nobody's but the graph's


def x(**options):
    return tg.Tensor(X, **options)


def test_size_is_a_count_and_a_shape():
    assert x().size == 6 and x().size() == (2, 3) and type(x().size + 1) is int
    assert x().size(0) == 2 and x().size(-1) == 3 and x().size(dim=1) == 3
    with pytest.raises(ShapeError, match="size: axis: expected"):
        x().size(2)


def test_counts():
    assert x().numel() == x().nelement() == 6 and x().dim() == x().ndimension() == 2
    assert type(x().numel()) is int and tg.Tensor(1.0).size() == ()


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("half", "float16"),
        ("float", "float32"),
        ("double", "float64"),
        ("char", "int8"),
        ("byte", "uint8"),
        ("short", "int16"),
        ("int", "int32"),
        ("long", "int64"),
        ("bool", "bool"),
    ],
)
def test_number_types_by_name(name, dtype):
    y = getattr(x(), name)()
    assert y.dtype == dtype and y.shape == (2, 3)
    np.testing.assert_array_equal(y.value, X.astype(dtype))


def test_number_types_of_another():
    assert x().type_as(tg.tensor([1])).dtype == np.int64


def test_gradient_goes_through_a_conversion():
    w = x(requires_grad=True)
    (w.double() * 2).sum().backward()
    assert w.grad.dtype == np.float32 and w.grad.tolist() == [[2, 2, 2]] * 2


def test_leaves_of_its_dtype_and_device(device):
    w = x(dtype="float64", device=device, requires_grad=True)
    made = [w.new_zeros(2, 1), w.new_ones((2, 1)), w.new_full((2, 1), 7), w.new_empty(size=(2, 1))]
    made += [w.new_tensor([[1], [2]])]
    for y in made:
        assert (y.dtype, y.device, y.shape) == (np.float64, device, (2, 1))
        assert y.op is None and not y.requires_grad
    values = [y.tolist() for y in made if y is not made[3]]
    assert values == [[[0], [0]], [[1], [1]], [[7], [7]], [[1], [2]]]
    other = w.new_zeros(3, dtype=tg.int32, device="cpu", requires_grad=False)
    assert other.dtype == np.int32 and other.device == "cpu"
    assert w.new_ones(2, requires_grad=True).requires_grad
    array = np.ones(2)
    assert not np.shares_memory(w.new_tensor(array).numpy(), array)


def test_shapes():
    assert x().view(3, -1).shape == x().view((3, 2)).shape == (3, 2)
    other = tg.zeros(3, 2)
    assert x().view_as(other).shape == x().reshape_as(other).shape == (3, 2)
    assert tg.zeros(1, 2).expand_as(other).shape == (3, 2)
    assert tg.zeros(2, 3, 4).mT.shape == (2, 4, 3)
    np.testing.assert_array_equal(x().mT.value, X.T)
    with pytest.raises(ShapeError):
        _ = tg.zeros(3).mT


def test_devices():
    there = x(device="emulator")
    assert there.cpu().device.name == "cpu" and x().cpu().value.tolist() == X.tolist()


def test_lists_and_texts():
    assert x().tolist() == X.tolist() and tg.Tensor(2.5).tolist() == 2.5
    assert f"{tg.Tensor(0.12345):.3f}" == "0.123" and f"{tg.Tensor([2.0]):.1f}" == "2.0"
    assert f"{tg.Tensor(0.5)}" == "0.5" and f"{x()}" == str(x())
    with pytest.raises(ShapeError, match="one element"):
        f"{x():.3f}"


def test_nothing_equals_none():
    assert (x() == None) is False and (x() != None) is True  # noqa: E711
    assert None not in [x()]


def test_clone_has_its_own_memory_and_passes_the_gradient_on():
    w = x(requires_grad=True)
    y = w.clone()
    assert not np.shares_memory(y.value, w.value) and y.requires_grad
    (y * X).sum().backward()
    np.testing.assert_array_equal(w.grad, X)
    assert w.contiguous() is w


def test_data_is_the_memory_without_the_graph():
    w = x(requires_grad=True)
    assert np.shares_memory(w.data.value, w.value) and not w.data.requires_grad
    memory = w.value
    w.data = w.data - 1
    w.data -= 1
    w.data = X.tolist()
    assert w.value is memory and w.requires_grad and w.value.tolist() == X.tolist()


def test_data_of_another_shape_or_kind():
    w = tg.tensor([1, 2])
    with pytest.raises(ShapeError, match="data: self: expected an array of shape"):
        w.data = [1]
    with pytest.raises(DtypeError, match="data: self: expected int64"):
        w.data = np.float32([1, 2])


def test_requires_grad():
    w = x()
    assert w.requires_grad_() is w and w.requires_grad
    assert not w.requires_grad_(False).requires_grad
    with pytest.raises(GraphError, match="expected a leaf, got what mul made"):
        (w * 2).requires_grad_()
    with pytest.raises(DtypeError, match=r"got True with int64.*x.float\(\)"):
        tg.tensor([1]).requires_grad_()


def test_a_notebook_shows_a_small_graph():
    w = x(requires_grad=True, name="weights")
    picture = (w * 2).sum()._repr_svg_()
    assert picture.startswith("<svg") and "weights" in picture
    assert w._repr_svg_() is None
    y = w
    for _ in range(60):
        y = y * 2
    assert y._repr_svg_() is None


@pytest.mark.parametrize("name", [n for n in dir(tg.ones(1)) if n[0] != "_" and n not in SLOTS])
def test_what_a_tensor_has_is_described(name):
    """Its page shows properties and methods with their texts."""
    assert (getattr(tg.Tensor, name).__doc__ or "").strip()


def test_an_attribute_is_described_with_the_class():
    for name in ("value", "grad", "op", "inputs", "requires_grad", "device", "name"):
        assert f"\n{name} : " in inspect.cleandoc(tg.Tensor.__doc__)
