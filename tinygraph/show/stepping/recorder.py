"""Recorder: what happens in one step of a graph, taken down while it happens.

    nodes    {number: {name, kind, op, title, inputs, value, formulas, state}}
    steps    [{phase, node, ...}] in the order in which they happened:
             forward   saved: [{array, is}]                  an op has made its value
             seed      grad                                  backward begins
             backward  grad, hooked, sent: [{to, input, grad, before, total}]
             leaf      grad, before, total                   a leaf keeps its gradient
             update    before, grad, after, rule, settings, state: [{name, before, after}];
                       changed: the gradient is no longer what backward has left, but clipped
             write     before, after                         a leaf gets another value

Numbers of nodes are those of `show.graph`; arrays are numbers in `arrays`.  Forward is read from
the graph when backward begins, for until then everything is as forward has left it.  The walk
itself tells what passes, by `Runner.receive`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinygraph.base import GraphError
from tinygraph.base.page_text import printable
from tinygraph.engine import Array, Runner, Tensor, topological_order
from tinygraph.engine.feeds import FREED
from tinygraph.plan.buffers import arrays_in, owner
from tinygraph.show.boxes import Box, collect
from tinygraph.show.stepping.arrays import Arrays
from tinygraph.show.stepping.forms import forms, is_convolution
from tinygraph.show.stepping.formulas import formulas, rules
from tinygraph.show.stepping.origins import ENTRIES, origins

MOST_NODES = 2500  # more steps than anyone looks at

Step = dict[str, Any]


class Recorder(Runner):
    """Takes down the first backward under it, with its forward, and the updates behind it.

    What runs through a plan runs as it stands meanwhile.

    Parameters
    ----------
    into : dict, optional
        Where backward puts the gradients of leaves, if not into `.grad`: the `into` of the walk.
    """

    plans = False

    def __init__(self, into: dict[Tensor, Any] | None = None) -> None:
        self.into = into
        self.arrays = Arrays()
        self.nodes: dict[int, dict[str, Any]] = {}
        self.steps: list[Step] = []
        self.formulas: list[dict[str, Any]] = []  # each once, as nodes and steps refer to it
        self.boxes: list[Box] = []
        self.outputs: tuple[Tensor, ...] = ()
        self.numbers: dict[Tensor, int] = {}
        self._made: list[tuple[Tensor, Any, Any]] = []  # ops that ran, until there is a graph
        self._given: dict[Tensor, Array] = {}  # what they were given: a leaf may get another value
        self._share = 0, 0  # entries of origins for each op; convolutions
        self._totals: dict[int, int] = {}  # what each node has had so far
        self._walking = False

    # ---- what the stack tells ---------------------------------------------------------------

    def forward(self, node: Any, mem: Any, arrays: list[Any]) -> Any:
        returned = self.below.forward(node, mem, arrays)
        if isinstance(node, Tensor) and not self.numbers and isinstance(returned, tuple):
            self._made.append((node, node.op, node.inputs))
            self._given.update(zip(node.inputs, arrays, strict=False))
        return returned

    def walk_back(self, walk: Callable[[], None], outputs: Any, gradients: Any) -> None:
        if self.numbers:  # a second one
            self.below.walk_back(walk, outputs, gradients)
            return
        self._made, self._given = [], {}
        self.take(tuple(outputs))
        leaves = [x for x in self.numbers if x.op is None and x.requires_grad]
        before = {x: None if x.grad is None else self._add(x, x.grad) for x in leaves}
        begun, self._walking = len(self.steps), True
        try:
            self.below.walk_back(walk, outputs, gradients)
        finally:
            self._walking = False
        self._put_leaves(begun, before)

    def receive(self, user: Any, node: Any, grad: Any, before: Any, add: Callable[..., Any]) -> Any:
        if not self._walking:
            return self.below.receive(user, node, grad, before, add)
        given = self._add(node, grad)
        had = None if before is None else self._add(node, before)  # the sum may be written into it
        total = self.below.receive(user, node, grad, before, add)
        has = self._add(node, total)
        number = self.numbers[node]
        if user is None:
            step = {"phase": "seed", "node": number, "grad": given, "before": had, "total": has}
            self.steps.append(step)
        else:
            places = [k for k, x in enumerate(user.inputs) if x is node]
            sent = self.steps[-1]["sent"]
            again = sum(1 for other in sent if other["to"] == number)  # x * x: two uses by one op
            place = places[min(again, len(places) - 1)]
            term = {"to": number, "input": place, "grad": given, "before": had, "total": has}
            sent.append(term)
        self._totals[number] = has
        return total

    def backward(self, node: Any, mem: Any, grad: Any, saved: Any) -> Any:
        if self._walking and node in self.numbers:
            number, given = self.numbers[node], self._add(node, grad)
            hooked = self._totals.get(number) != given
            step = {"phase": "backward", "node": number, "grad": given, "hooked": hooked}
            self.steps.append({**step, "sent": []})
        return self.below.backward(node, mem, grad, saved)

    def update(self, optimizer: Any) -> None:
        named = [(name, p) for name, p in optimizer.parameters.items() if p in self.numbers]
        before = {name: self._of_parameter(optimizer, name, p) for name, p in named}
        grads = {name: None if p.grad is None else self._add(p, p.grad) for name, p in named}
        self.below.update(optimizer)
        settings: dict[str, str] = {}
        for group in optimizer.groups:
            settings |= _settings(optimizer, group)
        kept = {s["node"]: s["total"] for s in self.steps if s["phase"] == "leaf"}
        for name, p in named:
            if grads[name] is None:
                continue
            old, new = before[name], self._of_parameter(optimizer, name, p)
            state = [
                {"name": key, "before": old.get(key), "after": made}
                for key, made in new.items()
                if key
            ]
            self.steps.append(
                {
                    "phase": "update",
                    "node": self.numbers[p],
                    "before": old[""],
                    "grad": grads[name],
                    "changed": kept.get(self.numbers[p]) not in (None, grads[name]),
                    "after": new[""],
                    "state": state,
                    "rule": type(optimizer).__name__,
                    "formulas": self._formulas(rules(type(optimizer))),
                    "settings": settings.get(name, ""),
                }
            )

    def write(self, node: Any, array: Any) -> None:
        self._take_made()
        self.below.write(node, array)

    def close(self) -> None:
        """The function has ended: leaves that it gave other values, beside the updates."""
        self._take_made()
        last = {n: node["value"] for n, node in self.nodes.items()}
        last |= {step["node"]: step["after"] for step in self.steps if step["phase"] == "update"}
        for node, number in self.numbers.items():
            if node.op is not None or node.shape != self._shape(last[number]):
                continue
            now = self._add(node, node.value)
            if now != last[number]:
                step = {"phase": "write", "node": number, "before": last[number], "after": now}
                self.steps.append(step)

    # ---- the graph --------------------------------------------------------------------------

    def take(self, outputs: tuple[Tensor, ...]) -> None:
        """Take down the graph below some outputs as forward has left it."""
        order = topological_order(outputs)
        if len(order) > MOST_NODES:
            raise GraphError(
                "show.steps",
                "loss",
                f"at most {MOST_NODES} nodes",
                len(order),
                "step through a part: an inner node in the place of the loss, or fewer time steps",
            )
        self.outputs, self.boxes = outputs, collect(outputs)
        self.numbers = {node: number for number, node in enumerate(order, start=1)}
        written = {node.inputs[i] for node in order if node.op for i in node.op.updates}
        for box, node in zip(self.boxes, order, strict=True):
            self.nodes[box.number] = self._node(box, node, node in written)
        ops = [x for x in order if x.op is not None]
        convolutions = sum(map(is_convolution, ops))
        self._share = max(64, ENTRIES // max(1, len(ops))), convolutions
        for node in order:
            if node.op is not None:
                self._forward_step(node, node.saved)

    def _take_made(self) -> None:
        """The same of ops that ran without a graph: they get back what they were made to forget."""
        if self.numbers or not self._made:
            return
        used = {x for _, _, inputs in self._made for x in inputs}
        for node, op, inputs in self._made:
            node.op, node.inputs = op, inputs
            node.needs = (False,) * len(inputs)
        self.take(tuple([node for node, *_ in self._made if node not in used]))
        self._made, self._given = [], {}

    def _node(self, box: Box, node: Tensor, is_state: bool) -> dict[str, Any]:
        op = node.op
        return {
            "name": printable(node.name or (op.name if op else box.title)),
            "kind": box.kind,
            "op": printable(repr(op)) if op else "",
            "inputs": [self.numbers[x] for x in node.inputs],
            "value": self._add(node, self._given.get(node, node.value)),
            "formulas": self._formulas(formulas(op)) if op else None,
            "state": is_state,
        }

    def _explain(self, node: Tensor) -> dict[str, Any]:
        """What a number of an op comes from, and the forms of a convolution."""
        share, convolutions = self._share
        return {"origins": origins(node, share), "forms": forms(node, self.arrays, convolutions)}

    def _forward_step(self, node: Tensor, saved: Any) -> None:
        kept = [] if saved is FREED else [a for a in arrays_in(saved) if a is not None]
        shown = [{"array": self._add(node, a), "is": _known(a, node)} for a in kept]
        self.steps.append({"phase": "forward", "node": self.numbers[node], "saved": shown})
        self.nodes[self.numbers[node]] |= self._explain(node)

    def _put_leaves(self, begun: int, before: dict[Tensor, int | None]) -> None:
        """A step for each leaf that backward has reached, where the walk came to it."""
        for leaf, had in before.items():
            number = self.numbers[leaf]
            if number not in self._totals:
                continue
            has = leaf.grad if self.into is None else self.into.get(leaf)
            total = self._totals[number] if has is None else self._add(leaf, has)
            own = total if had is None or self.into is not None else self._totals[number]
            step = {"phase": "leaf", "node": number, "grad": own, "total": total}
            step["before"] = had if self.into is None else None
            later = [
                k
                for k, other in enumerate(self.steps)
                if k >= begun and other["phase"] != "seed" and other["node"] < number
            ]
            self.steps.insert(later[0] if later else len(self.steps), step)

    def _formulas(self, found: dict[str, Any]) -> int:
        """The place of some formulas among those of the page."""
        if found not in self.formulas:
            self.formulas.append(found)
        return self.formulas.index(found)

    def _shape(self, number: int) -> Any:
        return self.arrays.kept[number].shape

    # ---- arrays -----------------------------------------------------------------------------

    def _add(self, node: Any, array: Array) -> int:
        return self.arrays.add(node.device.to_numpy(array))

    def _of_parameter(self, optimizer: Any, name: str, p: Any) -> dict[str, int]:
        """The value of a parameter under "", and the arrays of its state."""
        state = optimizer.state[name]
        arrays = {key: state[key] for key in optimizer.arrays if state.get(key) is not None}
        found = {"": self._add(p, p.value)}
        return found | {key: self._add(p, array) for key, array in arrays.items()}


def _settings(optimizer: Any, group: Any) -> dict[str, str]:
    """The parameters of a group by name, each with the group's settings in words."""
    members = set(map(id, group["params"]))
    words = ", ".join(f"{key}={value}" for key, value in group.items() if key != "params")
    return {name: words for name, p in optimizer.parameters.items() if id(p) in members}


def _known(array: Array, node: Tensor) -> str:
    """Which array of a node that is, where it is one, or a view of one."""
    own = owner(array)
    for place, x in enumerate(node.inputs, start=1):
        if own is owner(x.value):
            return f"input {place}"
    return "the output" if own is owner(node.value) else ""
