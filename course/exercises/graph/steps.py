"""What is tried of exercise 4: graphs are data here, and nodes in the learner's process."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tinygraph.base.frozen import frozen
from tinygraph.engine.spec import Array
from tinygraph_course.checking.compare import difference
from tinygraph_course.checking.learner import Learner
from tinygraph_course.checking.steps import (
    Failure,
    FunctionStep,
    Odd,
    Raised,
    answer_of,
    said,
    shown,
)
from tinygraph_course.content.exercise import Exercise

Graph = tuple[list[Array], list[bool], list[Any], list[int]]  # leaves, trainable, steps, outputs

DEEP = 1_500  # nodes in a chain, beyond Python's limit of calls inside each other


def program(*lines: str, outputs: str = "") -> Graph:
    """A graph of lines "a = [2]", "constant a = [2]", "c = mul(a, b)"; its end is the output."""
    names: list[str] = []
    leaves, trainable, steps = [], [], []
    for line in lines:
        name, _, right = line.removeprefix("constant ").partition(" = ")
        op, _, inputs = right.removesuffix(")").partition("(")
        if inputs:
            steps.append([op, [names.index(x) for x in inputs.split(", ")], {}])
        else:
            leaves.append(np.array(json.loads(right), np.float64))
            trainable.append(not line.startswith("constant"))
        names.append(name)
    return leaves, trainable, steps, [names.index(x) for x in outputs.split() or names[-1:]]


def name_of(number: int) -> str:
    """a, b, c, ... and from the 27th node on n26."""
    return "abcdefghijklmnopqrstuvwxyz"[number] if 0 <= number < 26 else f"n{number}"


def lines_of(graph: Graph) -> list[str]:
    """The graph as it is written for `program`."""
    leaves, trainable, steps, _ = graph
    if len(steps) > 12:
        return [f"{len(leaves) + len(steps)} nodes, the last of which {steps[-1][0]} has made"]
    lines = []
    for i, (leaf, wanted) in enumerate(zip(leaves, trainable, strict=True)):
        lines.append(f"{'' if wanted else 'constant '}{name_of(i)} = {shown(leaf)}")
    for i, (op, inputs, options) in enumerate(steps, len(leaves)):
        given = [*map(name_of, inputs), *(f"{key}={value}" for key, value in options.items())]
        lines.append(f"{name_of(i)} = {op}({', '.join(given)})")
    return lines


def show(call: str) -> Any:
    """A call with the program that made its nodes."""

    def of(*graph: Any) -> str:
        outputs = ", ".join(map(name_of, graph[3]))
        return "\n".join([call.format(outputs), *(f"  {line}" for line in lines_of(graph))])

    return of


# ---- the graphs ------------------------------------------------------------------------------

_DEEP: Graph = (
    [np.array([2.0])],
    [True],
    [["neg", [i], {}] for i in range(DEEP)],
    [DEEP],
)
_LADDER = program(
    "a = [1]", *(f"{b} = add({a}, {a})" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
)
GRAPHS: list[Graph] = [
    program("a = [2]", "b = neg(a)"),
    program("a = [2]", "b = [3]", "c = mul(a, b)"),
    program("a = [3]", "b = mul(a, a)"),
    program("constant a = [2]", "b = [3]", "c = mul(a, b)"),
    program("a = [3]", "b = neg(a)", "c = mul(a, b)"),
    program("a = [3]", "b = neg(a)", "c = mul(b, a)"),
    program("a = [2]", "b = [2]", "c = mul(a, b)"),
    program("a = [2]", "b = [3]", "c = mul(a, b)", "d = neg(c)", "e = mul(c, d)"),
    program("a = [2]", "b = [3]", "c = mul(a, b)", "d = neg(c)", "e = mul(d, c)"),
    program("a = [2]", "b = neg(a)", "c = neg(b)", "d = add(b, c)", "e = mul(d, a)"),
    program("a = [2]", "b = neg(a)", "c = neg(b)", "d = add(c, b)", "e = mul(a, d)"),
    program("a = [2]", "b = [3]", "c = add(a, b)", "d = mul(a, a)", "e = add(c, d)"),
    program("a = [2]", "b = [3]", "c = add(a, b)", "d = mul(a, a)", "e = add(d, c)"),
    program("a = [2]", "b = [3]", "c = neg(b)", "d = mul(a, b)", outputs="d"),
    program("a = [4]", "constant b = [5]", outputs="a"),
    program(
        *("constant a = [2]", "constant b = [3]", "c = [5]", "d = mul(a, b)"),
        *("e = mul(c, d)", "f = add(d, e)"),
    ),
    program("constant a = [2]", "constant b = [3]", "c = mul(a, b)"),
    program("a = [1, 2]", "b = [3]", "c = mul(a, b)", "d = add(c, a)", "e = sum(d)"),
    _LADDER,
    _DEEP,
]
SEVERAL: list[Graph] = [
    program("a = [2]", "b = [3]", "c = neg(a)", "d = neg(b)", outputs="c d"),
    program("a = [2]", "b = neg(a)", "c = neg(b)", outputs="b c"),
    program("a = [2]", "b = neg(a)", "c = neg(b)", outputs="c b"),
    program("a = [2]", "b = [2]", outputs="a b"),
]


def drawn_graphs() -> Any:
    from tinygraph.testing.strategies import graphs

    def data(problem: Any) -> Graph:
        steps = [[step.op, list(step.inputs), dict(step.kwargs)] for step in problem.steps]
        outputs = list(problem.outputs)
        return list(problem.leaves), list(problem.trainable), steps, outputs

    return graphs().map(data)


# ---- step 1: any order is right in which inputs come first ------------------------------------


def wrong_with(answer: Any) -> tuple[str, tuple[Any, ...]]:
    """What is wrong with an order, in words, and what two wrong ones share; empty for a right one.

    answer : the order, the inputs of each node, the outputs.
    """
    numbers, inputs, outputs = answer
    below, waiting = set(outputs), list(outputs)
    while waiting:
        new = [x for x in inputs[waiting.pop()] if x not in below]
        below.update(new)
        waiting.extend(new)
    missing = sorted(below - set(numbers))
    strange = sorted({x for x in numbers if x not in below})
    twice = sorted({x for x in numbers if numbers.count(x) > 1}) if len(numbers) < 999 else []
    place = {x: i for i, x in reversed(list(enumerate(numbers)))}
    early = [
        (node, x)
        for node in numbers
        if node in below
        for x in inputs[node]
        if place.get(x, -1) > place[node]
    ]
    words = ""
    if missing:
        words = f"{name_of(missing[0])} is missing"
    elif strange:
        words = f"{name_of(strange[0])} is below no output"
    elif early:
        words = "{} stands before its input {}".format(*map(name_of, early[0]))
    elif twice:
        words = f"{name_of(twice[0])} stands there twice"
    return words, (missing, strange, twice, bool(early))


def orders_differ(got: Any, expected: Any) -> str:
    """Whether one of two orders is right and the other is not, or they are wrong in other ways."""
    found = got[0] if isinstance(got, list) and len(got) == 3 else got
    if not isinstance(found, list):
        return difference(found, [])
    words, kind = wrong_with([found, *expected[1:]])
    return "" if kind == wrong_with(expected)[1] else f"order: {words or 'it is right'}"


def order_of(value: Any) -> str:
    found = value[0] if isinstance(value, list) and len(value) == 3 else value
    return nodes_of(found)


def nodes_of(found: Any) -> str:
    """Numbers as names, where they are few."""
    if not isinstance(found, list):
        return shown(found)
    if len(found) > 24:
        return f"{len(found)} nodes"
    return f"[{', '.join(map(name_of, found))}]"


def sets_differ(got: Any, expected: list[int]) -> str:
    """A node that is missing, or one too many."""
    if not isinstance(got, list):
        return difference(got, expected)
    for node in expected:
        if node not in got:
            return f"nodes: {name_of(node)} is missing"
    many = next((node for node in got if got.count(node) > expected.count(node)), None)
    return "" if many is None else f"nodes: {name_of(many)} is one too many"


# ---- step 2 -----------------------------------------------------------------------------------


def gradients_differ(got: Any, expected: Any) -> str:
    """Leaves, gradients, or how often `local` was called."""
    if not isinstance(got, list) or len(got) != 3:
        kind = "nothing (no return?)" if got is None else type(got).__name__
        return f"type: expected a dict from leaves to arrays, you return {kind}"
    if words := sets_differ(got[0], expected[0]):
        return words
    return difference(got[1], expected[1]) or (
        f"calls: local was called {got[2]} times" if got[2] != expected[2] else ""
    )


def gradients_of(value: Any) -> str:
    if not isinstance(value, list) or len(value) != 3:
        return shown(value)
    pairs = zip(value[0], value[1], strict=True)
    found = ", ".join(f"{name_of(i)}: {shown(gradient)}" for i, gradient in pairs)
    return f"{{{found}}}, calls of local: {value[2]}"


# ---- steps 3 and 4 ----------------------------------------------------------------------------


def lists_differ(got: Any, expected: list[list[int]]) -> str:
    """The first list that has a node too few or too many."""
    if not isinstance(got, list) or len(got) != len(expected):
        return difference(got, expected)
    for i, (some, due) in enumerate(zip(got, expected, strict=True)):
        if words := sets_differ(some, due):
            return f"{words} in the list of {name_of(i)}" if isinstance(some, list) else words
    return ""


def lists_of(value: Any) -> str:
    if not isinstance(value, list):
        return shown(value)
    if len(value) > 24:
        return f"{len(value)} lists"
    return f"[{', '.join(map(nodes_of, value))}]"


@frozen
class LongStep(FunctionStep):
    """A step whose function walks through a long chain too, in a call of its own.

    Attributes
    ----------
    long : str
        The function of harness.py that does so.
    length : int
        How many nodes; even.
    end : bool or float
        What it gives.
    """

    long: str = ""
    length: int = 0
    end: bool | float = True

    def run(self, exercise: Exercise, learner: Learner) -> Failure | None:
        failure = super().run(exercise, learner)
        if failure is not None:
            return failure
        names, arguments = ("tg_chain", self.long), [self.length]
        calls = ({"do": "call", "name": name, "arguments": arguments} for name in names)
        answer, case = answer_of(learner.ask(*calls)[-1]), f"a chain of {self.length:,} nodes"
        if isinstance(answer, (Raised, Odd)):
            raised = answer if isinstance(answer, Raised) else Raised("")
            return Failure("error", said(answer)[7:], case, line=raised.line, source=raised.text)
        if answer[0] != self.end:
            return Failure("values", "", case, str(self.end), str(answer[0]))
        return None


STEPS = [
    LongStep(
        1,
        "tg_order",
        [*GRAPHS[:4], *SEVERAL, *GRAPHS[4:]],
        drawn_graphs,
        show("order([{}])"),
        differs=orders_differ,
        words=order_of,
        long="tg_long_order",
        length=100_000,
    ),
    LongStep(
        2,
        "tg_backward",
        GRAPHS,
        drawn_graphs,
        show("backward({})"),
        differs=gradients_differ,
        words=gradients_of,
        long="tg_long_backward",
        length=30_000,
        end=1.0,
    ),
    FunctionStep(
        3,
        "tg_needed",
        GRAPHS[:-1],
        drawn_graphs,
        show("needed({})"),
        differs=sets_differ,
        words=nodes_of,
    ),
    FunctionStep(
        4,
        "tg_release",
        GRAPHS[:-1],
        drawn_graphs,
        show("release(nodes), nodes in the order of their lines"),
        differs=lists_differ,
        words=lists_of,
    ),
]
