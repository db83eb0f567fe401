"""DLPack and its kin: numpy, PyTorch and JAX have the memory of a tensor, and a tensor theirs."""

import gc
import weakref

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, DtypeError, ExchangeError, ProtocolError
from tinygraph.engine.device import _DEVICES

F = np.float32
VERSIONED = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
DTYPES = ["float16", "float32", "float64", "bool"]
DTYPES += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
NEWER = pytest.mark.skipif(not VERSIONED, reason="to numpy 2.0 what others share is read-only")
LAYOUTS = {
    "whole": lambda a: a,
    "transposed": lambda a: a.T,
    "every other": lambda a: a[::2, 1:],
    "from behind": lambda a: a[::-1],
    "no elements": lambda a: a[:0],
    "one number": lambda a: a[1:2, 2:3],
}


class Old:
    """A library from before DLPack 1.0: it asks for a capsule, and knows no argument."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def numbers(dtype=F):
    return np.arange(12).reshape(3, 4).astype(dtype)


def read_only(array):
    array.flags.writeable = False
    return array


# ---- numpy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_numpy_has_the_memory_of_a_tensor_and_a_tensor_numpys(dtype, layout):
    array = LAYOUTS[layout](numbers(dtype))
    x = tg.from_dlpack(array)
    y = np.from_dlpack(tg.from_numpy(array))
    for z in (x.value, y):
        assert z.dtype == dtype and z.shape == array.shape
        steps = zip(z.strides, array.strides, z.shape, strict=True)
        assert all(a == b for a, b, n in steps if n > 1)
        np.testing.assert_array_equal(z, array)
        assert np.shares_memory(z, array) or not array.size
    assert x.op is None and not x.requires_grad and x.device == "cpu"


def test_what_one_writes_the_other_reads():
    array = numbers()
    x = tg.from_dlpack(array)
    array[0, 0] = 50
    assert x.value[0, 0] == 50 and (x + 1).value[0, 0] == 51
    if VERSIONED:
        np.from_dlpack(x)[0, 1] = 70
        assert array[0, 1] == x.value[0, 1] == 70


def test_the_memory_stays_while_somebody_has_it():
    array = numbers()
    owner = weakref.ref(array)
    x = tg.from_dlpack(array)
    del array
    gc.collect()
    assert owner() is not None and x.value[2, 3] == 11
    del x
    gc.collect()
    assert owner() is None


def test_arrays_of_0_axes():
    x = tg.from_dlpack(np.array(2.5))
    assert x.shape == () and x.item() == np.from_dlpack(tg.Tensor(2.5)).item() == 2.5


def test_a_tensor_of_the_emulator_shares_where_it_is_row_major():
    array = numbers()
    x = tg.from_dlpack(array, device="emulator", copy=False)
    assert x.device == "emulator" and np.shares_memory(x.value, array)
    assert x.__dlpack_device__() == (1, 0)
    z = tg.Tensor(array, device="emulator")
    assert np.shares_memory(np.from_dlpack(z), z.value)
    y = tg.from_dlpack(array.T, device="emulator")
    assert not np.shares_memory(y.value, array) and y.numpy().tolist() == array.T.tolist()
    with pytest.raises(ArgumentError, match="copy: expected True or None.*emulator.*got False"):
        tg.from_dlpack(array.T, device="emulator", copy=False)


def test_copies():
    array = numbers()
    for device in ("cpu", "emulator"):
        assert not np.shares_memory(tg.from_dlpack(array, copy=True, device=device).value, array)
    assert tg.from_dlpack(array, copy=False).value.base is not None
    x = tg.from_numpy(array)
    copied = np.from_dlpack(Given(x, copy=True, max_version=(1, 0)))
    old = np.from_dlpack(Given(x, copy=True))
    for y in (copied, old):
        assert y.tolist() == array.tolist() and not np.shares_memory(y, array)


class Given:
    """A tensor whose capsule is asked for with these arguments."""

    def __init__(self, x, **options):
        self.x, self.options = x, options

    def __dlpack__(self, **_):
        return self.x.__dlpack__(**self.options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


@NEWER
def test_read_only_arrays_stay_read_only():
    array = read_only(numbers())
    x = tg.from_dlpack(array)
    y = np.from_dlpack(x)
    assert np.shares_memory(y, array)
    assert not x.value.flags.writeable and not y.flags.writeable
    assert np.from_dlpack(tg.zeros(2)).flags.writeable
    assert not np.from_dlpack(tg.zeros(2, 1).expand(2, 3).detach()).flags.writeable
    w = nn.Parameter(x)  # which has memory of its own
    (w * x).sum().backward()
    np.testing.assert_array_equal(w.grad, array)


def test_a_library_that_knows_no_read_only_memory_is_given_none():
    x = tg.from_numpy(read_only(numbers()))
    with pytest.raises(ExchangeError, match=r"can be written to.*read-only array.*x.clone\(\)"):
        np.from_dlpack(Old(x))
    assert np.from_dlpack(Old(x.clone())).tolist() == numbers().tolist()
    assert np.from_dlpack(Given(x, copy=True)).tolist() == numbers().tolist()


# ---- what is refused ------------------------------------------------------------------------


def test_a_tensor_that_requires_a_gradient_is_not_given_away():
    w = nn.Parameter(numbers())
    made = w * 2
    for x in (w, made, tg.ones(2, requires_grad=True)):
        with pytest.raises(ExchangeError, match=r"requires no gradient.*share x.detach\(\)"):
            np.from_dlpack(x)
        with pytest.raises(BufferError, match="detach"), tg.no_grad():
            tg.from_dlpack(x)
    assert np.shares_memory(np.from_dlpack(w.detach()), w.value)
    assert np.shares_memory(np.from_dlpack(made.detach()), made.value)


def test_the_arguments_of_the_standard():
    x = tg.zeros(2)
    assert x.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=False) is not None
    assert x.__dlpack__(max_version=(9, 3)) is not None
    with pytest.raises(ArgumentError, match="stream: expected None, for nothing runs behind.*cpu"):
        x.__dlpack__(stream=1)
    with pytest.raises(ExchangeError, match=r"dl_device: expected \(1, 0\).*got \(2, 0\).*'cuda'"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError):
        x.__dlpack__(None)


class Elsewhere:
    def __init__(self, device):
        self.device = device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **_):
        raise BufferError("not today")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tg.from_dlpack([1.0]), ProtocolError, "expected an object with __dlpack__.*list"),
        (lambda: tg.from_dlpack([1.0]), AttributeError, "tg.tensor takes all data"),
        (lambda: tg.from_dlpack(numbers(complex)), DtypeError, "got complex128.*convert it there"),
        (lambda: tg.from_dlpack(Elsewhere((8, 0))), ExchangeError, r"DLPack's device \(8, 0\)"),
        (lambda: tg.from_dlpack(Elsewhere((1, 0))), ExchangeError, "the error not today"),
        (lambda: tg.from_dlpack(np.ones(2), device="tpu"), ArgumentError, "got 'tpu'"),
        (lambda: tg.from_dlpack(np.ones(2), None), TypeError, "positional"),
    ],
)
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_trace_does_not_let_memory_out():
    """A plan would give its caller the memory of the first run for ever."""
    seen = []

    @tg.compile
    def step(x):
        y = x * 2
        seen.append(float(np.from_dlpack(y)[0]))
        return y

    with pytest.warns(tg.errors.PlanWarning):
        assert [step(tg.Tensor([i])).item() for i in (1.0, 2.0, 3.0)] == [2, 4, 6]
    assert seen[-1] == 6


def test_on_the_host_there_is_no_array_of_cuda(device):
    x = tg.zeros(2, device=device)
    assert not hasattr(x, "__cuda_array_interface__")


# ---- a GPU ----------------------------------------------------------------------------------


@NEWER
def test_memory_of_a_gpu(rehearsed_cuda):
    x = tg.Tensor(numbers(), device="cuda")
    assert x.__dlpack_device__() == (2, 0) and x.device is _DEVICES["cuda"]
    theirs = rehearsed_cuda.from_dlpack(x)
    assert theirs.data.ptr == x.value.data.ptr
    y = tg.from_dlpack(theirs)
    assert y.device == "cuda" and y.value.data.ptr == x.value.data.ptr
    z = tg.from_dlpack(theirs, copy=True)
    assert z.value.data.ptr != x.value.data.ptr
    np.testing.assert_array_equal((z + y).numpy(), 2 * numbers())
    shown = x.__cuda_array_interface__
    assert shown["data"] == (x.value.data.ptr, False) and shown["shape"] == (3, 4)
    assert np.dtype(shown["typestr"]) == F and shown["version"] >= 2


@NEWER
def test_between_host_and_gpu(rehearsed_cuda):
    x = tg.from_dlpack(numbers(), device="cuda")
    y = tg.from_dlpack(x, device="cpu")
    assert x.device == "cuda" and y.device == "cpu"
    np.testing.assert_array_equal(y.value, numbers())
    for given, device in ((numbers(), "cuda"), (x, "cpu")):
        with pytest.raises(ArgumentError, match=f"as the {device} needs it is not there yet"):
            tg.from_dlpack(given, device=device, copy=False)
    host = np.from_dlpack(x, device="cpu")
    np.testing.assert_array_equal(host, numbers())


@NEWER
def test_a_gradient_keeps_a_tensor_of_a_gpu_too(rehearsed_cuda):
    w = nn.Parameter(numbers(), device="cuda")
    with pytest.raises(ExchangeError, match="__dlpack__: self.*detach"):
        rehearsed_cuda.from_dlpack(w)
    with pytest.raises(ExchangeError, match="__cuda_array_interface__: self.*detach"):
        w.__cuda_array_interface__
    assert rehearsed_cuda.from_dlpack(w.detach()).data.ptr == w.value.data.ptr


# ---- PyTorch and JAX ------------------------------------------------------------------------


def test_pytorch_both_ways():
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    for dtype in ("float32", "float64", "float16", "int64", "uint8", "bool"):
        x = tg.from_numpy(numbers(dtype).T)
        t = torch.from_dlpack(x)
        assert t.data_ptr() == x.value.ctypes.data and t.tolist() == x.tolist()
        t[0, 0] = 1
        y = tg.from_dlpack(t)
        assert y.value.ctypes.data == t.data_ptr() and y.dtype == dtype
        assert y.value[0, 0] == x.value[0, 0] == 1
    with pytest.raises(ExchangeError, match="got the error Can't export.*gradient"):
        tg.from_dlpack(torch.ones(2, requires_grad=True))
    with pytest.raises(DtypeError, match="got torch.bfloat16"):
        tg.from_dlpack(torch.ones(2, dtype=torch.bfloat16))
    with pytest.raises(BufferError, match="detach"):
        torch.from_dlpack(tg.ones(2, requires_grad=True))


def test_jax_both_ways():
    jax = pytest.importorskip("jax", reason="needs JAX")
    j = jax.numpy.arange(6.0)
    x = tg.from_dlpack(j)
    assert x.value.ctypes.data == j.unsafe_buffer_pointer() and x.tolist() == j.tolist()
    assert not x.value.flags.writeable  # for JAX nothing is ever written
    room = np.zeros(32, F)
    start = -room.ctypes.data % 64 // 4  # JAX copies what does not lie at a multiple of 64 bytes
    y = tg.from_numpy(room[start : start + 4])
    back = jax.dlpack.from_dlpack(y)
    assert back.unsafe_buffer_pointer() == y.value.ctypes.data and back.tolist() == [0] * 4
