"""ndarray: device memory with a shape.  The host sees none of it but through `get`.

What CuPy does with a wait or a kernel of its own, such as `float(x)` or `np.sum(x)`, is done and
counted in `hidden`.
"""

import types

import numpy as np

from cupy._device import current
from cupy._memory import allocate, as_read_later, is_pinned
from cupy._stream import get_current_stream, hidden, refuse_while_capturing, waits

_REFUSED = (
    "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy "
    "array explicitly."
)


class ndarray:
    """An array on the GPU; `_host` is its memory, for work in queues alone."""

    __slots__ = ("__weakref__", "_block", "_host", "base")

    def __init__(self, shape, dtype=float, memptr=None, *, _view=None, _base=None):
        if _view is not None:
            self._host, self._block, self.base = _view, _base._block, _base
            return
        dtype = np.dtype(dtype)
        shape = tuple(shape) if isinstance(shape, (tuple, list)) else (int(shape),)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self._block, self.base = memptr or allocate(size), None
        self._host = self._block.raw[:size].view(dtype).reshape(shape)

    def _of(self, view):
        return ndarray(None, _view=view, _base=self)

    shape = property(lambda self: self._host.shape)
    dtype = property(lambda self: self._host.dtype)
    size = property(lambda self: self._host.size)
    ndim = property(lambda self: self._host.ndim)
    nbytes = property(lambda self: self._host.nbytes)
    itemsize = property(lambda self: self._host.itemsize)
    strides = property(lambda self: self._host.strides)
    T = property(lambda self: self._of(self._host.T))

    @property
    def data(self):
        # A block of no bytes has no address; a view of no elements has that of its place.
        ptr = self._host.ctypes.data if self._block.raw.size else 0
        return types.SimpleNamespace(ptr=ptr, device_id=current())

    @property
    def device(self):
        from cupy.cuda import Device

        return Device()

    @property
    def flags(self):
        flags = self._host.flags
        return types.SimpleNamespace(
            c_contiguous=flags.c_contiguous,
            f_contiguous=flags.f_contiguous,
            owndata=self.base is None,
        )

    def __len__(self):
        return len(self._host)

    def reshape(self, *shape, order="C"):
        shape = shape[0] if len(shape) == 1 else shape
        view = self._host.reshape(shape)
        if view.size and not np.may_share_memory(view, self._host):  # numpy had to copy
            return ascontiguousarray(self).reshape(shape)
        return self._of(view)

    def ravel(self, order="C"):
        return self.reshape(-1)

    def view(self, dtype=None):
        return self._of(self._host.view(dtype))

    def transpose(self, *axes):
        return self._of(self._host.transpose(*axes))

    def swapaxes(self, a, b):
        return self._of(self._host.swapaxes(a, b))

    def __getitem__(self, index):
        parts = index if isinstance(index, tuple) else (index,)
        if not all(p is None or p is ... or isinstance(p, (int, slice)) for p in parts):
            raise TypeError("only views are rehearsed")
        view = self._host[(*parts, ...) if ... not in parts else parts]
        return self._of(view)

    def __setitem__(self, index, value):
        target = self[index]._host
        if isinstance(value, ndarray):
            source = value._host
            get_current_stream().add(lambda: np.copyto(target, source, casting="unsafe"))
        elif isinstance(value, (int, float, bool, np.generic)):
            get_current_stream().add(lambda: np.copyto(target, value, casting="unsafe"))
        else:
            raise TypeError(f"rehearsal: assignment of a {type(value).__name__}: use set()")

    def fill(self, value):
        self[...] = value

    def copy(self, order="C"):
        out = empty(self.shape, self.dtype)
        out[...] = self
        return out

    def astype(self, dtype, order="K", copy=True):
        out = empty(self.shape, dtype)
        out[...] = self
        return out

    def get(self, stream=None, order="C", out=None, blocking=True):
        refuse_while_capturing("copy to the host")
        stream, host = stream or get_current_stream(), self._host
        target = np.empty(self.shape, self.dtype) if out is None else out
        stream.add(lambda: np.copyto(target, host))
        if blocking or not is_pinned(target):
            waits.append("get")
            stream.run()
        return target

    def set(self, arr, stream=None):
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if arr.dtype != self.dtype or arr.shape != self.shape:
            raise ValueError(f"{arr.dtype}{arr.shape} set to {self.dtype}{self.shape}")
        if not self.flags.c_contiguous:
            raise RuntimeError("Cannot set to non-contiguous array")
        refuse_while_capturing("copy from host memory, which the graph would read at each launch")
        source, target = as_read_later(arr), self._host
        (stream or get_current_stream()).add(lambda: np.copyto(target, source))

    def __array__(self, dtype=None, copy=None):
        raise TypeError(_REFUSED)

    # ---- for other libraries: the capsule says that the memory is the host's, which it is

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if dl_device not in (None, (2, 0), (1, 0)):
            raise BufferError(f"no device {dl_device}")
        if dl_device == (1, 0):
            if copy is False:
                raise ValueError("GPU memory cannot be exported to CPU without copy.")
            return self.get().__dlpack__(max_version=max_version)
        get_current_stream().run()  # a real stream would be told to wait for this one
        array = self.copy() if copy else self
        get_current_stream().run()
        return array._host.__dlpack__(max_version=max_version)

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "descr": self.dtype.descr,
            "data": (self.data.ptr, False),
            "strides": None if self.flags.c_contiguous else self.strides,
            "version": 3,
            "stream": 1,  # the legacy default stream
        }

    # ---- what costs a wait or a kernel that nobody sees in the source

    def _hidden(self, name):
        """The value on the host."""
        hidden.append(name)
        return self.get()

    def __float__(self):
        return float(self._hidden("float"))

    def __int__(self):
        return int(self._hidden("int"))

    def __index__(self):
        return self._hidden("index").__index__()

    def __bool__(self):
        return bool(self._hidden("bool"))

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __array_function__(self, function, types, args, options):
        return _by_numpy(function.__name__, function, args, options)

    def __array_ufunc__(self, ufunc, method, *args, **options):
        return _by_numpy(ufunc.__name__, getattr(ufunc, method), args, options)

    __hash__ = None


