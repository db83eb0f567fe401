"""Masked arrays are refused at every door; lists have the dtype that their numbers say."""

import operator
import tempfile
from pathlib import Path

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, DtypeError, TinygraphError
from tinygraph.cuda import In, Kernel, Out
from tinygraph.distributed import all_reduce

MASKED = np.ma.array([1.0, 1e6, 2.0], np.float32, mask=[False, True, False])
WHOLE = np.ma.array([1, 0, 2], mask=[False, True, False])
SOME = np.ma.array([True, True, False], mask=[False, True, False])
ONE = MASKED[1]  # np.ma.masked


def x():
    return tg.Tensor([1.0, 2.0, 3.0])


def in_place(w):
    with tg.no_grad():
        w += MASKED


def assigned(name):
    def assign():
        setattr(tg.Parameter(np.zeros(3, np.float32)), name, MASKED)

    return assign


def assigned_to_a_leaf():
    x().value = MASKED


def fed():
    leaf = tg.Tensor([0.0, 0.0, 0.0], name="x")
    tg.Graph(leaf * 2).forward({"x": MASKED})


def gradient_given():
    (tg.Parameter([1.0, 2.0, 3.0]) * 2).backward(MASKED)


def differentiated():
    w = tg.Parameter([1.0, 2.0, 3.0])
    tg.autograd.grad(w * 2, w, MASKED)


def hooked():
    w = tg.Parameter([1.0, 2.0, 3.0])
    y = w * 2
    y.register_hook(lambda gradient: MASKED)
    y.sum().backward()


def loaded():
    nn.Linear(3, 1, bias=False).load_state_dict({"weight": MASKED[None]})


def state_of_an_optimizer():
    w = tg.Parameter(np.zeros(3, np.float32))
    optimizer = tg.optim.SGD([w], lr=1, momentum=0.5)
    w.grad = np.ones(3, np.float32)
    optimizer.step()
    state = optimizer.state_dict()
    state["state"] = {name: dict.fromkeys(of, MASKED) for name, of in state["state"].items()}
    optimizer.load_state_dict(state)


def saved(nest):
    with tempfile.TemporaryDirectory() as folder:
        tg.save(nest, Path(folder) / "file")


def batched(dataset):
    next(iter(tg.data.DataLoader(dataset, batch_size=2)))


def compiled(step=lambda a: tg.sum(tg.mul(a, 2.0))):
    tg.compile(step)(MASKED)


def launched(mark):
    kernel = Kernel(
        "__global__ void f(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }", "f"
    )
    kernel(1, 3, mark(MASKED), Out(np.zeros(3, np.float32)))


