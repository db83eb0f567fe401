"""Code: a graph as a list of instructions, the form in which a plan rewrites and runs it.

Instruction i makes value i.  A leaf has no op: its value is an argument of the call, or the value
that a tensor has when the plan runs.  The order is the order in which the ops were applied, so that
random numbers are drawn in it too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tinygraph.base import GraphError
from tinygraph.engine import CPU, Device, Op, Spec, Tensor


@dataclass(frozen=True)
class Instruction:
    """How one value is made."""

    spec: Spec  # for the whole batch
    op: Op | None = None  # None for a leaf
    inputs: tuple[int, ...] = ()  # which values the op takes
    needs: tuple[bool, ...] = ()  # for each input, whether its gradient is wanted
    argument: int | None = None  # of a leaf: which argument of the call gives its value
    tensor: Tensor | None = None  # of any other leaf: what is read, and gets the gradient
    label: str = ""  # for tables
    nodes: tuple[int, ...] = ()  # of the graph: which ones it stands for, by their place there

    @property
    def nbytes(self) -> int:
        return math.prod(self.spec.shape) * self.spec.dtype.itemsize


@dataclass
class Code:
    """Instructions, and what is asked of them."""

    instructions: list[Instruction] = field(default_factory=list)
    outputs: tuple[int, ...] = ()  # the values that leave the plan
    root: int | None = None  # where backward starts, if there is one: with 1, or what is given
    device: Device = CPU  # where all of it runs

    def users(self) -> list[list[int]]:
        """For each value the instructions that take it, each one once."""
        found: list[list[int]] = [[] for _ in self.instructions]
        for at, instruction in enumerate(self.instructions):
            for i in dict.fromkeys(instruction.inputs):
                found[i].append(at)
        return found

    def differentiated(self) -> list[bool]:
        """For each value, whether backward computes its gradient."""
        wanted = [False] * len(self.instructions)
        if self.root is not None:
            wanted[self.root] = True
        for at in range(len(self.instructions) - 1, -1, -1):
            instruction = self.instructions[at]
            if wanted[at]:
                for i, needed in zip(instruction.inputs, instruction.needs, strict=True):
                    wanted[i] = wanted[i] or needed
        return wanted

    def carrying(self) -> list[bool]:
        """For each value, whether it follows from samples: from an argument, or a leaf that is no
        parameter and has a float for each; where there is no argument, from any such leaf."""
        given = [made.spec.shape for made in self.instructions if made.argument is not None]
        rows = {shape[:1] for shape in given if shape}
        found: list[bool] = []
        for made in self.instructions:
            is_data = type(made.tensor) is Tensor and (
                not given or (made.spec.shape[:1] in rows and made.spec.dtype.kind == "f")
            )
            is_data = is_data or made.argument is not None
            found.append(is_data if made.op is None else any(found[i] for i in made.inputs))
        return found

    def only_users(self) -> list[int | None]:
        """For each value the only instruction that takes it, where nobody outside does."""
        outside = {*self.outputs, self.root}
        return [
            found[0] if len(found) == 1 and at not in outside else None
            for at, found in enumerate(self.users())
        ]

    def replaced(self, chain: Sequence[int], op: Op, inputs: Sequence[int]) -> Code:
        """The same code with a chain of instructions as one op, in the place of the last of them.

        Values of the others must not be used outside of the chain.
        """
        needs: dict[int, bool] = {}
        for at in chain:
            made = self.instructions[at]
            needs.update(zip(made.inputs, made.needs, strict=True))
        fused = replace(
            self.instructions[chain[-1]],
            op=op,
            inputs=tuple(inputs),
            needs=tuple([needs[i] for i in inputs]),
            label=op.name,
            nodes=tuple(sorted({n for at in chain for n in self.instructions[at].nodes})),
        )
        kept = [at for at in range(len(self.instructions)) if at not in chain[:-1]]
        place = {old: new for new, old in enumerate(kept)}
        made_anew = [fused if at == chain[-1] else self.instructions[at] for at in kept]
        return replace(
            self,
            instructions=[
                replace(made, inputs=tuple([place[i] for i in made.inputs])) for made in made_anew
            ],
            outputs=tuple([place[i] for i in self.outputs]),
            root=None if self.root is None else place[self.root],
        )


def code_of(
    nodes: Sequence[Tensor],
    outputs: Sequence[Tensor],
    root: Tensor | None,
    arguments: Sequence[Tensor] = (),
    aliases: Mapping[Tensor, Tensor] | None = None,
    device: Device = CPU,
) -> Code:
    """The code of a graph: its nodes in topological order, inputs before users.

    `aliases` names, for nodes that share the value of another one, that other one.  GraphError
    where a node that is used is not among the nodes.
    """
    place: dict[Tensor, int] = {}
    code = Code(device=device)
    argument = {tensor: i for i, tensor in enumerate(arguments)}

    def place_of(x: Tensor) -> int:
        while aliases and x in aliases:
            x = aliases[x]
        if x not in place:
            if x.op is not None:
                raise GraphError("plan", "nodes", "inputs before users", x.op.name)
            place[x] = len(code.instructions)
            given = argument.get(x)
            code.instructions.append(
                Instruction(
                    x.spec, argument=given, tensor=x if given is None else None, label=x.name or ""
                )
            )
        return place[x]

    for at, node in enumerate(nodes):
        inputs = tuple([place_of(x) for x in node.inputs])
        if node.op is not None:
            place[node] = len(code.instructions)
            label = node.name or node.op.name
            code.instructions.append(
                Instruction(node.spec, node.op, inputs, node.needs, label=label, nodes=(at,))
            )
    code.outputs = tuple([place_of(node) for node in outputs])
    code.root = None if root is None else place_of(root)
    return code
