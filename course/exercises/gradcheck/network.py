"""Digits, read by a network whose backwards the learner's check has chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ArgumentError
from tinygraph_course.checking.network import DigitNetwork
from tinygraph_course.checking.own import Own
from tinygraph_course.exercises.gradcheck.ops import LAYERS

PROBLEMS = 30
HIDDEN, LAST = (11, 2, 19), (1, 9, 18)  # layers of harness.py with the same forward


class Checked(tg.Op):
    """A layer of harness.py: the first of some whose backward agrees on all problems.

    Attributes
    ----------
    said : list of str
        What the check said of each that was tried.
    """

    def __init__(self, own: Own, candidates: Sequence[int], problems: Sequence[Any]) -> None:
        self.own, self.said = own, [f"  {LAYERS[candidates[0]].formula}"]
        for count, self.number in enumerate(candidates, 1):
            verdicts = (own.call("tg_agrees", self.number, *problem) for problem in problems)
            refused = next((n for n, agrees in enumerate(verdicts, 1) if not agrees), 0)
            words = f"problem {refused} shows that it is wrong" if refused else "agrees: taken"
            self.said.append(f"    backward {count}   {words}")
            if not refused:
                return
        raise ArgumentError("course run", "agrees", "one backward that is right", "none")

    def infer(self, x: Any, w: Any, b: Any) -> tg.Spec:
        return tg.Spec((x.shape[0], w.shape[0]), x.dtype)

    def forward(self, mem: Any, *arrays: Any) -> Any:
        return self.own.call("tg_forward", self.number, *arrays), arrays

    def backward(self, mem: Any, grad: Any, saved: Any, needs: Any) -> Any:
        gradients = self.own.call("tg_backward", self.number, grad, *saved)
        return tuple(g if needed else None for g, needed in zip(gradients, needs, strict=True))


class Network(DigitNetwork):
    """Two layers. Of some backwards for each, your check finds the one that is right."""

    def __init__(self, own: Own) -> None:
        super().__init__(own)
        problems = own.call("tg_problems", PROBLEMS)
        self.of_hidden, self.of_last = (Checked(own, some, problems) for some in (HIDDEN, LAST))
        self.hidden, self.linear = nn.Linear(64, 32), nn.Linear(32, 10)

    def before(self) -> Iterator[str]:
        yield f"On {PROBLEMS} problems that your function draws:"
        yield from (*self.of_hidden.said, *self.of_last.said)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        h = self.of_hidden(tg.flatten(x, 1), *self.hidden.parameters())
        return self.of_last(h, *self.linear.parameters())
