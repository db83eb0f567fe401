"""Leaves from data, filled, counted, and like another tensor: numbers, dtypes, what is shared."""

import inspect

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.engine.running import Runner
from tinygraph.ops.leaves import creation, sampling

FILLED = {tg.zeros: 0, tg.ones: 1}
LIKE = [tg.zeros_like, tg.ones_like, tg.empty_like, tg.rand_like, tg.randn_like]
# Calls as they stand in programs written for PyTorch; the same text is run with both libraries.
CALLS = """
zeros(2, 3)                 zeros((2, 3))               zeros([2, 3], dtype=int64)
zeros(())                   zeros(size=(2, 1))          ones(0)
ones(2, 3, dtype=bool)      ones(2, dtype=uint8)        full((2, 3), 7)
full((2,), 3.5)             full((2,), True)            full([2], 3, dtype=float64)
full((), -1)                full((2,), 2.7, dtype=int)   eye(3)
eye(2, 3)                   eye(3, 2, dtype=int64)      arange(4)
arange(4.0)                 arange(1, 7, 2)             arange(0, 1, 0.25)
arange(5, 0, -2)            arange(3, dtype=float64)    arange(start=1, end=3)
linspace(0, 1, 5)           linspace(-1, 1, steps=3)    linspace(3, -3, 7, dtype=float64)
linspace(0, 1, 1)           linspace(0, 1, 0)           tensor(1.5)
tensor(3)                   tensor([True, False])       tensor([[1, 2], [3, 4]])
tensor([1, 2.5])            tensor([])                  tensor([1, 2], dtype=float32)
tensor([1.7, -1.7], dtype=int32)
as_tensor([1, 2])           as_tensor([1.0], dtype=float64)
as_tensor(tensor([1, 2]), dtype=float32)                zeros_like(tensor([1, 2]))
zeros_like(tensor([1, 2]), dtype=float32)               ones_like(tensor([[1.0], [2.0]]))
full_like(tensor([1.0, 2.0]), 3)                        full_like(tensor([1, 2]), 3)
ones_like(input=tensor([1.0]), dtype=bool)              zeros(2, 2, device="cpu")
tensor([1.0], dtype=half)   tensor([1], dtype=short)    tensor([1.0], dtype=double)
zeros(1, dtype=float)       zeros(1, dtype=long)        zeros(2, pin_memory=False)
"""
CALLS = [call.strip() for line in CALLS.splitlines() for call in line.split("   ") if call.strip()]


class _Names(dict):
    """The names of a library, Python's own for what it does not have."""

    def __init__(self, library):
        super().__init__()
        self.library = library

    def __missing__(self, name):
        return getattr(self.library, name)


@pytest.mark.parametrize("call", CALLS)
def test_as_in_pytorch(call):
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    theirs, ours = eval(call, {}, _Names(torch)), eval(call, {}, _Names(tg))
    assert str(theirs.dtype) == f"torch.{ours.dtype}" and tuple(theirs.shape) == ours.shape
    np.testing.assert_array_equal(ours.value, theirs.numpy())


@pytest.mark.parametrize("make", FILLED, ids=lambda f: f.__name__)
def test_filled(make, device):
    for x in (make(2, 3), make((2, 3)), make([2, 3]), make(size=(2, 3)), make(shape=(2, 3))):
        assert x.dtype == np.float32 and x.value.tolist() == [[FILLED[make]] * 3] * 2
    x = make(2, dtype=tg.float64, requires_grad=True, device=device, name="x", pin_memory=True)
    assert (x.dtype, x.device, x.name, x.requires_grad) == (np.float64, device, "x", True)
    assert make().shape == () and make(0).shape == (0,)


@pytest.mark.parametrize(
    ("number", "dtype"),
    [(3, "int64"), (3.0, "float32"), (True, "bool"), (np.float64(3), "float64"), (2**40, "int64")],
)
def test_full_takes_the_dtype_of_its_number(number, dtype, device):
    for value in (number, tg.tensor(number)):
        x = tg.full((2,), value, device=device)
        assert x.dtype == dtype and x.numpy().tolist() == [number] * 2
    assert tg.full((2,), number, dtype=tg.float32).dtype == np.float32


def test_empty_has_a_shape(device):
    x = tg.empty(2, 3, dtype=tg.int64, device=device)
    assert (x.shape, x.dtype, x.device) == ((2, 3), np.int64, device)


