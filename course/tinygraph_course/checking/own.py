"""The learner's functions, ops and kernels as things to compute with: they run in his process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tinygraph as tg
from tinygraph.base.errors import GraphError
from tinygraph.cuda import InOut, Out
from tinygraph_course.checking.learner import Learner
from tinygraph_course.checking.steps import Odd, Raised, answer_of, module, said
from tinygraph_course.content.exercise import Exercise


class Stumbled(GraphError):
    """An error in the learner's code; `line` and `source` say where, if it was in his file."""

    def __init__(self, name: str, answer: Raised | Odd) -> None:
        super().__init__(f"{name}: {said(answer).removeprefix('error: ')}")
        raised = answer if isinstance(answer, Raised) else Raised("")
        self.line, self.source = raised.line, raised.text


class Own:
    """What the learner has written.

    Parameters
    ----------
    exercise : Exercise
    learner : Learner
        The process with his file.
    """

    def __init__(self, exercise: Exercise, learner: Learner) -> None:
        self._learner = learner
        text = "" if exercise.is_kernel else exercise.solution + exercise.harness
        self._solution = module(text)

    def call(self, function: str, *arguments: Any) -> Any:
        """The value of one of his functions."""
        request = {"do": "call", "name": function, "arguments": list(arguments)}
        return asked(self._learner, function, request)[0]

    def op(self, name: str, *settings: Any) -> tg.Op:
        """One of his ops; what it gives for which shapes is inferred by the solution's."""
        return learners_op(self._learner, getattr(self._solution, name), settings)

    def launch(
        self,
        kernel: str,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *arguments: Any,
        **defines: int,
    ) -> None:
        """Run one of his kernels, without the checker: what is Out or InOut is written.

        Arguments are those of a launch of `tinygraph.cuda.Kernel`; `defines` are macros.
        """
        plain = [x.array if isinstance(x, (Out, InOut)) else x for x in arguments]
        written = [i for i, x in enumerate(arguments) if isinstance(x, (Out, InOut))]
        extents = [[x] if isinstance(x, int) else list(x) for x in (grid, block)]
        about = {"name": kernel, "defines": defines, "grid": extents[0], "block": extents[1]}
        request = {"do": "run", **about, "arguments": plain, "written": written}
        made = asked(self._learner, kernel, request)
        for i, array in zip(written, made, strict=True):
            np.copyto(plain[i], array)


def learners_op(learner: Learner, right: Any, settings: Sequence[Any]) -> tg.Op:
    """The solution's op, of the class `right`, with the learner's forward and backward."""
    op: str = right.__name__

    def forward(self: Any, mem: Any, *arrays: Any) -> Any:
        given = {"name": op, "settings": list(settings), "arrays": list(arrays)}
        y, _, number, _ = asked(learner, op, {"do": "op", **given, "needs": list(mem.needs)})
        return y, number

    def backward(self: Any, mem: Any, gy: Any, saved: Any, needs: Any) -> Any:
        request = {"number": saved, "grad": np.array(gy), "needs": list(needs)}
        return tuple(asked(learner, op, {"do": "backward", **request}))

    made = type(op, (right,), {"forward": forward, "backward": backward})(*settings)
    assert isinstance(made, tg.Op)
    return made


def asked(learner: Learner, name: str, request: dict[str, Any]) -> Any:
    """The answer of the learner's process about what has that name.

    Raises
    ------
    Stumbled
        It is an error.
    Died
        There is none.
    """
    answer = answer_of(learner.ask(request)[0])
    if isinstance(answer, (Raised, Odd)):
        raise Stumbled(name, answer)
    return answer
