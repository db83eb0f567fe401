"""Memory shared with other libraries: DLPack, both ways, and the array interface of CUDA.

    np.asarray(x)                  __array__                    numpy
    torch.from_dlpack(x)           __dlpack__                   PyTorch, JAX, numpy, CuPy, ...
    numba.cuda.as_cuda_array(x)    __cuda_array_interface__     Numba, CuPy; of a tensor on cuda
    tg.from_dlpack(array)          the array's __dlpack__       a tensor on the memory of any

Each passes the question on to the array inside, so that nothing is copied.  What another library
writes into that memory is, to the graph, as if it were written into `x.value` (writes.py).

Source: Python array API standard 2024.12, data interchange; DLPack 1.0; CUDA Array Interface 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, DtypeError, ExchangeError, ProtocolError, TinygraphError
from tinygraph.base.incoming import unmasked
from tinygraph.engine import CPU, Device, Tensor, get_device, here, leaf

_HOST = (1, 0)  # kDLCPU, and the number of the only one
_OF_THE_HOST = (1, 3, 11)  # kDLCPU; kDLCUDAHost and kDLROCMHost, which is pinned memory
_OF_CUDA = (2, 13)  # kDLCUDA, and kDLCUDAManaged, which moves between host and GPU

# Before 2.1 numpy's arrays had neither versions nor copies to export.
_VERSIONED = np.lib.NumpyVersion(np.__version__) >= "2.1.0"

# ---- in -------------------------------------------------------------------------------------


def from_dlpack(x: Any, *, device: str | Device | None = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of an array of numpy, PyTorch, JAX, CuPy or another library.

    Parameters
    ----------
    x : object
        Has the methods `__dlpack__` and `__dlpack_device__`; of floats up to 64 bits, integers or
        bools.
    device : str, optional
        By default where the memory lies, "cpu" or "cuda"; elsewhere it is copied to.
    copy : bool, optional
        True: always a copy; False: never one, or an error; None: only where it must be.

    Returns
    -------
    Tensor
        A leaf of the array's shape and dtype that requires no gradient.  What one library writes,
        the other reads.  Read-only is what the other library lets nobody write to, as JAX, and
        under numpy 2.0 all that it shares.

    Raises
    ------
    ExchangeError
        The array's library does not give it away: it requires a gradient, say.
    ProtocolError
        `x` has no such methods.
    DtypeError
        Of complex numbers, bfloat16 or another dtype that a Tensor cannot have.
    ArgumentError
        `copy` is False, and without a copy it cannot be.
    DeviceError
        The memory is that of a GPU, and device "cuda" cannot be used.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> array = np.zeros(2)
    >>> x = tg.from_dlpack(array)
    >>> array[0] = 5
    >>> x, np.from_dlpack(x).tolist()
    (Tensor([5., 0.], dtype=float64), [5.0, 0.0])

    References
    ----------
    Python array API standard 2024.12, data interchange mechanisms.
    """
    source, array = _imported(x)
    place = source if device is None else get_device(device)
    made = place.from_numpy(source.to_numpy(array) if place.on_host else array)
    if made is not array and copy is False:
        expected = f"True or None, for an array as the {place} needs it is not there yet"
        raise ArgumentError("from_dlpack", "copy", expected, "False")
    return leaf(place.copy(made) if copy and made is array else made, place)


def _imported(x: Any) -> tuple[Device, Any]:
    """The device whose arrays can have the memory, and such an array."""
    unmasked("from_dlpack", "x", x)
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        expected, way_out = "an object with __dlpack__", "tg.tensor takes all data"
        raise ProtocolError("from_dlpack", "x", expected, type(x).__name__, way_out)
    kind, index = x.__dlpack_device__()
    if kind not in (*_OF_THE_HOST, *_OF_CUDA):
        expected = "memory of the host or of an NVIDIA GPU"
        raise ExchangeError("from_dlpack", "x", expected, f"DLPack's device {(int(kind), index)}")
    source = CPU if kind in _OF_THE_HOST else get_device(f"cuda:{index}")
    library: Any = np if source.on_host else source.cupy  # type: ignore[attr-defined]
    try:
        array = library.from_dlpack(x)
    except TinygraphError:
        raise  # of a Tensor
    except BufferError as error:
        expected, way_out = "an array that its library shares", "tg.tensor copies what it can read"
        raise ExchangeError("from_dlpack", "x", expected, f"the error {error}", way_out) from error
    except RuntimeError as error:  # so numpy says that it has no such dtype
        raise _no_dtype(getattr(x, "dtype", error)) from error
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise _no_dtype(array.dtype)
    return source, array


def _no_dtype(dtype: Any) -> DtypeError:
    expected, way_out = "floats up to 64 bits, integers or bools", "convert it there, to float32"
    return DtypeError("from_dlpack", "x", expected, dtype, way_out)


# ---- out ------------------------------------------------------------------------------------


def to_dlpack(
    x: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[Any, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """`x.__dlpack__()`: a capsule around the memory, for which another `from_dlpack` asks.

    Parameters
    ----------
    stream : int, optional
        The stream of CUDA in which the memory will be used; of the host's memory, None.
    max_version : pair of ints, optional
        The newest version of DLPack that is understood.
    dl_device : pair of ints, optional
        Where the memory shall lie, as `__dlpack_device__` says it; by default where it does.
    copy : bool, optional
        True: always a copy; False: never; None: only where `dl_device` asks for one.

    Raises
    ------
    ExchangeError
        The tensor requires a gradient, lies elsewhere than on `dl_device`, or cannot be written to
        and the other library does not know such memory.
    ArgumentError
        There is a `stream`, though the memory is the host's.
    """
    array = _shared("__dlpack__", x)
    asked = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    if not x.device.on_host:
        return array.__dlpack__(**asked)
    if stream is not None:
        expected = f"None, for nothing runs behind on the {x.device}"
        raise ArgumentError("__dlpack__", "stream", expected, repr(stream))
    if dl_device is not None and dl_device != _HOST:
        expected = f"{_HOST}, the host's memory"
        raise ExchangeError("__dlpack__", "dl_device", expected, dl_device, "x.to('cuda')")
    if _VERSIONED and max_version is not None and max_version >= (1, 0):
        return array.__dlpack__(**asked)
    if copy:
        array = x.device.copy(array)
    if not array.flags.writeable:
        expected = "memory that can be written to, for a library without DLPack 1.0"
        way_out = "share a copy: x.clone()"
        raise ExchangeError("__dlpack__", "self", expected, "a read-only array", way_out)
    return array.__dlpack__()


def cuda_array_interface(x: Tensor) -> dict[str, Any]:
    """`x.__cuda_array_interface__`: where the memory of a tensor on a GPU lies."""
    if x.device.on_host:
        raise AttributeError(f"a tensor on the {x.device} has no __cuda_array_interface__")
    found: dict[str, Any] = _shared("__cuda_array_interface__", x).__cuda_array_interface__
    return found


def _shared(op: str, x: Tensor) -> Any:
    """The array, which another library is about to have."""
    if x.requires_grad:
        expected = "a tensor that requires no gradient, for what others do leaves no graph"
        raise ExchangeError(op, "self", expected, "one that does", "share x.detach()")
    here.top.read(x)
    return x.value
