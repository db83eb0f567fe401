"""Work for the kernels of an op, taken from what the op's own test file declares.

tests/ops/test_<stem>.py has subclasses of `OpContract`: their `problems`, drawn the same way each
time, and their `large_problems` launch the kernels of cuda/<stem>.cu as users do.  So a new op
needs no launches and no work written down here; those that stand here say more than a contract can:
sizes that fill tiles, ties, numbers that take a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings

from tests.cuda.launch import F4, Launch
from tests.cuda.recorded import op_launches
from tests.op_contract import OpContract
from tinygraph.testing.problem import Problem, cast

DRAWN, KEPT = 40, 6
ENDS = (np.min, np.median, np.max)  # so that each branch on a number is taken by all elements
MOST_ELEMENTS = 20_000  # a launch under the checker would take a minute


@cache
def contracts(file: str) -> tuple[OpContract, ...]:
    """The contracts of an op, by its name or that of its .cu file, if there is such an op."""
    name = f"tests.ops.test_{Path(file).stem}"
    if find_spec(name) is None:
        return ()
    found = [v for v in vars(import_module(name)).values() if isinstance(v, type)]
    own = [v for v in found if issubclass(v, OpContract) and v.__module__ == name]
    return tuple(contract() for contract in own)


@cache
def problems(contract: OpContract) -> tuple[Problem, ...]:
    """A few drawn problems, from small to large, and the large ones; none without elements."""
    drawn: list[Problem] = []

    @settings(
        max_examples=DRAWN,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(contract.problems)
    def draw(problem: Problem) -> None:
        if all(a.size for a in problem.arrays):
            drawn.append(problem)

    draw()
    drawn.sort(key=_elements)
    picked = sorted({round(i) for i in np.linspace(0, len(drawn) - 1, KEPT)}) if drawn else []
    large = [p for p in contract.large_problems if _elements(p) <= MOST_ELEMENTS]
    return (*[drawn[i] for i in picked], *large)


def _elements(problem: Problem) -> int:
    return sum(a.size for a in problem.arrays)


def contract_launches(file: str) -> Iterator[Launch]:
    """The launches of an op, forward and backward, on the problems of its contracts."""
    for contract in contracts(file):
        for number, problem in enumerate(problems(contract)):
            nodes = contract.leaves(problem)
            fixed = [i for i, x in enumerate(nodes) if not x.requires_grad]
            yield from op_launches(
                lambda *nodes, c=contract, p=problem: c.apply(p, nodes),
                *[cast(a, F4) for a in problem.arrays],
                constants=fixed,
                label=f"{type(contract).__name__}, problem {number}",
            )


def contract_work(file: str) -> Iterator[list[Callable[[], None]]]:
    """For each problem, calls that launch alike and differ in their numbers.

    The numbers are those of the problem, and at every place the least, middle, or greatest that any
    problem has for that argument: so each branch on a sign or a threshold is taken by all elements.
    """
    for contract in contracts(file):
        all_problems = problems(contract)
        for problem in all_problems:
            alike = [problem, *(_filled(problem, all_problems, end) for end in ENDS)]
            yield [lambda c=contract, p=p: _forward_and_backward(c, p) for p in alike]


def _filled(problem: Problem, others: tuple[Problem, ...], end: Callable[..., Any]) -> Problem:
    """Each float array with one number throughout: the end of those of all problems there."""
    args = list(problem.args)
    for i, a in enumerate(args):
        if a is not None and a.dtype.kind == "f":
            there = [p.args[i] for p in others if i < len(p.args) and p.args[i] is not None]
            args[i] = np.full_like(a, end([end(b) for b in there]))
    return problem._replace(args=tuple(args))


def _forward_and_backward(contract: OpContract, problem: Problem) -> None:
    y = contract.apply(problem, contract.leaves(problem, F4, device="emulator"))
    if y.requires_grad:
        y.backward(contract.upstream(y).astype(y.dtype))
