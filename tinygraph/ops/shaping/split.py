"""Split, tensor_split, chunk, unbind: one tensor cut along one axis.

    L     size of x along the axis        S_t   where part t begins        S_0 = 0

    y_t[i] = x[S_t + i]        0 <= i < S_(t+1) - S_t

An op has one output, so that a cut is several slices, each a node `getitem`; it adds nothing to the
engine.  The gradient of x is the sum of those of its slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from tinygraph.base import ArgumentError, ShapeError
from tinygraph.engine import Operand, Tensor, as_tensor, integer, integers, normalize_axes
from tinygraph.ops.common import as_axis, documented
from tinygraph.ops.shaping.getitem import getitem
from tinygraph.ops.shaping.reshape import as_sizes

_parts = documented(
    """
    Parameters
    ----------
    x : Tensor
        At least one axis; any dtype.
    axis : int
        The axis to cut.  Along the batch, the parts are fixed for the batch size that `x` has now.

    Returns
    -------
    tuple of Tensor
        The parts in order, of the dtype of `x`; views on the cpu.

    Raises
    ------
    ShapeError
        There is no such axis.
    ArgumentError
        A size that is no integer.
    DtypeError
        `axis` is no integer.
    """
)


def _cut(op: str, x: Operand, axis: int) -> tuple[Tensor, int, int]:
    """The arguments of all: x as a node, the axis counted from the front, and its size."""
    node = as_tensor(x)
    (place,) = normalize_axes(op, as_axis(op, axis), node.ndim)
    return node, place, node.shape[place]


def _slices(node: Tensor, place: int, starts: Sequence[int]) -> tuple[Tensor, ...]:
    before = (slice(None),) * place
    return tuple([getitem(node, (*before, slice(a, b))) for a, b in pairwise(starts)])


def _equal_parts(size: int, total: int) -> list[int]:
    """Where parts of `size` elements begin, the last one perhaps smaller, and where it ends."""
    return [*range(0, total, size), total] if total else [0, 0]


def _sections(size: int, count: int) -> list[int]:
    """Where `count` parts begin that differ by one element at most, the larger ones first."""
    quotient, larger = divmod(size, count)
    return [t * quotient + min(t, larger) for t in range(count + 1)]


@_parts
def split(
    x: Operand,
    size_or_sizes: int | Sequence[int] | None = None,
    axis: int = 0,
    *,
    sections: int | None = None,
) -> tuple[Tensor, ...]:
    """x cut into parts of given sizes, as in PyTorch.

    Parameters
    ----------
    size_or_sizes : int or sequence of int
        An int is the size of every part; the last one has what is left.  A list holds the size of
        each part.
    sections : int, optional
        In the place of sizes: how many parts of one size, which is what an int means in numpy.

    Raises
    ------
    ShapeError
        There is no such axis, the sizes do not add up to its size, or `sections` does not divide
        it.
    ArgumentError
        A size that is no integer; neither sizes nor `sections`, or both.

    Examples
    --------
    >>> import tinygraph as tg
    >>> first, rest = tg.split([1.0, 2.0, 3.0], 2)
    >>> rest.value, [part.shape for part in tg.split(tg.zeros(2, 6), [1, 5], axis=1)]
    (array([3.], dtype=float32), [(2, 1), (2, 5)])
    """
    node, place, total = _cut("split", x, axis)
    if (size_or_sizes is None) is (sections is None):
        expected = "sizes, or sections= for a number of equal parts"
        raise ArgumentError("split", "size_or_sizes", expected, "both" if sections else "neither")
    if sections is not None:
        count = integer("split", "sections", sections)
        if count < 1 or total % count:
            expected = f"a number of sections that divides {total}, the size of the axis"
            way_out = "list the sizes of the parts, or use tg.tensor_split"
            raise ShapeError("split", "sections", expected, count, way_out)
        return _slices(node, place, _sections(total, count))
    sizes = as_sizes("split", "size_or_sizes", size_or_sizes)
    if not isinstance(size_or_sizes, Sequence):
        (size,) = sizes
        if size < 0 or (total and not size):
            raise ShapeError("split", "size_or_sizes", "a size of 1 or more", size)
        return _slices(node, place, _equal_parts(size, total))
    if min(sizes, default=0) < 0 or sum(sizes) != total or not sizes:
        expected = f"sizes of 0 or more with sum {total}, the size of the axis"
        raise ShapeError("split", "size_or_sizes", expected, f"{sizes} with sum {sum(sizes)}")
    return _slices(node, place, list(accumulate(sizes, initial=0)))


@_parts
def tensor_split(
    x: Operand, indices_or_sections: int | Sequence[int], axis: int = 0
) -> tuple[Tensor, ...]:
    """x cut into a number of parts, or at given places: numpy's `array_split`.

    Parameters
    ----------
    indices_or_sections : int or sequence of int
        An int is the number of parts; the first ones have an element more where it does not divide
        the size of the axis.  A list holds the places to cut at, as slices take them: negative ones
        count from the end, and what lies beyond the axis gives an empty part.

    Raises
    ------
    ShapeError
        There is no such axis, or less than one part is asked for.

    Examples
    --------
    >>> import tinygraph as tg
    >>> [part.shape for part in tg.tensor_split(tg.zeros(5), 2)]
    [(3,), (2,)]
    >>> [part.shape for part in tg.tensor_split(tg.zeros(5), [1, -1])]
    [(1,), (3,), (1,)]
    """
    node, place, total = _cut("tensor_split", x, axis)
    given = integers("tensor_split", "indices_or_sections", indices_or_sections)
    if not isinstance(indices_or_sections, Sequence):
        if given[0] < 1:
            expected = "at least 1 section"
            raise ShapeError("tensor_split", "indices_or_sections", expected, given[0])
        return _slices(node, place, _sections(total, given[0]))
    before = (slice(None),) * place
    ends = [*given, None]
    return tuple(
        [getitem(node, (*before, slice(a, b))) for a, b in zip([0, *given], ends, strict=True)]
    )


@_parts
def chunk(x: Operand, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """x cut into parts of one size, `chunks` of them at most.

    Parameters
    ----------
    chunks : int
        How many parts.  Their size is rounded up, so that the last one may be smaller, and where
        parts would be empty there are fewer; `tg.tensor_split` gives as many as it is asked for.

    Raises
    ------
    ShapeError
        There is no such axis, or less than one part is asked for.

    Examples
    --------
    >>> import tinygraph as tg
    >>> [part.shape for part in tg.chunk(tg.zeros(5), 3)]
    [(2,), (2,), (1,)]
    """
    node, place, total = _cut("chunk", x, axis)
    count = integer("chunk", "chunks", chunks)
    if count < 1:
        raise ShapeError("chunk", "chunks", "at least 1", count)
    if not total:
        return _slices(node, place, [0] * (count + 1))
    return _slices(node, place, _equal_parts(-(-total // count), total))


@_parts
def unbind(x: Operand, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of size 1 along an axis, without that axis.

    Parameters
    ----------
    axis : int
        ... That axis is gone in the parts.

    Examples
    --------
    >>> import tinygraph as tg
    >>> first, second = tg.unbind([[1.0, 2.0], [3.0, 4.0]], axis=1)
    >>> second.value
    array([2., 4.], dtype=float32)
    """
    node, place, total = _cut("unbind", x, axis)
    before = (slice(None),) * place
    return tuple([getitem(node, (*before, t)) for t in range(total)])