def _operator(name, reflected=False):
    ufunc = getattr(np, name)

    def method(self, other):
        arguments = (other, self) if reflected else (self, other)
        return _by_numpy(name, ufunc, arguments, {})

    return method


for _name, _ufunc in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "pow": "power",
    "matmul": "matmul",
}.items():  # fmt: skip
    setattr(ndarray, f"__{_name}__", _operator(_ufunc))
    setattr(ndarray, f"__r{_name}__", _operator(_ufunc, True))
for _name, _ufunc in {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal",
}.items():  # fmt: skip
    setattr(ndarray, f"__{_name}__", _operator(_ufunc))


def _by_numpy(name, function, args, options):
    """A kernel of CuPy's own, whose result lies on the GPU; other than a ufunc's with a wait."""
    hidden.append(name)
    if any(type(x) is np.ndarray and x.ndim for x in args):
        raise TypeError(f"Unsupported type {np.ndarray} in {name}")
    if isinstance(function, np.ufunc) and not options:
        hosts = [x._host if isinstance(x, ndarray) else x for x in args]
        like = function(*[np.ones_like(x) for x in hosts])
        out = empty(like.shape, like.dtype)
        get_current_stream().add(lambda: np.copyto(out._host, function(*hosts)))
        return out
    result = function(*(x.get() if isinstance(x, ndarray) else x for x in args), **options)
    return asarray(result) if isinstance(result, (np.ndarray, np.generic)) else result


def empty(shape, dtype=float, order="C"):
    return ndarray(shape, dtype)


def zeros(shape, dtype=float, order="C"):
    out = empty(shape, dtype)
    out.fill(0)
    return out


def asarray(a, dtype=None, order=None):
    if isinstance(a, ndarray):
        return a if dtype is None or a.dtype == dtype else a.astype(dtype)
    host = np.ascontiguousarray(a, dtype).reshape(np.shape(a))
    out = empty(host.shape, host.dtype)
    out.set(host)
    return out


def from_dlpack(x, *, device=None, copy=None):
    if isinstance(x, ndarray):
        return x._of(x._host)
    if x.__dlpack_device__()[0] != 2:
        raise BufferError("only memory of the GPU is rehearsed")

    class OfTheHost:  # what the capsule says to numpy
        __dlpack_device__ = staticmethod(lambda: (1, 0))
        __dlpack__ = staticmethod(lambda **_: x.__dlpack__(stream=1, max_version=(1, 0)))

    host = np.from_dlpack(OfTheHost)
    # Memory that another library allocated is no block of this one's.
    block = types.SimpleNamespace(raw=host.reshape(-1).view(np.uint8))
    return ndarray(None, _view=host, _base=types.SimpleNamespace(_block=block))


def ascontiguousarray(a, dtype=None):
    return a if a.flags.c_contiguous else a.copy()


def broadcast_to(array, shape):
    view = np.lib.stride_tricks.as_strided  # np.broadcast_to is read-only, which CuPy's is not
    full = np.broadcast_to(array._host, shape)
    return array._of(view(array._host, full.shape, full.strides))
