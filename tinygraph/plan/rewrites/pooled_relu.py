"""ReLU after max-pooling in the place of before it: on a quarter of the numbers, or fewer.

    max_pool2d(relu(x))   ->   relu(max_pool2d(x)), as one op

The maximum of a window and ReLU commute.  Gradients are the same ones: where the maximum is not
above 0 none comes back, whichever pixel has won, and above 0 the same pixel wins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tinygraph.engine import Op
from tinygraph.ops.elementwise.relu import Relu
from tinygraph.ops.windows.max_pool2d import MaxPool2d
from tinygraph.plan.code import Code
from tinygraph.plan.rewrites.activation import Activated


def find_pooled_relus(code: Code) -> Iterator[tuple[Sequence[int], Op, Sequence[int]]]:
    """Every such pair."""
    users = code.only_users()
    for at, made in enumerate(code.instructions):
        pool = users[at]
        if not isinstance(made.op, Relu) or pool is None:
            continue
        after = code.instructions[pool]
        fewer = math.prod(after.spec.shape) < math.prod(made.spec.shape)
        if isinstance(after.op, MaxPool2d) and fewer:
            yield (at, pool), Activated(after.op, made.op), made.inputs
