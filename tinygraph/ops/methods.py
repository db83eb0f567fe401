"""The ops that Tensor offers as operators and methods: filled in here, once, and nowhere else."""

from __future__ import annotations

from tinygraph.operators import above, settle
from tinygraph.ops.arithmetic import Add, add, div, mul, pow, sub
from tinygraph.ops.cast import astype
from tinygraph.ops.clip import clip
from tinygraph.ops.comparison import equal, greater, greater_equal, less, less_equal, not_equal
from tinygraph.ops.cumsum import cumsum
from tinygraph.ops.elementwise import abs, exp, log, neg, sqrt
from tinygraph.ops.expand import expand
from tinygraph.ops.getitem import getitem
from tinygraph.ops.matmul import matmul
from tinygraph.ops.max import max, min
from tinygraph.ops.mean import mean
from tinygraph.ops.reshape import flatten, reshape, squeeze, unsqueeze
from tinygraph.ops.split import split
from tinygraph.ops.sum import sum
from tinygraph.ops.to import to
from tinygraph.ops.transpose import transpose
from tinygraph.ops.var import var


def fill_methods() -> None:
    """Give `above`, through which Tensor's methods reach their ops, the functions it needs."""
    above.neg, above.abs, above.exp, above.log, above.sqrt = neg, abs, exp, log, sqrt
    above.add, above.sub, above.mul, above.div = add, sub, mul, div
    above.add_arrays = Add().launch  # fan-out sums, where kernels make them
    above.pow, above.matmul = pow, matmul
    above.less, above.less_equal, above.equal = less, less_equal, equal
    above.greater, above.greater_equal, above.not_equal = greater, greater_equal, not_equal
    above.astype, above.to = astype, to
    above.sum, above.mean, above.var, above.cumsum = sum, mean, var, cumsum
    above.max, above.min, above.clip = max, min, clip
    above.reshape, above.flatten, above.transpose = reshape, flatten, transpose
    above.squeeze, above.unsqueeze, above.expand = squeeze, unsqueeze, expand
    above.getitem, above.split = getitem, split
    settle()
