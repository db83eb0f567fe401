"""The arguments of a launch, checked against the kernel's signature, and packed.

A CUDA launch checks nothing: an int that arrives as int64, a float as double or a transposed view
read as base memory give silent wrong answers.  Here each is an error that names the argument.

A program that launches nothing does not load this file.
"""

from __future__ import annotations

import ctypes
import math
import operator
import struct
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from tinygraph.base import KernelLaunchError, unmasked
from tinygraph.cuda.launch import MARKS, In, InOut, Out, is_cupy

if TYPE_CHECKING:  # names in annotations only: a program that launches nothing reads no signature
    from tinygraph.cuda.reading.signature import KernelParameter, Signature

Value = Any  # an array of numpy or cupy, or a Python number
_Scalar = tuple[int, "KernelParameter", type, float, float]  # its place; what most numbers are

FLOAT32_MAX = float(np.finfo(np.float32).max)


class Argument(NamedTuple):
    """One argument as the checker takes it.

    Attributes
    ----------
    parameter : KernelParameter
    value : ndarray (C-contiguous, of the parameter's dtype) or numpy scalar
    role : "in", "out", "inout" or "auto"
        "auto" is a plain array for a pointer that is not const: initialised, and if the kernel only
        writes it, every element must be written.
    """

    parameter: KernelParameter
    value: Any
    role: str


