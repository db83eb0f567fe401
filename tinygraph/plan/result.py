"""Results of a plan as nodes: leaves, or one that can be differentiated as a whole.

A GPU is not waited for, so that ops do not look at their operands before they run (`Op.check`).
Kernels make NaN of what they do not take, and when a NaN is read the ops below look (see
`Tensor.item`).  A leaf has no ops below; so there a result is a node of `FromPlan`, which lets the
ops of the plan look.
"""

from __future__ import annotations

from typing import Any

from tinygraph.base import GraphError
from tinygraph.engine import Array, Gradients, Memory, Op, Spec, Tensor, leaf
from tinygraph.plan.runner import Plan


class FromPlan(Op):
    """y = x, where a plan has computed x.  No gradient passes."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def check(self, *arrays: Any) -> None:
        self.plan.look()

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return x, None

    def backward(self, mem: Memory, grad: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        return (None,)

    forward_kernel, backward_kernel = forward, backward  # nothing moves, so there is no kernel


def as_node(array: Array, plan: Plan) -> Tensor:
    """What a plan has computed, as a node."""
    node = leaf(array, plan.device)
    if not plan.looks_late:
        return node
    made = leaf(array, plan.device)
    made.op, made.inputs, made.needs = FromPlan(plan), (node,), (False,)
    return made


class _Lease:
    """Holds a plan until nobody can ask for its backward any more, then gives it back."""

    def __init__(self, plan: Plan, free: list[Plan]) -> None:
        self.plan, self.free = plan, free

    def __del__(self) -> None:
        self.free.append(self.plan)


class PlannedCall(Op):
    """A whole plan as one node of a graph: its forward now, its backward when it is asked for.

    The node's value is one of the plan's outputs, its inputs are `leaves` among the plan's values.
    The plan goes to `free` when nobody can ask for its backward any more.
    """

    def __init__(
        self,
        plan: Plan,
        free: list[Plan],
        output: int,
        arguments: list[Array],
        leaves: tuple[int, ...],
    ) -> None:
        self.plan, self.free, self.output, self.leaves = plan, free, output, leaves
        self.spec = plan.code.instructions[plan.code.root or 0].spec
        self.outputs: list[Array] = []
        self._once: tuple[Plan, list[Array]] | None = plan, arguments

    def infer(self, *specs: Spec) -> Spec:
        return self.spec

    def check(self, *arrays: Any) -> None:
        self.plan.look()

    def forward(self, mem: Memory, *arrays: Array) -> tuple[Array, Any]:
        if self._once is None:
            raise GraphError(
                "plan: the node of a compiled call cannot be computed again. Way out: call the "
                "compiled function again, or make the Graph from the function itself"
            )
        plan, arguments = self._once
        self._once = None
        lease = _Lease(plan, self.free)  # holds the plan from now on
        self.outputs = plan.forward(arguments)
        return self.outputs[self.output], lease

    def backward(self, mem: Memory, grad: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        found = saved.plan.backward(grad)
        wanted = zip(self.leaves, needs, strict=True)
        return tuple([found.get(at) if needed else None for at, needed in wanted])

    forward_kernel, backward_kernel = forward, backward  # the plan itself launches kernels
