"""The text form of one kernel argument: NAME=VALUE, as in x=float32[1000]:rand or n=1000.

VALUE is a number for a scalar (1000, 0.5, 1e-3, 0x1f, true, inf) or an array:

    DTYPE[SIZES]:FILL[:ROLE]        x=float32[16,100]:randn    hist=int32[256]:zeros:inout
    @FILE.npy[:ROLE]                x=@image.npy

    fills   rand (0 to 1), randn, zeros, ones, arange, full(V), randint(LOW,HIGH),
            empty (uninitialised: every element must be written)
    roles   out (every element must be written), inout (initialised, may be written in part)
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygraph.cuda.arguments import InOut, Out
from tinygraph.errors import ArgumentError, nearest

OP = "check-kernel"
DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
)
FILLS = ("rand", "randn", "zeros", "ones", "arange", "empty", "full", "randint")
ROLES = ("out", "inout")
MAX_BYTES = 2**32  # of one array: the checker keeps several bytes of notes for each byte

_ARRAY = re.compile(r"(?P<dtype>\w+)\[(?P<sizes>[^\]]*)\](?P<rest>.*)")
_FILL = re.compile(r"(?P<fill>\w+)(?:\((?P<numbers>[^)]*)\))?")


@dataclass(frozen=True)
class ArgumentSpec:
    """One NAME=VALUE as it was written, read but not yet filled.

    Attributes
    ----------
    name, text : str
        The parameter's name, and what was written, for messages.
    scalar : int, float, bool or None
        The value of a scalar; None for an array.
    dtype, shape : str, tuple of int
        Of an array; empty for a file.
    fill, numbers : str, tuple of float
        The fill and what stood in its parentheses; "file" with the path in `path`.
    role : str
        "", "out" or "inout".
    """

    name: str
    text: str
    scalar: int | float | bool | None = None
    dtype: str = ""
    shape: tuple[int, ...] = ()
    fill: str = ""
    numbers: tuple[int | float, ...] = ()
    path: str = ""
    role: str = ""

    def make(self, rng: np.random.Generator) -> Any:
        """The value: a Python number, an array, or an array marked `Out` or `InOut`.

        Examples
        --------
        >>> import numpy as np
        >>> parse_argument("x=int32[2,3]:arange").make(np.random.default_rng(0))
        array([[0, 1, 2],
               [3, 4, 5]], dtype=int32)
        """
        if self.scalar is not None:
            return self.scalar
        array = self._load() if self.fill == "file" else self._filled(rng)
        if self.role == "out" or self.fill == "empty":
            return Out(array)
        return InOut(array) if self.role == "inout" else array

    def _filled(self, rng: np.random.Generator) -> np.ndarray:
        try:
            return self._values(rng).astype(self.dtype, copy=False)
        except MemoryError:
            raise _bad(self.text, "an array that fits into memory", self.text) from None

    def _values(self, rng: np.random.Generator) -> np.ndarray:
        """The elements, perhaps in a wider dtype."""
        if self.fill == "rand":
            return np.asarray(rng.random(self.shape))
        if self.fill == "randn":
            return np.asarray(rng.standard_normal(self.shape))
        if self.fill == "randint":
            low, high = (int(number) for number in self.numbers)
            return rng.integers(low, high, self.shape)
        if self.fill == "arange":
            return np.arange(math.prod(self.shape)).reshape(self.shape)
        if self.fill == "full":
            return np.full(self.shape, self.numbers[0], self.dtype)
        return np.full(self.shape, self.fill == "ones", self.dtype)

    def _load(self) -> np.ndarray:
        try:
            array = np.load(self.path, allow_pickle=False)
        except FileNotFoundError:
            raise _bad(self.text, "the path of a file", f"{self.path}: no such file") from None
        except (OSError, EOFError, ValueError) as error:
            raise _bad(
                self.text,
                "a file that numpy.save wrote",
                f"{self.path}: {error}",
                "numpy.save(path, array)",
            ) from None
        if not isinstance(array, np.ndarray) or array.dtype.name not in DTYPES:
            kind = getattr(array, "dtype", "several arrays (.npz)")
            raise _bad(self.text, f"one array of {', '.join(DTYPES)}", f"{self.path}: {kind}")
        return np.ascontiguousarray(array)


def parse_argument(text: str) -> ArgumentSpec:
    """Read NAME=VALUE.

    Parameters
    ----------
    text : str
        As in the module's docstring.

    Raises
    ------
    ArgumentError
        Naming the argument, the column and the way out.

    Examples
    --------
    >>> parse_argument("n=1000").scalar
    1000
    >>> spec = parse_argument("y=float32[4,8]:zeros:inout")
    >>> spec.dtype, spec.shape, spec.fill, spec.role
    ('float32', (4, 8), 'zeros', 'inout')
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise _bad(text, "NAME=VALUE", repr(text), "x=float32[1000]:rand or n=1000")
    column = len(name) + 2
    if value.startswith("@"):
        path, colon, role = value[1:].rpartition(":")
        if not colon or role not in ROLES:
            path, role = value[1:], ""
        return ArgumentSpec(name, text, fill="file", path=path, role=role)
    array = _ARRAY.fullmatch(value)
    if array:
        return _array(name, text, array, column)
    if "[" in value or ":" in value:
        raise _bad(text, "DTYPE[SIZES]:FILL", repr(value), "x=float32[1000]:rand", column)
    number = _number(value)
    if number is None:
        raise _bad(
            text,
            "a number, or an array as DTYPE[SIZES]:FILL",
            repr(value),
            "n=1000, alpha=0.5, flag=true or x=float32[1000]:rand",
            column,
        )
    return ArgumentSpec(name, text, scalar=number)


