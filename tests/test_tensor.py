"""Leaves: data, dtypes, conversion, and what is refused."""

import copy
import subprocess
import sys

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import ArgumentError, DeviceError, DtypeError, ShapeError
from tinygraph.engine.device import _DEVICES


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.5, "float32"),
        ([1.0, 2.0], "float32"),
        ([[1, 2.5]], "float32"),
        ([1, 2], "float32"),
        ([[True, 2], (3, 4.5)], "float32"),
        ([True, False], "float32"),
        (range(3), "float32"),
        (True, "bool"),
        ([np.int64(1), np.int64(2)], "int64"),
        ([np.float64(1.5)], "float64"),
        ([np.bool_(True)], "bool"),
        ([np.ones(2), np.ones(2)], "float64"),
        ([np.int64(1), 2], "float32"),
        (np.float64(1.5), "float64"),
        (np.ones(2), "float64"),
        (np.ones(2, np.float32), "float32"),
        (np.ones(2, np.uint8), "uint8"),
        ([], "float32"),
    ],
)
def test_dtype_of_a_leaf(data, dtype):
    assert tg.Tensor(data).dtype == dtype
    assert tg.Tensor(data, dtype=np.float64).dtype == np.float64


def test_data_is_copied():
    a = np.ones(2)
    t, p = tg.Tensor(a), tg.Parameter(a)
    a[0] = 7
    assert t.value[0] == 1 and p.value[0] == 1


@pytest.mark.parametrize(
    "data", ["text", [[1, 2], [3]], [object()], np.ones(1, complex), None, {"a": 1}]
)
def test_data_that_is_no_numbers(data):
    with pytest.raises(DtypeError, match="Tensor: data: expected"):
        tg.Tensor(data)


def test_integers_cannot_require_a_gradient():
    with pytest.raises(DtypeError, match="requires_grad.*dtype='float32'"):
        tg.tensor([1, 2], requires_grad=True)


def test_attributes_and_conversions():
    t = tg.Tensor([[1.0, 2.0], [3.0, 4.0]], name="t")
    assert (t.shape, t.ndim, t.size, len(t), t.device, t.is_leaf) == ((2, 2), 2, 4, 2, "cpu", True)
    assert t.spec == tg.Spec((2, 2), np.dtype("float32"))
    np.testing.assert_array_equal(np.asarray(t), t.numpy())
    assert np.asarray(t, dtype=np.float64).dtype == np.float64
    assert float(tg.Tensor([2.5])) == 2.5 and int(tg.tensor(3)) == 3 and bool(tg.tensor(1))
    assert tg.Tensor(2.5).item() == 2.5 and isinstance(tg.Tensor(2.5).item(), float)
    for convert in (float, bool, tg.Tensor.item):
        with pytest.raises(ShapeError, match="one element"):
            convert(t)
    with pytest.raises(ShapeError, match="0-d"):
        len(tg.Tensor(1.0))


def test_repr_names_what_a_node_is():
    assert repr(tg.Tensor([1.0, 2.0], name="x")) == "Tensor([1., 2.], dtype=float32, name='x')"
    assert repr(tg.Parameter([1.0])) == "Parameter([1.], dtype=float32, requires_grad=True)"
    assert repr(tg.relu([1.0])) == "Tensor([1.], dtype=float32, op=relu)"


def test_a_node_is_a_key_by_identity():
    a, b = tg.Tensor([1.0]), tg.Tensor([1.0])
    assert len({a: 1, b: 2}) == 2 and {a: 1, b: 2}[a] == 1


def test_devices(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # the import fails
    monkeypatch.delitem(_DEVICES, "cuda", raising=False)
    assert str(tg.Tensor(1.0, device="cpu").device) == "cpu"
    assert tg.Tensor(1.0, device="emulator").device == "emulator"
    with pytest.raises(DeviceError, match="cuda: expected CuPy.*emulator"):
        tg.Tensor(1.0, device="cuda")
    with pytest.raises(ArgumentError, match="did you mean 'cuda'"):
        tg.Tensor(1.0, device="cuba")


def test_a_copied_leaf_works_with_the_original():
    x = tg.Tensor([1.0, 2.0], requires_grad=True)
    y = copy.deepcopy(x)
    tg.softmax_cross_entropy(tg.concatenate([x.reshape(1, 2), y.reshape(1, 2)]), [0, 1]).backward()
    np.testing.assert_array_equal(np.sign(x.grad), [-1, 1])  # towards class 0
    np.testing.assert_array_equal(np.sign(y.grad), [1, -1])  # towards class 1
    y.value[0] = 7
    assert x.value[0] == 1


def test_import_loads_numpy_and_the_standard_library_only():
    """In a process of its own, against sys.stdlib_module_names."""
    code = (
        "import sys, numpy; before = set(sys.modules); import tinygraph\n"
        "new = {m.split('.')[0] for m in set(sys.modules) - before}\n"
        "print(sorted(new - set(sys.stdlib_module_names) - {'tinygraph', 'numpy'}))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_unknown_attribute_of_the_package():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = tg.no_such_name