def test_counted(device):
    assert tg.arange(2, 8, 2).value.tolist() == [2, 4, 6]
    assert tg.arange(3).dtype == np.int64 and tg.arange(3.0).dtype == np.float32
    assert tg.arange(0, stop=3).value.tolist() == [0, 1, 2]
    assert tg.linspace(0, 1, num=3, device=device).numpy().tolist() == [0, 0.5, 1]
    assert tg.eye(2, 3, device=device).numpy().tolist() == [[1, 0, 0], [0, 1, 0]]
    big = 2**53 + 1  # a float64 cannot hold it
    assert tg.arange(big, big + 1).item() == big


DTYPES = ["float16", "float32", "float64", "bool", "int8", "int16", "int32", "int64"]
DTYPES += ["uint8", "uint16", "uint32", "uint64"]
RANGES = [
    *((0, 5, 1), (5, 0, -2), (-5, 300, 7), (3, 3, 1), (3, 1, 1), (0, 1, 0.25), (0.1, 5, 0.3)),
    *((5.5, -3, -0.7), (-2.5, 2.5, 0.5), (-0.0, 3, 1), (2**53 + 1, 2**53 + 9, 1), (0, True, 1)),
    *((np.float32(0.1), 1, np.float32(0.1)), (np.int8(3), np.int8(100), np.int8(5)), (0, 700, 1)),
]
LINES = [(0, 1, 5), (3, -3, 7), (0, 1, 1), (0, 1, 0), (0.1, 0.7, 301), (-0.0, 0.0, 3), (2, 2, 4)]
LINES += [(np.float32(0.1), np.float32(0.9), 11)]


def assert_bits(x, array, dtype):
    want = array.astype(dtype)
    assert (x.dtype, x.shape) == (want.dtype, want.shape)
    assert x.numpy().tobytes() == want.tobytes(), (x.numpy(), want)


@pytest.mark.parametrize("dtype", DTYPES)
@np.errstate(over="ignore")  # of float16
def test_counted_leaves_have_the_bits_of_numpy(dtype, every_device):
    given = {"dtype": dtype, "device": every_device}
    for args in RANGES:
        assert_bits(tg.arange(*args, **given), np.arange(*args), dtype)
    for args in LINES:
        assert_bits(tg.linspace(*args, **given), np.linspace(*args), dtype)
    for args in ((3, 3), (2, 50), (50, 2), (0, 3)):
        assert_bits(tg.eye(*args, **given), np.eye(*args), dtype)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_they_have_them_on_the_stand_in_without_a_copy(dtype, rehearsed_cuda):
    """A copy from the host would be seen by whoever stands at the top."""

    class Unseen(Runner):
        def wait(self, why):
            assert why == "read values", why

    with Unseen():
        test_counted_leaves_have_the_bits_of_numpy(dtype, "cuda")


def test_a_line_whose_steps_are_too_small_for_float64(device):
    line = tg.linspace(0, 5e-324, 4, dtype=tg.float64, device=device)
    np.testing.assert_array_equal(line.value, np.linspace(0, 5e-324, 4))


def test_tensor_copies_and_as_tensor_shares():
    array = np.ones(2)
    copied, shared, by_numpy = tg.tensor(array), tg.as_tensor(array), tg.from_numpy(array)
    array[0] = 7
    assert copied.value[0] == 1 and shared.value[0] == by_numpy.value[0] == 7
    assert tg.as_tensor(array, dtype="float32").value is not array
    assert tg.tensor(array, dtype=tg.float32, requires_grad=True).requires_grad


def test_as_tensor_of_a_tensor_is_a_node_that_gradients_go_through():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    assert tg.as_tensor(x) is x and tg.as_tensor(x, tg.float32, "cpu") is x
    y = tg.as_tensor(x, dtype=tg.float64, device="emulator")
    assert (y.dtype, y.device) == (np.float64, "emulator")
    (y * y).sum().backward()
    assert x.grad.tolist() == [2, 4] and x.grad.dtype == np.float32


def test_tensor_of_a_tensor_is_a_leaf_where_it_lies():
    x = tg.tensor([1.0], requires_grad=True, device="emulator")
    y = tg.tensor(x)
    assert y.is_leaf and not y.requires_grad and y.device == "emulator" and y.value is not x.value
    assert tg.tensor(x, device="cpu").device == "cpu"
    assert tg.tensor([tg.tensor(1.0), tg.tensor(2.0)]).value.tolist() == [1, 2]