class ArgumentList:
    """The parameters of one kernel, made ready to check and pack arguments fast.

    >>> from tinygraph.cuda.reading.signature import parse
    >>> from tinygraph.cuda.reading.source import Source
    >>> text = "__global__ void scale(const float* x, float alpha, int n) {}"
    >>> arguments = ArgumentList(parse(Source.read(text), "scale"))
    >>> numbers, left = arguments.bound([3])
    >>> values, on_gpu = arguments.first((np.ones(3, np.float32), 2), left)
    >>> values, numbers, on_gpu
    ([array([1., 1., 1.], dtype=float32), 2.0], [3], False)
    >>> len(arguments.pack([*values, *numbers]))
    48
    """

    def __init__(self, signature: Signature) -> None:
        self.kernel = signature.name
        self.parameters = signature.parameters
        # Each argument takes 8 bytes, whatever its size.
        slots = ["Q" if p.pointer else _slot(p.dtype) for p in self.parameters]
        self._packer = struct.Struct("<" + "".join(slots) + "Q" * len(slots))
        parameters = list(enumerate(self.parameters))
        # What most arguments are takes few comparisons; all others are looked at one by one.
        self._pointers = [
            (at, p, p.dtype if p.lanes == 1 else None, not p.const)
            for at, p in parameters
            if p.pointer
        ]
        self._scalars = [(at, p, *_usual(p)) for at, p in parameters if not p.pointer]

    def bound(self, numbers: Sequence[Any]) -> tuple[list[Value], list[_Scalar]]:
        """Numbers for the last parameters, as Python numbers; and the scalars that are left.

        Raises
        ------
        KernelLaunchError
            For one that does not fit its parameter, and where a parameter is an array.
        """
        if not numbers:
            return [], self._scalars
        first = len(self.parameters) - len(numbers)
        if first < 0 or (self._pointers and self._pointers[-1][0] >= first):
            expected = f"numbers for the last parameters of{self._listing()}"
            self._refuse(None, expected, f"{len(numbers)} of them")
        pairs = zip(self.parameters[first:], numbers, strict=True)
        left = self._scalars[: len(self._scalars) - len(numbers)]
        return [self._scalar(parameter, number) for parameter, number in pairs], left

    def first(
        self, arguments: Sequence[Any], scalars: Sequence[_Scalar]
    ) -> tuple[list[Value], bool]:
        """Arguments without marks, scalars as Python numbers; and whether arrays are cupy's.

        They are all but the last ones, if some are bound: `bound` says which scalars are left.

        Raises
        ------
        KernelLaunchError
            For a wrong number of arguments, and for one that does not fit its parameter.
        """
        count = len(self._pointers) + len(scalars)
        if len(arguments) != count:
            rest = len(self.parameters) - count
            before = f" before {rest} that are bound" if rest else ""
            expected = f"{count or 'no'} arguments{before}{self._listing()}"
            self._refuse(None, expected, len(arguments))
        values, cupy = list(arguments), sys.modules.get("cupy")
        of_cupy = None if cupy is None else cupy.ndarray
        on_host = on_gpu = False
        for at, parameter, dtype, written in self._pointers:
            value = values[at]
            kind = type(value)
            if kind is not np.ndarray and kind in MARKS:
                if not written and kind is not In:
                    mark, expected = kind.__name__, "an input, as the pointer is const"
                    self._refuse(parameter, expected, mark, "pass the array without a mark")
                value = values[at] = value.array
                kind = type(value)
            if kind is of_cupy and value.dtype is dtype and value.flags.c_contiguous:
                on_gpu = True
                continue
            if kind is np.ndarray and value.dtype is dtype:
                flags = value.flags
                if flags.c_contiguous and flags.aligned and (flags.writeable or not written):
                    on_host = True
                    continue
            if self._check_array(parameter, value):
                on_gpu = True
            else:
                on_host = True
        for at, parameter, kind, low, high in scalars:
            value = values[at]
            if type(value) is not kind or not low <= value <= high:
                values[at] = self._scalar(parameter, value)
        if on_host and on_gpu:
            self._refuse_both(values)
        return values, on_gpu

    def pack(self, values: Sequence[Value]) -> bytes:
        """Values on the host in slots of 8 bytes, then the sizes of arrays for runtime/guard.c.

        An empty array is a null pointer; a size is twice the bytes, plus 1 if the kernel may write.
        """
        count = len(values)
        slots = [*values, *[0] * count]
        for at, _, _, written in self._pointers:
            array = values[at]
            if isinstance(array, np.ndarray):  # else the address of a copy of the checker
                slots[at] = _address(array)
                slots[count + at] = 2 * array.nbytes + written
        return self._packer.pack(*slots)

    def for_checker(self, given: Sequence[Any], values: Sequence[Value]) -> list[Argument]:
        """Arguments as they were given, and their values, as the checker takes them."""
        return [
            Argument(p, value if p.pointer else p.dtype.type(value), _role(p, mark))
            for p, mark, value in zip(self.parameters, given, values, strict=True)
        ]

    def _check_array(self, parameter: KernelParameter, array: Any) -> bool:
        """Raise unless the array fits the pointer; tells whether it lives on a GPU."""
        on_gpu = False
        if not isinstance(array, np.ndarray):
            on_gpu = is_cupy(array)
            if not on_gpu:
                self._not_an_array(parameter, array)
        unmasked(self.kernel, parameter.name, array)
        if array.dtype is not parameter.dtype and array.dtype != parameter.dtype:
            self._wrong_dtype(parameter, array)
        flags, lanes = array.flags, parameter.lanes
        if not flags.c_contiguous:
            got = f"shape {array.shape} with strides {array.strides}"
            way_out = "pass numpy.ascontiguousarray(...)"
            if not parameter.const:
                way_out = "pass a contiguous array, then copy it into this one"
            self._refuse(parameter, "a C-contiguous array", got, way_out)
        if not on_gpu and not parameter.const and not flags.writeable:
            expected = f"an array to write to ({parameter.ctype})"
            way_out = "pass a copy, or make the pointer const"
            self._refuse(parameter, expected, "a read-only array", way_out)
        if lanes > 1 and array.size % lanes:
            expected = f"a size that {lanes} divides ({parameter.ctype})"
            self._refuse(parameter, expected, f"{array.size} elements", "pad the array")
        if lanes > 1 or (not on_gpu and not flags.aligned):
            address = array.data.ptr if on_gpu else array.ctypes.data
            past, unit = address % parameter.alignment, f"{parameter.alignment} bytes"
            if array.size and past:
                expected = f"an address that is a multiple of {unit} ({parameter.ctype})"
                got = f"one that is {past} bytes past such a multiple"
                self._refuse(parameter, expected, got, "pass a copy: a view may begin anywhere")
        return on_gpu

    def _scalar(self, parameter: KernelParameter, value: Any) -> int | float | bool:
        """The value as a Python number that the parameter's C type holds."""
        kind = parameter.dtype.kind
        if kind == "f":
            if type(value) is not float:
                value = self._as_float(parameter, value)
            if abs(value) > FLOAT32_MAX and parameter.dtype.itemsize == 4 and math.isfinite(value):
                self._refuse(parameter, f"a number within {FLOAT32_MAX:.8g} (float)", repr(value))
            return value
        if kind == "b":
            if not isinstance(value, (bool, np.bool_)) and value not in (0, 1):
                self._refuse(parameter, "a bool", _describe(value))
            return bool(value)
        if type(value) is not int:
            value = self._as_int(parameter, value)
        low, high = parameter.limits
        if not low <= value <= high:
            expected = f"a number from {low} to {high} ({parameter.ctype})"
            way_out = "declare a wider type in the kernel" if value > 0 else ""
            self._refuse(parameter, expected, value, way_out)
        return value

    def _as_float(self, parameter: KernelParameter, value: Any) -> float:
        if isinstance(value, (int, float, np.floating, np.integer, np.bool_)):
            try:
                return float(value)
            except OverflowError:
                self._refuse(parameter, f"a number that a {parameter.ctype} holds", value)
        self._not_a_number(parameter, value)

    def _as_int(self, parameter: KernelParameter, value: Any) -> int:
        if isinstance(value, (bool, np.bool_)):
            return int(value)
        if isinstance(value, (float, np.floating)):
            self._refuse(
                parameter,
                f"an int ({parameter.ctype})",
                f"the float {value}",
                "convert it with int(...), or declare a float in the kernel",
            )
        if isinstance(value, (int, np.integer)):
            return operator.index(value)
        self._not_a_number(parameter, value)

    # ---- messages

    def _listing(self) -> str:
        return f" ({', '.join(map(str, self.parameters))})" if self.parameters else ""

    def _refuse_both(self, values: Sequence[Value]) -> NoReturn:
        first = {is_cupy(values[at]): p.name for at, p, _, _ in reversed(self._pointers)}
        got = f"numpy for {first[False]} and cupy for {first[True]}"
        way_out = "cupy.asarray(x) copies to the GPU, x.get() to the host"
        self._refuse(None, "arrays of one device", got, way_out)

    def _refuse(
        self, parameter: KernelParameter | None, expected: str, got: object, way_out: str = ""
    ) -> NoReturn:
        name = parameter.name if parameter else "arguments"
        raise KernelLaunchError(self.kernel, name, expected, got, way_out)

    def _not_a_number(self, parameter: KernelParameter, value: Any) -> NoReturn:
        way_out = ".item() gives the number of an array of one element"
        self._refuse(
            parameter,
            f"a number ({parameter.ctype})",
            _describe(value),
            way_out if isinstance(getattr(value, "size", None), int) else "",
        )

    def _not_an_array(self, parameter: KernelParameter, value: Any) -> NoReturn:
        expected = f"an array of {parameter.dtype} ({parameter.ctype})"
        if held := getattr(type(value), "_array_in", ""):  # of a thing around an array
            way_out = f"pass its array: {parameter.name}.{held}"
            self._refuse(parameter, expected, f"a {type(value).__name__}", way_out)
        way_out = f"numpy.array(..., dtype=numpy.{parameter.dtype})"
        if value is None:
            way_out = f"for a null pointer pass numpy.empty(0, numpy.{parameter.dtype})"
        self._refuse(parameter, expected, _describe(value), way_out)

    def _wrong_dtype(self, parameter: KernelParameter, array: Any) -> NoReturn:
        dtype = parameter.dtype
        expected = f"an array of {dtype} ({parameter.ctype})"
        way_out = f"convert it with .astype(numpy.{dtype}), or use the kernel of that type"
        if array.dtype.newbyteorder("=") == dtype:
            expected, way_out = f"{expected} in native byte order", f".astype(numpy.{dtype})"
        self._refuse(parameter, expected, f"{array.dtype!s}", way_out)