DOORS = {
    "tensor": lambda: tg.tensor(MASKED),
    "tensor dtype": lambda: tg.tensor(MASKED, dtype="float64"),
    "Tensor": lambda: tg.Tensor(MASKED),
    "Parameter": lambda: tg.Parameter(MASKED),
    "Buffer": lambda: nn.Buffer(WHOLE),
    "as_tensor": lambda: tg.as_tensor(MASKED),
    "from_numpy": lambda: tg.from_numpy(MASKED),
    "from_dlpack": lambda: tg.from_dlpack(MASKED),
    "new_tensor": lambda: x().new_tensor(MASKED),
    "in a list": lambda: tg.tensor([MASKED, MASKED]),
    "in a tuple in a list": lambda: tg.tensor([(1.0, 2.0), (3.0, ONE)]),
    "masked itself": lambda: tg.tensor(np.ma.masked),
    "masked in a list": lambda: tg.tensor([1.0, np.ma.masked], dtype="float32"),
    "+": lambda: x() + MASKED,
    "reflected +": lambda: MASKED + x(),
    "reflected -": lambda: MASKED - x(),
    "reflected *": lambda: MASKED * x(),
    "reflected /": lambda: MASKED / x(),
    "reflected //": lambda: MASKED // x(),
    "reflected %": lambda: MASKED % x(),
    "reflected **": lambda: MASKED ** x(),
    "reflected @": lambda: MASKED @ x(),
    "reflected &": lambda: SOME & (x() > 1),
    "reflected ==": lambda: operator.eq(MASKED, x()),
    "reflected <": lambda: operator.lt(MASKED, x()),
    "* masked": lambda: x() * np.ma.masked,
    "masked *": lambda: np.ma.masked * x(),
    "in place": lambda: in_place(tg.Parameter([1.0, 2.0, 3.0])),
    "in place of numpy": lambda: MASKED.copy().__iadd__(x()),
    "np.add": lambda: np.add(MASKED, x()),
    "np.ma.add": lambda: np.ma.add(MASKED, x()),
    "mean": lambda: tg.mean(MASKED),
    "where": lambda: tg.where(SOME, x(), 0.0),
    "where's choice": lambda: tg.where(x() > 1, MASKED, 0.0),
    "clip": lambda: tg.clip(MASKED, 0, 1),
    "masked_fill": lambda: tg.masked_fill(x(), SOME, 0.0),
    "masked_fill's value": lambda: x().masked_fill(x() > 1, np.ma.masked),
    "index": lambda: x()[WHOLE],
    "mask as index": lambda: x()[SOME],
    "index in a tuple": lambda: tg.zeros(3, 3)[0, WHOLE],
    "cat": lambda: tg.cat([x(), MASKED]),
    "einsum": lambda: tg.einsum("i,i", x(), MASKED),
    "interpolate": lambda: nn.functional.interpolate(MASKED[None, None], scale_factor=2),
    "full": lambda: tg.full((2,), MASKED[1:2]),
    "full_like": lambda: tg.full_like(MASKED, 0.0),
    "zeros_like": lambda: tg.zeros_like(MASKED),
    "linspace": lambda: tg.linspace(np.ma.masked, 1, 3),
    "arange": lambda: tg.arange(np.ma.masked),
    "a size": lambda: tg.zeros(np.ma.array(3, mask=True)),
    "constant_": lambda: nn.init.constant_(tg.Parameter([1.0]), np.ma.masked),
    "result_type": lambda: tg.result_type(MASKED, 1.0),
    "mse_loss": lambda: tg.mse_loss(x(), MASKED),
    "cross_entropy": lambda: tg.cross_entropy(tg.zeros(3, 3), WHOLE),
    "weights of a loss": lambda: nn.CrossEntropyLoss(weight=MASKED),
    "a module": lambda: nn.Linear(3, 1)(MASKED),
    "embedding": lambda: nn.Embedding(3, 2)(WHOLE),
    "one_hot": lambda: tg.one_hot(WHOLE, 3),
    "value": assigned("value"),
    "data": assigned("data"),
    "grad": assigned("grad"),
    "value of a leaf": assigned_to_a_leaf,
    "feed": fed,
    "backward": gradient_given,
    "hook": hooked,
    "autograd.grad": differentiated,
    "load_state_dict": loaded,
    "load_state_dict of an optimizer": state_of_an_optimizer,
    "vector_to_parameters": lambda: nn.utils.vector_to_parameters(MASKED, [tg.Parameter(x())]),
    "save": lambda: saved({"a": MASKED}),
    "save a nest": lambda: saved([{"a": (1, MASKED)}]),
    "save_arrays": lambda: tg.training.save_arrays("never written", {"a": MASKED}),
    "inputs": lambda: tg.data.ArrayDataset(MASKED, np.arange(3)),
    "labels": lambda: tg.data.ArrayDataset(np.arange(3), WHOLE),
    "TensorDataset": lambda: tg.data.TensorDataset(MASKED),
    "TextWindows": lambda: tg.data.TextWindows(WHOLE, 1),
    "Subset": lambda: tg.data.Subset([1, 2, 3], WHOLE)[0],
    "weights of a sampler": lambda: tg.data.WeightedRandomSampler(MASKED, 2),
    "collate": lambda: tg.data.default_collate([MASKED, MASKED]),
    "collate a nest": lambda: tg.data.default_collate([{"a": (MASKED, 1)}] * 2),
    "a DataLoader": lambda: batched([MASKED, MASKED]),
    "accuracy": lambda: tg.training.accuracy(np.zeros((3, 3)), WHOLE),
    "compile": compiled,
    "a kernel": lambda: launched(lambda array: array),
    "a kernel's mark": lambda: launched(In),
    "all_reduce": lambda: all_reduce(MASKED),
    "gradcheck": lambda: tg.testing.gradcheck(tg.exp, [MASKED]),
    "confusion matrix": lambda: tg.show.confusion_matrix(WHOLE, WHOLE),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_masked_array_is_refused(door):
    with pytest.raises(DtypeError, match=r"mask.*Way out: .*\.filled\(0\.0\)"):
        DOORS[door]()


def test_the_way_out_works():
    """1.5 is the mean of what is not masked, 333334.3 the one of all."""
    assert tg.mean(MASKED.compressed()).item() == 1.5
    assert (tg.Tensor(MASKED.filled(0.0)) * 2).tolist() == [2.0, 0.0, 4.0]
    assert (MASKED.filled(0.0) + x()).tolist() == [2.0, 2.0, 5.0]


def test_scikit_learn_is_refused_too():
    pytest.importorskip("sklearn")
    from tinygraph.interop.sklearn import Regressor

    array = np.ma.array(np.ones((4, 2)), mask=np.eye(4, 2))
    for x, y in ((array, np.ones(4)), (np.ones((4, 2)), array[:, 0])):
        with pytest.raises(DtypeError, match=r"filled\(0\.0\)"):
            Regressor(epochs=1).fit(x, y)


def test_an_onnx_module_is_refused_too(tmp_path):
    pytest.importorskip("onnx")
    tg.onnx.save(nn.ReLU(), tmp_path / "relu.onnx", tg.ones(1, 3))
    model = tg.onnx.load(tmp_path / "relu.onnx")
    with pytest.raises(DtypeError, match=r"filled\(0\.0\)"):
        model(MASKED[None])


def test_a_list_that_holds_itself_is_refused():
    endless = [1.0]
    endless.append(endless)
    with pytest.raises(DtypeError, match="rectangular"):
        tg.tensor(endless)


# ---- dtypes of lists ------------------------------------------------------------------------

f4, f8, i4, i8 = np.float32, np.float64, np.int32, np.int64
LISTS = [  # what PyTorch's torch.tensor gives
    ([f8(1.5)], "float64"),
    ([1.5, f8(1.5)], "float64"),
    ([1.5, f4(1.5)], "float32"),
    ([np.float16(1), 2.0], "float32"),
    ([np.float16(1), np.float16(2)], "float16"),
    ([f4(1), i8(2)], "float32"),
    ([i4(1), i4(2)], "int32"),
    ([i4(1), 2], "int64"),
    ([i8(1), 2.5], "float32"),
    ([np.True_, 1], "int64"),
    ([np.True_, False], "bool"),
    ([np.ones(2), np.ones(2)], "float64"),
    ([np.ones(2, "f4"), [1.0, 2.0]], "float32"),
    ([[f8(1.0)], (2,)], "float64"),
    ([np.array(1.5)], "float64"),
    ([1.5, 2], "float32"),
    ([1, 2], "int64"),
    ([True, 2], "int64"),
    ([], "float32"),
]


@pytest.mark.parametrize(("data", "dtype"), LISTS)
def test_a_list_has_the_dtype_of_what_is_in_it(data, dtype):
    for made in (tg.tensor(data), tg.as_tensor(data), tg.tensor(tuple(data))):
        assert made.dtype == dtype
        np.testing.assert_array_equal(made.value, np.array(data, dtype))


def test_tensors_in_a_list_say_their_dtype():
    wide = tg.tensor([1.0, 2.0], dtype="float64")
    assert tg.tensor([wide, wide]).dtype == np.float64
    assert tg.tensor([tg.tensor(1), tg.tensor(2)]).dtype == np.int64


def test_digits_of_float64_in_a_list_are_kept():
    assert tg.tensor([f8(0.1)]).item() == 0.1 != tg.tensor([0.1]).item()


@pytest.mark.parametrize("data", [[7, 2], [True, False], [[1, 2], [3, 4]], (1, 2.5), range(2), []])
def test_the_class_makes_float32_of_numbers_of_python(data):
    expected = np.array(data, np.float32)
    for made in (tg.Tensor(data), tg.Parameter(data)):
        assert made.dtype == np.float32
        np.testing.assert_array_equal(made.value, expected)
    assert tg.Tensor(data, dtype="int64").dtype == np.int64
    assert nn.Buffer([1, 2]).dtype == np.int64


@pytest.mark.parametrize("array", [np.arange(2), np.arange(2, dtype="u1"), np.ones(2, bool)])
def test_the_class_keeps_the_dtype_of_arrays_and_of_numbers_of_numpy(array):
    assert tg.Tensor(array).dtype == tg.Tensor(list(array)).dtype == array.dtype
    assert tg.Tensor(array[0]).dtype == tg.Tensor(tg.tensor(array)).dtype == array.dtype


@pytest.mark.parametrize(
    ("sizes", "number", "empty"),
    [
        ((5,), "tg.tensor(5)", "tg.empty(5)"),
        ((2, 3), "tg.tensor(2)", "tg.empty(2, 3)"),
        ((2, 3, 4, 5), "tg.tensor(2)", "tg.empty(2, 3, 4, 5)"),
    ],
)
def test_the_class_refuses_sizes(sizes, number, empty):
    with pytest.raises(ArgumentError, match="Tensor: data: expected numbers in a list") as refusal:
        tg.Tensor(*sizes)
    assert number in str(refusal.value) and empty in str(refusal.value)
    assert eval(number).item() == sizes[0] and eval(empty).shape == sizes
    assert tg.Tensor(5.0).shape == () and tg.Tensor(np.int64(5)).dtype == np.int64


@pytest.mark.parametrize("flag", [3, 1, "yes", np.float32, None, [3.0]])
def test_requires_grad_is_a_bool(flag):
    for make in (tg.Tensor, tg.tensor):
        with pytest.raises(TinygraphError, match="requires_grad: expected True or False"):
            make([1.0], requires_grad=flag)
    assert tg.Tensor([1.0], np.True_).requires_grad is True


@pytest.mark.parametrize("data", [None, [1.0, None], ["1.5"], "1.5", [[b"1"]]])
def test_none_and_text_are_no_numbers(data):
    """numpy makes NaN of None, and reads text, where a dtype is asked for."""
    for dtype in (None, "float32"):
        with pytest.raises(DtypeError, match="expected"):
            tg.tensor(data, dtype=dtype)
