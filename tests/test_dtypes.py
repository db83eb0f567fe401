"""Dtypes and devices by their names, wherever one is asked for."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import ArgumentError, DeviceError, DtypeError
from tinygraph.cuda.devices import EMULATOR

NAMES = {
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{name: name for name in ("float16", "float32", "float64", "bool")},
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_numpys_dtype(name):
    dtype = getattr(tg, name)
    assert isinstance(dtype, tg.dtype) and dtype == np.dtype(NAMES[name]) == NAMES[name]
    assert name in tg.__all__
    for x in (tg.zeros(2, dtype=dtype), tg.Tensor([0, 0], dtype=dtype), tg.arange(2).to(dtype)):
        assert x.dtype == dtype
    assert tg.arange(2).astype(dtype).dtype == dtype


@pytest.mark.parametrize("name", NAMES)
def test_a_name_means_what_it_means_in_pytorch(name):
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    assert str(getattr(torch, name)) == f"torch.{getattr(tg, name)}"


@pytest.mark.parametrize(
    ("asked", "dtype"),
    [("float64", "f8"), (np.int32, "i4"), (float, "f8"), (int, "i8"), (bool, "?"), ("f4", "f4")],
)
def test_other_ways_to_ask(asked, dtype):
    """Python's own types are those of numpy, and of torch.tensor(dtype=float)."""
    for x in (tg.tensor([1], dtype=asked), tg.zeros(1, dtype=asked), tg.tensor([1]).astype(asked)):
        assert x.dtype == dtype


def test_limits():
    assert tg.finfo(tg.float32).eps == 2**-23 and tg.finfo(tg.double).max > 1e308
    assert tg.iinfo(tg.int8).max == 127


@pytest.mark.parametrize("asked", ["bfloat16", "complex64", complex, np.longdouble, "text", object])
def test_a_dtype_that_no_tensor_has(asked):
    for call in (
        lambda: tg.tensor([1.0], dtype=asked),
        lambda: tg.Tensor([1.0], dtype=asked),
        lambda: tg.zeros(1, dtype=asked),
        lambda: tg.zeros(1).astype(asked),
    ):
        with pytest.raises(DtypeError, match=r"dtype: expected a float up to 64 bits.*tg\.float32"):
            call()


def test_float16_is_stored_and_the_way_out_is_named():
    x = tg.zeros(2, dtype=tg.half)
    with pytest.raises(DtypeError, match=r"got float16.*x?\.astype\('float32'\)"):
        x + x
    assert (x + tg.zeros(2)).dtype == np.float32


def test_a_device_is_one_object_by_any_name():
    for name in ("cpu", "cpu:0", tg.zeros(1).device):
        assert tg.device(name) is tg.zeros(1).device
    assert tg.device("cpu", 0) is tg.device("cpu") and tg.device("emulator") is EMULATOR
    cpu = tg.device("cpu")
    assert (cpu.type, cpu.index, str(cpu), cpu == "cpu") == ("cpu", None, "cpu", True)


@pytest.mark.second
def test_a_device_of_a_number(rehearsed_cuda):
    gpu = tg.device("cuda")
    assert (gpu.type, gpu.index) == ("cuda", 0)
    for other in ("cuda:0", 0, tg.device("cuda", 0)):
        assert tg.device(other) is gpu
    assert tg.zeros(2, device="cuda:0").to("cpu").device == "cpu"
    with pytest.raises(DeviceError, match="index: expected 0.*got 1.*CUDA_VISIBLE_DEVICES=1"):
        tg.device("cuda:1")


@pytest.mark.second
@pytest.mark.parametrize("name", ["gpu", "cuda:one", "cpu:-1", "", "float32"])
def test_a_device_that_is_not_there(name, rehearsed_cuda):
    with pytest.raises(ArgumentError, match="device: name: expected 'cpu', 'emulator' or 'cuda'"):
        tg.device(name)


def test_a_cpu_of_a_number():
    with pytest.raises(DeviceError, match="expected 0, the only cpu device in use, got 2"):
        tg.device("cpu:2")
