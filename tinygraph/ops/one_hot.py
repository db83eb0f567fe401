"""One-hot vectors of labels.

    y[..., c] = 1 where c = label[...], else 0

Labels are integers, counted from 0.
"""

from __future__ import annotations

import numpy as np

from tinygraph.checks import whole
from tinygraph.errors import ArgumentError, DtypeError
from tinygraph.ops.cast import astype
from tinygraph.ops.comparison import equal
from tinygraph.ops.reshape import unsqueeze
from tinygraph.tensor import Operand, Tensor, as_tensor


def one_hot(labels: Operand, num_classes: int = -1) -> Tensor:
    """For each label a vector that is 1 at the label and 0 elsewhere.

    Parameters
    ----------
    labels : Tensor
        Any shape; integers from 0 to `num_classes` - 1.
    num_classes : int
        The length of the vectors; -1 for the largest label plus 1.

    Returns
    -------
    Tensor (..., num_classes)
        int64, without a gradient.  `.astype("float32")` makes numbers to compute with.

    Raises
    ------
    DtypeError
        `labels` holds no integers.
    ArgumentError
        A label is out of range (on a GPU, which would have to be waited for, only where
        `num_classes` is -1; a row of zeros stands for it else), or there is none of which a number
        of classes could be taken.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.one_hot([2, 0]).value
    array([[0, 0, 1],
           [1, 0, 0]])
    """
    labels = as_tensor(labels)
    if labels.dtype.kind not in "iu":
        way_out = "labels.astype('int64')"
        raise DtypeError("one_hot", "labels", "integers", labels.dtype, way_out)
    from_labels = num_classes == -1
    classes = 0 if from_labels else whole("one_hot", "num_classes", num_classes)
    if from_labels or isinstance(labels.value, np.ndarray):  # elsewhere it would be waited for
        classes = _checked(labels, classes)
    hot = equal(unsqueeze(labels, -1), np.arange(classes, dtype=labels.dtype))
    return astype(hot, "int64")


def _checked(labels: Tensor, classes: int) -> int:
    """How many classes there are; 0 stands for the largest label plus 1."""
    values = labels.numpy()
    if not values.size:
        if not classes:
            expected, way_out = "at least one label", "num_classes=10"
            raise ArgumentError("one_hot", "labels", expected, "none", way_out)
        return classes
    least, most = int(values.min()), int(values.max())
    classes = classes or most + 1
    if least < 0 or most >= classes:
        expected = f"labels from 0 to {classes - 1}" if least >= 0 else "labels of at least 0"
        raise ArgumentError("one_hot", "labels", expected, least if least < 0 else most)
    return classes