def _role(parameter: KernelParameter, given: Any) -> str:
    """How the checker is to take an argument: "in", "out", "inout" or "auto"."""
    if not parameter.pointer or parameter.const or isinstance(given, In):
        return "in"
    return "inout" if isinstance(given, InOut) else "out" if isinstance(given, Out) else "auto"


def _usual(parameter: KernelParameter) -> tuple[type, float, float]:
    """The type of most numbers for a parameter, and between which they fit it."""
    if parameter.dtype.kind == "b":
        return bool, False, True
    if parameter.dtype.kind != "f":
        return int, *parameter.limits
    most = FLOAT32_MAX if parameter.dtype.itemsize == 4 else math.inf
    return float, -most, most


def _address(array: Any) -> int:
    """Where the elements begin; 0 for an empty array."""
    if not array.size:
        return 0
    if array.flags.writeable:  # a third of the time that `array.ctypes` takes
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    return int(array.ctypes.data)


def _slot(dtype: np.dtype[Any]) -> str:
    """The struct format of a scalar, filled up to 8 bytes; numpy's letters are those of struct."""
    code = {"l": "q", "L": "Q"}.get(dtype.char, dtype.char)
    return f"{code}{8 - dtype.itemsize}x"


def _describe(value: Any) -> str:
    """A value in a few words."""
    if value is None or isinstance(value, (str, complex)):
        return repr(value)
    if isinstance(value, np.generic):
        return f"the number {value} ({value.dtype})"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"an array of shape {value.shape} and {value.dtype}"
    return f"{type(value).__name__}"
