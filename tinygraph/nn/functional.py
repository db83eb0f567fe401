"""The functions of ops under `nn.functional`, with PyTorch's arguments where these differ.

    import tinygraph.nn.functional as F

    F.relu(x), F.mse_loss(y, t)                 tg.relu, tg.mse_loss
    F.cross_entropy(logits, labels)             tg.cross_entropy

Every function of `tg` that computes on tensors is here.  Those below have another order of
arguments, or other defaults, in `nn.functional` than in `tg`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import tinygraph.ops as ops
from tinygraph.base import ArgumentError, ShapeError
from tinygraph.base.lazy import lazy
from tinygraph.engine import Operand, Tensor, as_tensor

if TYPE_CHECKING:
    from tinygraph.ops import *  # noqa: F403
else:
    _HOMES = dict.fromkeys(ops.EXPORTS, "tinygraph.ops")
    __getattr__, __dir__ = lazy(__name__, _HOMES, "nn.functional")


def batch_norm(  # type: ignore[no-redef]
    input: Operand,
    running_mean: Operand | None,
    running_var: Operand | None,
    weight: Operand | None = None,
    bias: Operand | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Batch norm, the running statistics first: see `tg.batch_norm`.

    Examples
    --------
    >>> import tinygraph.nn.functional as F
    >>> F.batch_norm([[1.0], [3.0]], None, None, training=True).value.round(3).tolist()
    [[-1.0], [1.0]]
    """
    return ops.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def pad(  # type: ignore[no-redef]
    input: Operand, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """A border around an array, its widths from the last axis on: see `tg.pad`.

    Parameters
    ----------
    input : Tensor
        Any shape and dtype.
    pad : sequence of int
        Before and after the last axis, then before and after the last but one, ...  With mode
        constant negative ones cut so many elements off.
    mode : {"constant", "reflect", "replicate", "circular"}
    value : float, optional
        What the border holds; 0 without it.

    Raises
    ------
    ArgumentError
        An odd number of widths, more than two for each axis, or an unknown mode.
    ShapeError
        More is cut off than there is.

    Examples
    --------
    >>> import tinygraph.nn.functional as F
    >>> F.pad([[1.0, 2.0]], (1, 0)).value
    array([[0., 1., 2.]], dtype=float32)
    """
    x, widths = as_tensor(input), list(pad)
    if len(widths) % 2 or len(widths) > 2 * x.ndim:
        expected = f"before and after of some last axes: 2, 4, ... {2 * x.ndim} ints"
        raise ArgumentError("pad", "pad", expected, pad)
    pairs = [(widths[i], widths[i + 1]) for i in range(0, len(widths), 2)]
    pairs += [(0, 0)] * (x.ndim - len(pairs))
    pairs, filled = pairs[::-1], 0.0 if value is None else value
    if mode == "constant" and [n for n in widths if n < 0]:
        x, pairs = _cut(x, pairs)
    return ops.pad(x, tuple(pairs), filled, mode) if pairs else x


def _cut(x: Tensor, pairs: list[tuple[int, int]]) -> tuple[Tensor, list[tuple[int, int]]]:
    """What negative widths leave of an array, and the other widths."""
    less = [(before * (before < 0), after * (after < 0)) for before, after in pairs]
    kept = []
    for axis, (size, (before, after)) in enumerate(zip(x.shape, less, strict=True)):
        if size + before + after < 0:
            expected = f"at most {size} elements cut off axis {axis}"
            raise ShapeError("pad", "pad", expected, (before, after))
        kept.append(slice(-before, size + after))
    rest = zip(pairs, less, strict=True)
    return x[tuple(kept)], [(b - cut_b, a - cut_a) for (b, a), (cut_b, cut_a) in rest]
