"""An allocator for numpy that can fail at any one allocation (NEP 49).

Patching np.empty and its like would miss what ufuncs, reductions, copies and BLAS wrappers ask for.
This one stands where all of numpy's array data comes from.

    with FailingAllocator() as memory:
        memory.arm(3)        # the third allocation from here on finds no memory
        ...
        memory.made          # how many there were since

Source: NEP 49, "Data allocation strategies", and `PyDataMem_Handler` in numpy's C API.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_size_t, c_uint8, c_void_p, py_object

import numpy as np

_CAPSULE = b"mem_handler"

# numpy holds the GIL where it calls these, and wants it held: PYFUNCTYPE does not let it go.
_malloc_type = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_size_t)
_calloc_type = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_size_t, c_size_t)
_realloc_type = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t)


class _Allocator(ctypes.Structure):
    _fields_ = [
        ("ctx", c_void_p),
        ("malloc", _malloc_type),
        ("calloc", _calloc_type),
        ("realloc", _realloc_type),
        ("free", c_void_p),
    ]


class _Handler(ctypes.Structure):
    _fields_ = [("name", c_char * 127), ("version", c_uint8), ("allocator", _Allocator)]


def _function(place, *types):
    """A function of numpy's C API by its place in the table."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = c_void_p, [py_object, ctypes.c_char_p]
    api = pointer(np._core._multiarray_umath._ARRAY_API, None)
    return ctypes.PYFUNCTYPE(*types)(ctypes.cast(api, ctypes.POINTER(c_void_p))[place])


_set_handler = _function(304, py_object, py_object)  # PyDataMem_SetHandler: returns the one before
_get_handler = _function(305, py_object)  # PyDataMem_GetHandler


class FailingAllocator:
    """Counts numpy's allocations of array data in this thread, and fails one of them.

    There is one object of it in a process, never freed: arrays may outlive the `with`.
    """

    def __init__(self) -> None:
        self.made = 0
        self._fails_at = 0  # 0: never
        place = ctypes.pythonapi.PyCapsule_GetPointer(_get_handler(), _CAPSULE)
        numpys = self._numpys = _Handler.from_address(place).allocator
        # Arrays are freed by numpy's own function: it is also called while an exception is on its
        # way, when no Python may run.
        self._handler = _Handler(
            b"failing",
            1,
            _Allocator(
                None,
                _malloc_type(self._malloc),
                _calloc_type(self._calloc),
                _realloc_type(self._realloc),
                numpys.free,
            ),
        )
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = py_object, [c_void_p, ctypes.c_char_p, c_void_p]
        self._capsule = new(ctypes.addressof(self._handler), _CAPSULE, None)

    def __enter__(self) -> FailingAllocator:
        self.arm(0)
        self._before = _set_handler(self._capsule)
        return self

    def __exit__(self, *exception: object) -> None:
        self.arm(0)
        _set_handler(self._before)

    def arm(self, fails_at: int) -> None:
        """Count from 0 again, and fail the allocation of that number; 0 for none."""
        self.made, self._fails_at = 0, fails_at

    def _fails(self) -> bool:
        self.made += 1
        return self.made == self._fails_at

    def _malloc(self, _, size):
        return None if self._fails() else self._numpys.malloc(None, size)

    def _calloc(self, _, count, size):
        return None if self._fails() else self._numpys.calloc(None, count, size)

    def _realloc(self, _, pointer, size):
        return None if self._fails() else self._numpys.realloc(None, pointer, size)


ALLOCATOR = FailingAllocator()
