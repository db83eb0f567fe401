"""The door by which the numbers of others come in: arrays, and lists in lists.

    unmasked     data as they are, where no mask would be lost: before every `np.asarray`
    as_numbers   data as an array of a dtype that a Tensor can have
    of_class     the same of what `tg.Tensor` is given

numpy's own conversions drop the mask of a masked array, and compute on with what it hides.  And
they make float64 of Python's floats, though it is the numbers of numpy and of tensors in a list
that say a dtype, as in PyTorch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tinygraph.base.dtypes import OF_NUMBERS, Dtype, as_dtype, float32, float64, promote_types
from tinygraph.base.errors import ArgumentError, DtypeError

Array: TypeAlias = NDArray[Any]

_NO_NUMBERS = frozenset((type(None), str, bytes))
OF_CLASS = dict.fromkeys(OF_NUMBERS, float32)  # what Python's numbers are in `Tensor([...])`
_NO_LISTS = (str, bytes, bytearray, memoryview, range, np.ndarray)


def unmasked(op: str, argument: str, data: Any) -> Any:
    """The data, or DtypeError where they are a masked array, or lists that hold one.

    >>> unmasked("add", "x", [1.0, 2.0])
    [1.0, 2.0]
    >>> unmasked("add", "x", np.ma.array([1.0, 2.0], mask=[False, True]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tinygraph.errors.DtypeError: add: x: expected an array without a mask, got a masked array ...
    """
    if type(data) is np.ndarray or "numpy.ma" not in sys.modules:  # nobody can have made one
        return data
    masked = sys.modules["numpy.ma"].MaskedArray
    if isinstance(data, masked):
        _refuse(op, argument, f"a masked array of shape {data.shape}")
    if is_list(data):
        for inside in lists(data):
            if any(issubclass(kind, masked) for kind in set(map(type, inside))):
                _refuse(op, argument, "a masked array in a list")
    return data


def _refuse(op: str, argument: str, got: str) -> None:
    way_out = "x.filled(0.0) has a number in each masked place, x.compressed() leaves them out"
    raise DtypeError(op, argument, "an array without a mask", got, way_out)


def is_list(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return True
    return isinstance(data, Sequence) and not isinstance(data, _NO_LISTS)


def lists(data: Any) -> Iterator[Any]:
    """A list, and the lists in it, each once: one may hold itself."""
    left, seen = [data], {id(data)}
    while left:
        inside = left.pop()
        yield inside
        kinds = set(map(type, inside))
        if all(kind in OF_NUMBERS for kind in kinds):
            continue
        for x in inside:
            if is_list(x) and id(x) not in seen:
                seen.add(id(x))
                left.append(x)


def _dtype_in(data: Any, numbers: dict[type, Dtype]) -> Dtype | None:
    """The dtype that lists ask for: of what has one, and `numbers` for Python's numbers.

    None where nothing in them has a dtype, and for what no Tensor can hold.
    """
    found: set[Dtype] = set()
    pythons: set[Dtype] = set()
    for inside in lists(data):
        kinds = set(map(type, inside))
        pythons.update(numbers[kind] for kind in kinds & numbers.keys())
        if not kinds <= numbers.keys():
            found.update(x.dtype for x in inside if isinstance(getattr(x, "dtype", 0), np.dtype))
    if not found or any(dtype.kind not in "fiub" or dtype.itemsize > 8 for dtype in found):
        return None
    first, *others = found | pythons
    for other in others:
        first = promote_types(first, other)
    return first


def _holds_no_numbers(data: Any) -> bool:
    """Whether they are None or text, or lists that hold such a thing."""
    inside = lists(data) if is_list(data) else [(data,)]
    return not all(_NO_NUMBERS.isdisjoint(map(type, some)) for some in inside)


def as_numbers(
    data: Any, dtype: Any, copy: bool | None, numbers: dict[type, Dtype] = OF_NUMBERS
) -> Array:
    """A numpy array of floats, integers or bools.

    Without a dtype an array keeps its own, and lists get that of the arrays, tensors and numbers
    of numpy in them; Python's numbers are what `numbers` says.
    """
    asked = None if dtype is None else as_dtype("Tensor", dtype)
    unmasked("Tensor", "data", data)
    try:
        if asked is not None and _holds_no_numbers(data):  # numpy would make NaN of None
            raise TypeError("None and text are no numbers")
        array = np.array(data, dtype=asked, copy=copy)
    except (TypeError, ValueError, OverflowError) as error:
        raise DtypeError(
            "Tensor", "data", "numbers in a rectangular array", f"{data!r:.80} ({error})"
        ) from None
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        expected = "floats up to 64 bits, integers or bools"
        way_out = "pass dtype='float32', or convert the array with .astype"
        raise DtypeError("Tensor", "data", expected, array.dtype, way_out)
    if asked is not None or hasattr(data, "dtype"):
        return array
    listed = is_list(data)
    wanted = _dtype_in(data, numbers) if listed else None
    if wanted is None:
        is_class = numbers is OF_CLASS and (listed or isinstance(data, range))
        wanted = float32 if is_class or array.dtype == float64 else array.dtype
    with np.errstate(over="ignore"):
        return array.astype(wanted, copy=False)


def of_class(kind: str, data: Any, dtype: Any, others: tuple[Any, ...] = ()) -> Array:
    """What `Tensor(data, ...)` holds: lists of Python's numbers are float32 there, as in PyTorch.

    Raises
    ------
    ArgumentError
        `data` is an int, which is a size in PyTorch's class, as the `others` after it may be.
    """
    if type(data) is int:
        sizes = [data]
        for other in others:
            if type(other) is not int:
                break
            sizes.append(other)
        empty = f"tg.empty({', '.join(map(str, sizes))})"
        got = " and ".join(map(str, sizes))
        expected = "numbers in a list or an array, for an int is a size in PyTorch's class"
        way_out = f"tg.tensor({data}) for the number, {empty} for sizes"
        raise ArgumentError(kind, "data", expected, got, way_out)
    return as_numbers(data, dtype, True, OF_CLASS)
