"""One-hot vectors of labels.

    y[..., c] = 1 where c = label[...], else 0

Labels are integers, counted from 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, DtypeError, frozen, whole
from tinygraph.cuda import op_kernel
from tinygraph.engine import Array, Memory, Op, Operand, Spec, Tensor, as_tensor
from tinygraph.ops.common import astype, for_each


@frozen
class OneHot(Op):
    classes: int

    def infer(self, labels: Spec) -> Spec:
        if labels.dtype != np.int64:
            way_out = "use tg.one_hot, which converts"
            raise DtypeError(self.name, "labels", "int64", labels.dtype, way_out)
        return Spec((*labels.shape, self.classes), labels.dtype)

    def check(self, labels: Array) -> None:
        if not labels.size:
            return
        least, most = int(labels.min()), int(labels.max())
        if least < 0 or most >= self.classes:
            expected = f"labels from 0 to {self.classes - 1}"
            raise ArgumentError(self.name, "labels", expected, least if least < 0 else most)

    def forward(self, mem: Memory, labels: Array) -> tuple[Array, Any]:
        y = mem.empty((*labels.shape, self.classes), labels.dtype)
        np.equal(labels[..., None], np.arange(self.classes), out=y, casting="unsafe")
        return y, None

    def forward_kernel(self, mem: Memory, labels: Array) -> tuple[Array, Any]:
        y = mem.empty((*labels.shape, self.classes), labels.dtype)
        kernel = op_kernel("one_hot", "one_hot")
        for_each(kernel, y.size, labels, y, y.size, self.classes)
        return y, None

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if specs[0].shape else None


def one_hot(labels: Operand, num_classes: int = -1) -> Tensor:
    """For each label a vector that is 1 at the label and 0 elsewhere.

    Parameters
    ----------
    labels : Tensor
        Any shape; integers from 0 to `num_classes` - 1.
    num_classes : int
        The length of the vectors; -1 for the largest label plus 1, which is read.

    Returns
    -------
    Tensor (..., num_classes)
        int64, without a gradient.  `.astype("float32")` makes numbers to compute with.

    Raises
    ------
    DtypeError
        `labels` holds no integers.
    ArgumentError
        A label is out of range (on a GPU a row of zeros stands for it), or there is none of which
        a number of classes could be taken.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.one_hot([2, 0]).value
    array([[0, 0, 1],
           [1, 0, 0]])
    """
    node = as_tensor(labels)
    if node.dtype.kind not in "iu":
        raise DtypeError("one_hot", "labels", "integers", node.dtype, "labels.astype('int64')")
    if num_classes == -1:
        values = node.numpy()
        if not values.size:
            expected, way_out = "at least one label", "num_classes=10"
            raise ArgumentError("one_hot", "labels", expected, "none", way_out)
        num_classes = max(int(values.max()), 0) + 1
    return OneHot(whole("one_hot", "num_classes", num_classes))(astype(node, "int64"))
