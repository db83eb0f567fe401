"""What a check of an op is given: calls that are right, calls that are wrong, and memory layouts.

Nothing here needs hypothesis: a list of problems written by hand serves as well as a strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import ArgumentError
from tinygraph.engine import Array, Device, get_device

LAYOUTS = ("contiguous", "sliced", "transposed", "negative stride")


class Problem(NamedTuple):
    """One call: array arguments (float64 or integers), keywords, and which arrays hold samples.

    Attributes
    ----------
    args : tuple
        Arrays, in the order of the op's arguments; None for an optional array that is left out.
    kwargs : dict
        Hyper-parameters by name; never changed.
    carries : tuple of bool, optional
        One for each array that is not None: whether its axis 0 is the batch.  None means that the
        problem has no batch axis.
    names : tuple of str, optional
        The names of the array arguments, where they are not the first ones of the function.

    Examples
    --------
    >>> import numpy as np
    >>> Problem((np.ones((2, 3)), np.ones((4, 3))), {}, carries=(True, False)).arrays[1].shape
    (4, 3)
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = {}  # noqa: RUF012  # never changed
    carries: tuple[bool, ...] | None = None
    names: tuple[str, ...] = ()

    def call(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        """A function with `arguments` in the place of the arrays, and the keywords."""
        if not self.names:
            return function(*arguments, **self.kwargs)
        return function(**dict(zip(self.names, arguments, strict=True)), **self.kwargs)

    @property
    def arrays(self) -> list[Array]:
        """The arguments that are there."""
        return [a for a in self.args if a is not None]


def _line(one: Bad | Convention) -> str:
    """A call that was given by hand, in a line."""
    arguments = [*map(repr, one.args), *map(str, one.kwargs.items())]
    return f"  {one.name}: {', '.join(arguments)}"


class Bad(NamedTuple):
    """A wrong call, the error that it must raise, and words that the message must contain."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    error: type[Exception]
    words: str

    def __str__(self) -> str:
        return _line(self)


class Convention(NamedTuple):
    """A point without a derivative, or beyond the numbers, and what the op is agreed to give there.

    `value` and `gradients` (one for each array, None where none is wanted) are compared exactly,
    NaN and the sign of zero included; the upstream gradient is one of ones.
    """

    name: str
    args: tuple[Any, ...]
    value: Any
    gradients: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}  # noqa: RUF012  # never changed

    def __str__(self) -> str:
        return _line(self)


def cast(array: Any, dtype: Any) -> Any:
    """Floats to the dtype under test; integers and None stay."""
    return array.astype(dtype) if array is not None and array.dtype.kind == "f" else array


def laid_out(array: Any, layout: str, device: str | Device = "cpu") -> Any:
    """The same numbers with other strides, on a device; None stays None.

    Row-major, every second element of a larger array, column-major, or walked backwards.

    >>> import numpy as np
    >>> laid_out(np.arange(3.0), "negative stride").strides
    (-8,)
    """
    if layout not in LAYOUTS:
        raise ArgumentError("laid_out", "layout", f"one of {LAYOUTS}", repr(layout))
    place = get_device(device)
    if array is None or array.ndim == 0 or layout == "contiguous":
        return array if array is None else place.from_numpy(array)
    if layout == "sliced":
        room = np.zeros([2 * n + 1 for n in array.shape], array.dtype)
        index = tuple(slice(1, 2 * n + 1, 2) for n in array.shape)
    elif layout == "transposed":
        room = np.empty(array.shape[::-1], array.dtype)
        room.T[...] = array
        return place.from_numpy(room).T
    else:
        room = np.empty(array.shape, array.dtype)
        index = tuple(slice(None, None, -1) for _ in array.shape)
    room[index] = array
    return place.from_numpy(room)[index]
