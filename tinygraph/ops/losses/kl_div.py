"""Kullback-Leibler divergence: what is lost where x stands for the distribution y.

    x = log q, y = p                    M elements, N of them on axis 0
    l    = p * (log p - x)              0 where p = 0
    loss = sum of l / N ("batchmean"), / M ("mean"), the sum ("sum"), l ("none")

Source: Kullback, Leibler, "On information and sufficiency", Annals of Mathematical Statistics 22,
1951.
"""

from __future__ import annotations

from tinygraph.base import ShapeError, one_of
from tinygraph.engine import Operand, Tensor, require_float
from tinygraph.ops.common import promote
from tinygraph.ops.elementwise.arithmetic import div, mul, sub
from tinygraph.ops.elementwise.comparison import equal
from tinygraph.ops.elementwise.elementwise import exp, log
from tinygraph.ops.elementwise.where import where
from tinygraph.ops.losses.losses import REDUCTIONS, pair_loss
from tinygraph.ops.losses.weighted import reduced
from tinygraph.ops.reductions.sum import sum


@pair_loss
def kl_div(x: Operand, y: Operand, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Kullback-Leibler divergence of log-probabilities x from probabilities y.

    Parameters
    ----------
    reduction : {"mean", "batchmean", "sum", "none"}
        Over all elements; "batchmean" divides the sum by the size of axis 0, which makes it the
        divergence of mathematics; "none" keeps the elements.
    log_target : bool
        Whether `y` holds logarithms of probabilities too.

    Raises
    ------
    ShapeError
        The shapes differ: nothing is broadcast here; or there is no axis for "batchmean".

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.log([[0.5, 0.5], [0.25, 0.75]])
    >>> round(tg.kl_div(x, [[1.0, 0.0], [0.25, 0.75]], "batchmean").item(), 4)  # log(2) / 2
    0.3466
    """
    one_of("kl_div", "reduction", reduction, ("batchmean", *REDUCTIONS))
    x, y = promote("kl_div", x, y)
    require_float("kl_div", x=x.spec)
    if x.shape != y.shape:
        way_out = "expand one to the shape of the other"
        raise ShapeError("kl_div", "y", f"the shape of x, {x.shape}", y.shape, way_out)
    if reduction == "batchmean" and not x.ndim:
        raise ShapeError("kl_div", "x", "at least one axis for 'batchmean'", x.shape)
    if log_target:
        losses = mul(exp(y), sub(y, x))
    else:
        losses = sub(mul(y, log(where(equal(y, 0.0), 1.0, y))), mul(y, x))
    if reduction == "batchmean":
        return div(sum(losses), float(x.shape[0]))
    return reduced("kl_div", losses, reduction)
