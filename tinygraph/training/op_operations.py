"""How many floating-point operations an op does, forward and backward, from shapes alone.

An op's kernels state their operations (operation_counts.py).  They are called as they would be
for these shapes, but nothing is launched and no array is touched: so one statement serves the
kernel, and the numpy body beside it that computes the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinygraph.cuda import RecordedLaunch, recording
from tinygraph.device import EMULATOR
from tinygraph.errors import TinygraphError
from tinygraph.memory import eager_memory
from tinygraph.op import Op
from tinygraph.random import default_generator
from tinygraph.shapes import Spec


def operations_of(
    op: Op, specs: Sequence[Spec], needs: tuple[bool, ...]
) -> tuple[int | None, int | None]:
    """Operations of one forward and of one backward.

    Parameters
    ----------
    op : Op
    specs : sequence of Spec
        Of the inputs.
    needs : tuple of bool
        For each input, whether its gradient is wanted.

    Returns
    -------
    forward, backward : int or None
        None where there is no kernel, or where its file states none; None for backward where no
        gradient is wanted.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x, w = tg.zeros((64, 100)), tg.Parameter(tg.zeros((10, 100)))
    >>> node = tg.linear(x, w)
    >>> operations_of(node.op, [x.spec, w.spec], node.needs)  # 2 * 64 * 10 * 100 each
    (128000, 128000)
    """
    draws = default_generator.state_dict()
    mem = eager_memory(needs, EMULATOR)
    try:
        with recording(execute=False) as launches:
            arrays = [np.empty(spec.shape, spec.dtype) for spec in specs]
            value, saved = op.forward_kernel(mem, *arrays)
            forward = _sum(launches)
            if True not in needs:
                return forward, None
            first = len(launches)
            op.backward_kernel(mem, np.empty(value.shape, value.dtype), saved, needs)
            return forward, _sum(launches[first:])
    except TinygraphError:  # no kernel, or none that states its operations in a way we can read
        return None, None
    finally:
        default_generator.load_state_dict(draws)


def _sum(launches: Sequence[RecordedLaunch]) -> int | None:
    operations = [launch.operations for launch in launches]
    return None if None in operations else sum([n or 0 for n in operations])