def _array(name: str, text: str, match: re.Match[str], column: int) -> ArgumentSpec:
    dtype = match["dtype"]
    if dtype not in DTYPES:
        hint = nearest(dtype, DTYPES)
        raise _bad(text, f"a dtype of {', '.join(DTYPES)}", repr(dtype), hint, column)
    shape = _sizes(text, match["sizes"], column + match.start("sizes"))
    if math.prod(shape) * np.dtype(dtype).itemsize > MAX_BYTES:
        raise _bad(
            text,
            f"at most {MAX_BYTES >> 30} GiB",
            match["sizes"],
            "small shapes show the same mistakes",
        )
    column += match.start("rest")
    parts = match["rest"].split(":")
    if parts[0] or len(parts) > 3:
        raise _bad(
            text,
            ":FILL or :FILL:ROLE after ']'",
            repr(match["rest"]),
            f"x={dtype}[{match['sizes']}]:rand",
            column,
        )
    role = parts.pop() if parts[-1] in ROLES else ""
    if len(parts) == 3:
        raise _bad(
            text,
            "the role out or inout",
            repr(parts[2]),
            nearest(parts[2], ROLES),
            column + len(parts[1]) + 2,
        )
    written = parts[1] if len(parts) == 2 else ("empty" if role == "out" else "")
    fill, numbers = _fill(text, written, dtype, shape, column + 1)
    if fill == "empty" and role == "inout":
        raise _bad(
            text,
            "a fill, as inout says that the array is initialised",
            "empty",
            "zeros:inout, or empty alone for an output",
            column + 1,
        )
    return ArgumentSpec(name, text, dtype=dtype, shape=shape, fill=fill, numbers=numbers, role=role)


def _sizes(text: str, sizes: str, column: int) -> tuple[int, ...]:
    shape = []
    for size in sizes.split(","):
        if not re.fullmatch(r"\s*\d+\s*", size):
            raise _bad(
                text,
                "sizes as whole numbers from 0, with commas",
                repr(sizes),
                "float32[1000] or float32[4,8]",
                column,
            )
        shape.append(int(size))
        column += len(size) + 1
    return tuple(shape)


def _fill(
    text: str, written: str, dtype: str, shape: tuple[int, ...], column: int
) -> tuple[str, tuple[int | float, ...]]:
    """The fill and its numbers, when the dtype can hold them."""
    match = _FILL.fullmatch(written)
    fill = match["fill"] if match else ""
    if not match or fill not in FILLS:
        known = f"a fill of {', '.join(FILLS)}, or @FILE"
        raise _bad(text, known, repr(written) if written else "none", nearest(fill, FILLS), column)
    texts = [part.strip() for part in match["numbers"].split(",")] if match["numbers"] else []
    numbers = tuple(number for part in texts if (number := _number(part)) is not None)
    wanted = {"full": 1, "randint": 2}.get(fill, 0)
    if len(numbers) != wanted or len(texts) != wanted:
        form = {"full": "full(V)", "randint": "randint(LOW,HIGH)"}.get(fill, fill)
        raise _bad(text, form, repr(written), column=column)
    if fill in ("rand", "randn") and not dtype.startswith("float"):
        raise _bad(text, f"a float dtype for {fill}", dtype, "randint(LOW,HIGH)", column)
    values = numbers
    if fill == "randint":
        if not all(isinstance(number, int) for number in numbers) or numbers[0] >= numbers[1]:
            raise _bad(text, "two whole numbers, LOW below HIGH", written, column=column)
        values = (numbers[0], numbers[1] - 1)
    elif fill == "arange":
        values = (max(math.prod(shape) - 1, 0),)
    for value in values:
        _must_hold(text, dtype, value, column)
    return fill, numbers


def _must_hold(text: str, dtype: str, value: int | float, column: int) -> None:
    """Raise where an element of that dtype cannot be the number."""
    if dtype.startswith("float"):
        return
    limits = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    whole = not isinstance(value, float) or value.is_integer()
    if not (whole and limits[0] <= value <= limits[1]):
        raise _bad(
            text,
            f"whole numbers from {limits[0]} to {limits[1]} in {dtype}",
            value,
            "another dtype or fill",
            column,
        )


def _number(text: str) -> int | float | bool | None:
    """A number of Python's or "true", "false", "inf", "nan"; None for anything else."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def _bad(
    text: str, expected: str, got: object, way_out: str = "", column: int | None = None
) -> ArgumentError:
    place = f"--arg {text}" + (f" (column {column})" if column else "")
    return ArgumentError(OP, place, expected, got, way_out)
