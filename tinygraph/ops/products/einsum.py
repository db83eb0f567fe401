"""Einstein's summation: products of tensors, written by the names of their axes.

    einsum("nk, km -> nm", x, y)        z[n, m] = sum over k of x[n, k] * y[k, m]

A letter names an axis, in all operands the same one; twice in one operand it is a diagonal.  What
the output does not name is summed over.
`...` stands for further axes, which are broadcast.  Without `->` the output has the further axes,
then each letter that occurs once, in the order of the alphabet (capitals first).

The operands are multiplied from left to right, two at a time, as stacks of matrices:

    shared by both and still needed        the axes of the stack
    shared by both and not needed          the axis that a matrix product sums over
    of one of them                         its rows, or its columns

Source: Einstein, "Die Grundlage der allgemeinen Relativitätstheorie", Annalen der Physik 49, 1916,
section 5.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from tinygraph.base import ArgumentError, ShapeError, TinygraphError
from tinygraph.engine import Operand, Tensor, leaf
from tinygraph.ops.common import device_of, documented, promote
from tinygraph.ops.common.patterns import spaced
from tinygraph.ops.elementwise.arithmetic import mul
from tinygraph.ops.products.matmul import matmul
from tinygraph.ops.reductions.sum import sum
from tinygraph.ops.shaping.expand import expand
from tinygraph.ops.shaping.gather import gather
from tinygraph.ops.shaping.reshape import reshape
from tinygraph.ops.shaping.transpose import permute

Names = tuple[str, ...]  # of axes: a letter, or "..1" for the last one of `...`, "..2" before it

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


class _Named(NamedTuple):
    """A tensor whose axes have names."""

    node: Tensor
    names: Names

    def ordered(self, names: Sequence[str]) -> Tensor:
        """With the axes in another order."""
        order = tuple([self.names.index(name) for name in names])
        return self.node if order == tuple(range(len(order))) else permute(self.node, order)

    def without(self, names: Iterable[str]) -> _Named:
        """Summed over some axes."""
        axes = tuple([self.names.index(name) for name in names])
        if not axes:
            return self
        left = tuple([name for i, name in enumerate(self.names) if i not in axes])
        return _Named(sum(self.node, axes), left)

    def sizes(self) -> dict[str, int]:
        return dict(zip(self.names, self.node.shape, strict=True))


@documented()
def einsum(equation: str, *operands: Operand) -> Tensor:
    """Sums of products of tensors, by the names of their axes.

    Parameters
    ----------
    equation : str
        The axes of each operand, a letter each, with commas between operands; behind `->` those of
        the output.  `...` stands for axes that are broadcast.
    *operands : Tensor
        As many as the equation has; dtypes promote as in PyTorch.

    Returns
    -------
    Tensor
        The axes that the equation says.

    Raises
    ------
    ArgumentError
        The equation cannot be read, has another number of operands, or names an axis twice in the
        output.
    ShapeError
        An operand has another number of axes, an axis has two sizes of which none is 1, or that of
        a diagonal has two.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> tg.einsum("ij, j -> i", x, [1.0, 10.0]).value
    array([21., 43.], dtype=float32)
    >>> tg.einsum("ij ->", x).item(), tg.einsum("ii", x).item()
    (10.0, 5.0)
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    terms, output = _read(equation, len(operands))
    nodes = promote("einsum", *operands)
    pairs = enumerate(zip(terms, nodes, strict=True), 1)
    named = [_diagonals(i, _named(i, *pair)) for i, pair in pairs]
    wanted = _output(equation, named, terms, output)
    named = _without_ones(named)
    product = named[0]
    for i, factor in enumerate(named[1:], 1):
        needed = {*wanted, *[name for later in named[i + 1 :] for name in later.names]}
        product = _multiplied(product, factor, needed)
    product = product.without([name for name in product.names if name not in wanted])
    sizes = product.sizes()  # an axis of size 1 in all operands stands in none of them
    y = product.ordered([name for name in wanted if name in sizes])
    return y if len(sizes) == len(wanted) else reshape(y, tuple([sizes.get(n, 1) for n in wanted]))


def _multiplied(a: _Named, b: _Named, needed: set[str]) -> _Named:
    """The product of two, summed over the axes that nobody needs any more."""
    a = a.without([name for name in a.names if name not in needed and name not in b.names])
    b = b.without([name for name in b.names if name not in needed and name not in a.names])
    stack = [name for name in a.names if name in b.names and name in needed]
    inner = [name for name in a.names if name in b.names and name not in needed]
    rows = [name for name in a.names if name not in b.names]
    columns = [name for name in b.names if name not in a.names]
    sizes = a.sizes() | b.sizes()

    def merged(*groups: Sequence[str]) -> tuple[int, ...]:
        return tuple([prod(sizes[name] for name in group) for group in groups])

    names = (*stack, *rows, *columns)
    if inner:
        left = reshape(a.ordered([*stack, *rows, *inner]), merged(stack, rows, inner))
        right = reshape(b.ordered([*stack, *inner, *columns]), merged(stack, inner, columns))
        return _Named(reshape(matmul(left, right), tuple([sizes[name] for name in names])), names)
    left = a.ordered([*stack, *rows])
    if columns:
        left = reshape(left, (*left.shape, *[1] * len(columns)))
    right = b.ordered([*stack, *columns])
    if rows:
        right = reshape(right, tuple([sizes[n] if n in b.names else 1 for n in names]))
    return _Named(mul(left, right), names)


