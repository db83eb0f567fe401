"""Products of vectors and matrices, each for its own number of axes: dot, mv, mm, bmm, outer.

    dot    z = sum of x[k] * y[k]
    mv     z[i] = sum of x[i, k] * y[k]
    mm     z[i, j] = sum of x[i, k] * y[k, j]
    bmm    z[n, i, j] = sum of x[n, i, k] * y[n, k, j]
    outer  z[i, j] = x[i] * y[j]

Nothing is broadcast; `matmul` is the product of operands with any number of axes.
"""

from __future__ import annotations

from tinygraph.base import ShapeError
from tinygraph.engine import Operand, Tensor
from tinygraph.ops.common import documented, promote
from tinygraph.ops.elementwise.arithmetic import mul
from tinygraph.ops.products.matmul import matmul
from tinygraph.ops.shaping.reshape import unsqueeze


def _of_axes(op: str, x: Operand, x_axes: str, y: Operand, y_axes: str) -> tuple[Tensor, ...]:
    """Both in one dtype, with these axes, a letter each; equal letters are equal sizes."""
    operands = promote(op, x, y)
    sizes: dict[str, int] = {}
    for name, node, axes in zip("xy", operands, (x_axes, y_axes), strict=True):
        legend = f"({', '.join(axes)}{',' * (len(axes) == 1)})"
        if node.ndim != len(axes):
            raise ShapeError(op, name, legend, node.shape, "tg.matmul takes any number of axes")
        for letter, size in zip(axes, node.shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                expected = f"{legend} with {letter} = {sizes[letter]}, as in x"
                raise ShapeError(op, name, expected, node.shape)
    return operands


_product = documented(
    """
    Raises
    ------
    ShapeError
        An operand has other axes, or sizes differ that must be equal.
    """
)


@_product
def dot(x: Operand, y: Operand) -> Tensor:
    """The inner product of two vectors.

    Parameters
    ----------
    x, y : Tensor (K,)
        Dtypes promote as in PyTorch.

    Returns
    -------
    Tensor ()

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.dot([1.0, 2.0], [3.0, 4.0]).item()
    11.0
    """
    return matmul(*_of_axes("dot", x, "K", y, "K"))


@_product
def mv(x: Operand, y: Operand) -> Tensor:
    """The product of a matrix and a vector.

    Parameters
    ----------
    x : Tensor (M, K)
    y : Tensor (K,)
        Dtypes promote as in PyTorch.

    Returns
    -------
    Tensor (M,)

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.mv([[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0]).value
    array([21., 43.], dtype=float32)
    """
    return matmul(*_of_axes("mv", x, "MK", y, "K"))


@_product
def mm(x: Operand, y: Operand) -> Tensor:
    """The product of two matrices.

    Parameters
    ----------
    x : Tensor (M, K)
    y : Tensor (K, N)
        Dtypes promote as in PyTorch.

    Returns
    -------
    Tensor (M, N)

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.mm([[1.0, 2.0]], [[3.0], [4.0]]).value
    array([[11.]], dtype=float32)
    """
    return matmul(*_of_axes("mm", x, "MK", y, "KN"))


@_product
def bmm(x: Operand, y: Operand) -> Tensor:
    """The products of as many pairs of matrices; nothing is broadcast.

    Parameters
    ----------
    x : Tensor (B, M, K)
    y : Tensor (B, K, N)
        Dtypes promote as in PyTorch.

    Returns
    -------
    Tensor (B, M, N)

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.bmm(tg.ones((2, 1, 3)), tg.ones((2, 3, 1))).value.ravel()
    array([3., 3.], dtype=float32)
    """
    return matmul(*_of_axes("bmm", x, "BMK", y, "BKN"))


@_product
def outer(x: Operand, y: Operand) -> Tensor:
    """Each element of a vector times each element of another one.

    Parameters
    ----------
    x : Tensor (M,)
    y : Tensor (N,)
        Dtypes promote as in PyTorch.

    Returns
    -------
    Tensor (M, N)

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.outer([1.0, 2.0], [3.0, 4.0]).value
    array([[3., 4.],
           [6., 8.]], dtype=float32)
    """
    x, y = _of_axes("outer", x, "M", y, "N")
    return mul(unsqueeze(x, 1), y)
