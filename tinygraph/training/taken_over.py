"""TakenOver: what a recorded step has taken over of its model, and whether it is still so.

A graph repeats the launches of one step.  Another mode, layer, frozen parameter, number or word
among the attributes of a module would make other launches.  It is asked before each step, and so
made to be asked: the walk over the modules is done once.
"""

from __future__ import annotations

from typing import Any

from tinygraph.base.precision import get_float32_matmul_precision
from tinygraph.nn import Buffer, Module, Parameter

PLAIN = (bool, int, float, str, type(None))  # settings of a module
_GONE = object()


class TakenOver:
    """The settings of a model at one time; other attributes of modules may change."""

    def __init__(self, model: Module) -> None:
        self.precision = get_float32_matmul_precision()
        # The attributes of each module, how many there are, and those that matter.
        self.modules: list[tuple[dict[str, Any], int, list[tuple[str, Any]]]] = []
        self.leaves: list[tuple[Any, bool]] = []
        self.buffers: list[tuple[Any, Any]] = []
        for module in model.modules():
            own = vars(module)
            parts = [(name, x) for name, x in own.items() if isinstance(x, (Module, *_LEAVES))]
            plain = [(name, x) for name, x in own.items() if type(x) in PLAIN]
            self.modules.append((own, len(own), parts + plain))
            self.leaves += [(x, x.requires_grad) for _, x in parts if isinstance(x, _LEAVES)]
            self.buffers += [(x, x.value) for _, x in parts if isinstance(x, Buffer)]

    def holds(self) -> bool:
        """Whether all of it is as it was."""
        for own, count, values in self.modules:
            if len(own) != count:
                return False
            for name, value in values:
                now = own.get(name, _GONE)
                if now is not value and not _equal(now, value):
                    return False
        return (
            get_float32_matmul_precision() == self.precision
            and all(leaf.requires_grad is wants for leaf, wants in self.leaves)
            and all(buffer.value is value for buffer, value in self.buffers)
        )


_LEAVES = (Parameter, Buffer)


def _equal(one: Any, other: Any) -> bool:
    """Whether two numbers or words are equal; of modules and arrays only identity counts."""
    return type(one) in PLAIN and type(one) is type(other) and bool(one == other)