# ---- the equation ---------------------------------------------------------------------------


def _read(equation: str, count: int) -> tuple[list[str], str | None]:
    """The terms of the operands, and that of the output if there is one."""
    if not isinstance(equation, str):
        expected, way_out = "a string, before the operands", 'tg.einsum("ij, jk", x, y)'
        raise ArgumentError("einsum", "equation", expected, type(equation).__name__, way_out)
    left, arrow, right = "".join(equation.split()).partition("->")
    terms = left.split(",")
    for term in [*terms, right]:
        if not _TERM.fullmatch(term):
            raise _unreadable(equation, "letters, at most one ... in a term, commas and one ->")
    twice = next((letter for letter in right if letter != "." and right.count(letter) > 1), None)
    if twice:
        way_out = "multiply a diagonal by tg.eye(n)"
        expected = "each axis once in the output"
        raise ArgumentError("einsum", "equation", expected, f"{twice!r} twice", way_out)
    if len(terms) != count:
        expected = f"{len(terms)}, as many as the equation has"
        raise ArgumentError("einsum", "operands", expected, count)
    return terms, right if arrow else None


def _unreadable(equation: str, expected: str) -> TinygraphError:
    return ArgumentError("einsum", "equation", expected, repr(equation), '"ij, jk -> ik"')


def _named(number: int, term: str, node: Tensor) -> _Named:
    letters, dots, behind = term.partition("...")
    more = node.ndim - len(letters) - len(behind)
    if more < 0 or (more and not dots):
        expected = f"{len(letters + behind)} axes{' or more' * bool(dots)}, {term!r}"
        raise ShapeError("einsum", f"operand {number}", expected, node.shape)
    return _Named(node, (*letters, *[f"..{i}" for i in range(more, 0, -1)], *behind))


def _diagonals(number: int, one: _Named) -> _Named:
    """Axes of one name in one operand as one: of all their elements, those where they are equal."""
    node, names = one
    for name in dict.fromkeys(names):
        first, *others = [i for i, other in enumerate(names) if other == name]
        for second in reversed(others):
            node = _diagonal(number, name, node, first, second)
            names = names[:second] + names[second + 1 :]
    return _Named(node, names)


def _diagonal(number: int, name: str, node: Tensor, first: int, second: int) -> Tensor:
    """Without the second axis: the elements whose index along it is that along the first."""
    n = node.shape[first]
    if node.shape[second] != n:
        expected = f"{name!r} of one size, for it is a diagonal"
        raise ShapeError("einsum", f"operand {number}", expected, node.shape)
    shape = [*node.shape]
    shape[second] = 1
    device = device_of(node)
    places = leaf(spaced(device, n, np.int64(0), np.int64(1), 0, np.int64(0)), device)
    along = reshape(places, tuple([n if i == first else 1 for i in range(node.ndim)]))
    at = expand(along, tuple(shape))
    kept = [size for i, size in enumerate(shape) if i != second]
    return reshape(gather(node, second, at), tuple(kept))


def _output(
    equation: str, named: Sequence[_Named], terms: Sequence[str], output: str | None
) -> Names:
    """The names of the output's axes."""
    known = [name for one in named for name in one.names]
    more = sorted({name for name in known if len(name) > 1}, key=lambda n: -int(n[2:]))
    if output is None:
        every = "".join(terms).replace(".", "")
        return (*more, *sorted(letter for letter in set(every) if every.count(letter) == 1))
    letters, dots, behind = output.partition("...")
    if dots and not any("..." in term for term in terms):
        raise _unreadable(equation, "... in an operand too")
    unknown = [letter for letter in letters + behind if letter not in known]
    if unknown:
        raise _unreadable(equation, f"axes that an operand has, not {unknown[0]!r}")
    return (*letters, *(more if dots else ()), *behind)


def _without_ones(named: Sequence[_Named]) -> list[_Named]:
    """Without axes of size 1, along which an operand is the same everywhere."""
    sizes: dict[str, int] = {}
    left = []
    for number, one in enumerate(named, 1):
        own = {name: size for name, size in one.sizes().items() if size != 1}
        for name, size in own.items():
            if sizes.setdefault(name, size) != size:
                expected = f"{name!r} of size {sizes[name]}, as in an operand before"
                raise ShapeError("einsum", f"operand {number}", expected, size)
        same = len(own) == len(one.names)
        left.append(one if same else _Named(reshape(one.node, tuple(own.values())), tuple(own)))
    return left