@pytest.mark.parametrize("make", LIKE, ids=lambda f: f.__name__)
def test_like_another_tensor(make, device):
    x = tg.tensor(np.ones((2, 3)), requires_grad=True, device=device)
    y = make(x)
    assert (y.shape, y.dtype, y.device, y.requires_grad) == ((2, 3), np.float64, device, False)
    y = make(x, dtype=tg.float32, device="cpu", requires_grad=True)
    assert (y.dtype, y.device, y.requires_grad) == (np.float32, "cpu", True)
    assert make(np.ones(2, np.float32)).dtype == np.float32
    assert make(input=x, dtype=None).dtype == np.float64


def test_full_like():
    assert tg.full_like(tg.zeros(2), 7).value.tolist() == [7, 7]
    assert tg.full_like(tg.arange(2), 7.5, dtype=tg.float64).value.tolist() == [7.5, 7.5]


def test_is_tensor():
    assert tg.is_tensor(tg.zeros(1)) and tg.is_tensor(tg.Parameter([1.0]))
    assert not tg.is_tensor(np.zeros(1))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tg.zeros(-1), ArgumentError, "zeros: size: expected an int of at least 0, got -1"),
        (lambda: tg.ones(2.5), ArgumentError, "ones: size: expected an int"),
        (lambda: tg.zeros("a"), ArgumentError, "zeros: size: expected an int"),
        (lambda: tg.zeros(2, dtype="bfloat16"), DtypeError, "zeros: dtype: .*no bfloat16"),
        (lambda: tg.zeros(2, dtype=complex), DtypeError, "got complex128.*no complex"),
        (lambda: tg.zeros(2, dtype="floot"), DtypeError, "dtype: .*got 'floot'.*tg.float32"),
        (lambda: tg.zeros(2, device="tpu"), ArgumentError, "'cpu', 'emulator' or 'cuda', got 'tpu"),
        (lambda: tg.ones(2, dtype=int, requires_grad=True), DtypeError, "ones: requires_grad"),
        (lambda: tg.arange(3, requires_grad=True), DtypeError, "True with int64"),
        (lambda: tg.full((2,), [1, 2]), ShapeError, r"full: fill_value: .*got shape \(2,\)"),
        (lambda: tg.full((2,), 300, dtype="int8"), DtypeError, "out of bounds for int8"),
        (lambda: tg.eye(-1), ArgumentError, "eye: n: expected an int of at least 0"),
        (lambda: tg.eye(1, 2.0), ArgumentError, "eye: m"),
        (lambda: tg.arange(0, 3, 0), ArgumentError, "arange: step: expected any number but 0"),
        (lambda: tg.linspace(0, 1, -1), ArgumentError, "linspace: steps"),
        (lambda: tg.tensor("text"), DtypeError, "data: expected floats"),
        (lambda: tg.tensor([1, [2]]), DtypeError, "data: expected numbers in a rectangular array"),
        (lambda: tg.tensor([1], dtype=tg), DtypeError, "dtype: expected a float up to 64 bits"),
        (lambda: tg.from_numpy([1.0]), DtypeError, "from_numpy: array: .*got list.*tg.tensor"),
        (lambda: tg.from_numpy(np.ones(1, complex)), DtypeError, "got complex128"),
        (lambda: tg.zeros(2, size=(3,), shape=(2,)), ArgumentError, "shape: .*size"),
        (lambda: tg.zeros(2, dtpye=int), TypeError, "dtpye"),
        (lambda: tg.arange(0, np.inf), ArgumentError, "arange: end: expected a finite number"),
        (lambda: tg.arange(np.nan, device="emulator"), ArgumentError, "arange: end: .* nan"),
        (lambda: tg.arange(0, 1, np.nan), ArgumentError, "arange: step: expected a finite"),
    ],
)
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("module", [creation, sampling])
def test_every_function_describes_what_it_takes(module):
    for name in module.__all__:
        function = getattr(tg, name)
        parameters = {*inspect.signature(function).parameters} - {"options", "sizes"}
        if "options" in inspect.signature(function).parameters:
            parameters |= {*creation.Options.__annotations__}
        section = function.__doc__.partition("Returns")[0]
        missing = [p for p in parameters if f"    {p}" not in section and p not in section]
        assert not missing and "Examples" in function.__doc__, name
