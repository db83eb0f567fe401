"""Values that ops refuse, but could not look at when they ran: a GPU is not waited for."""

from __future__ import annotations

from tinygraph.graph import topological_order
from tinygraph.op import Op
from tinygraph.tensor import Tensor


def raise_for_bad_values(node: Tensor) -> None:
    """Let every op below a node look at its inputs, where no op has: a device without `on_host`.

    Raises
    ------
    ArgumentError
        From the first op, in topological order, that was given what it does not take.
    """
    if node.device.on_host:
        return
    for made in topological_order([node]):
        if made.op is not None and type(made.op).check is not Op.check:
            made.op.check(*[x.numpy() for x in made.inputs])
