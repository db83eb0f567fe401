"""`tinygraph gradcheck FILE.py:NAME`: a learner's op, stage by stage, on one screen.

NAME is an Op subclass, an op, or a function of Tensors.  The file may say where to check:

    PROBLEMS = [((2, 3), (4, 3))]      a shape or an array for each input, one tuple for a problem
    def reference(*arrays): ...        what forward must give, in numpy

Both may also be attributes of NAME.  Without PROBLEMS some shapes are tried, the same for all
inputs.  A problem for a class whose constructor takes arguments is a pair (arguments, inputs), as
in ({"stride": 2}, ((1, 1, 5, 5),)).

Stages: loads, forward, shapes, dtype, properties, gradient.  The first that fails is shown.
"""

from __future__ import annotations

import inspect
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, as_path, nearest
from tinygraph.engine import Array, Op, Tensor, philox
from tinygraph.recipes.from_file import last_line, run_file
from tinygraph.testing.gradcheck import check_problems

STAGES = ("loads", "forward", "shapes", "dtype", "properties", "gradient")
SHAPES = ((1,), (3,), (4,), (2, 3), (3, 4), (4, 4), (2, 3, 5, 4))


@dataclass
class Case:
    """One problem: the function, and its inputs as float64 arrays."""

    function: Callable[..., Any]
    arrays: list[Array]


class StageFailed(Exception):
    """A stage that failed, in words for the learner."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(message)
        self.stage = stage


def gradcheck_file(args: Namespace) -> dict[str, Any]:
    """Run the stages; print those that passed and the first that failed."""
    path, _, name = args.target.rpartition(":")
    path = path and str(as_path("gradcheck", "FILE.py:NAME", path))
    if not name or Path(path).suffix != ".py":
        expected = "a Python file, a colon and a name in it"
        raise ArgumentError("gradcheck", "FILE.py:NAME", expected, repr(args.target))
    if not Path(path).is_file():
        raise ArgumentError("gradcheck", path, "a Python file", "no such file", "check the path")
    answer: dict[str, Any] = {"ok": True, "target": args.target, "stage": "", "diagnosis": ""}
    try:
        with _stage("loads", path):
            module = run_file(Path(path))
        made = _named(module, name)
        cases = _cases(module, made, path)
        _forward(cases, getattr(made, "reference", getattr(module, "reference", None)), path)
        answer["report"] = report = _gradients(cases, path, args.seed).to_dict()
        if report["verdict"] != "pass":
            raise StageFailed(report["stage"] or "gradient", report["diagnosis"])
    except StageFailed as failure:
        answer.update(ok=False, stage=failure.stage, diagnosis=str(failure))
    _show(answer, name)
    return answer


@contextmanager
def _stage(name: str, path: str, more: str = "") -> Iterator[None]:
    """Where the learner's file fails in here, this stage has."""
    try:
        yield
    except StageFailed:
        raise
    except Exception as error:
        raise StageFailed(name, _learners_error(error, path) + more) from None


def _named(module: Any, name: str) -> Any:
    if not hasattr(module, name):
        known = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise ArgumentError(
            "gradcheck", "NAME", f"one of {known}", repr(name), nearest(name, known)
        )
    return getattr(module, name)


def _cases(module: Any, made: Any, path: str) -> list[Case]:
    """The problems of the file; else all shapes that the op takes."""
    given = getattr(made, "PROBLEMS", getattr(module, "PROBLEMS", None))
    rng = np.random.Generator(philox(0, 3))
    if given is not None:
        return [_case(made, problem, rng, path) for problem in given]
    count, cases = _inputs_of(made), []
    refused = ""
    for shape in SHAPES:
        case = _case(made, (shape,) * count, rng, path)
        try:
            case.function(*map(Tensor, case.arrays))
        except Exception as error:  # a shape that does not fit; a real mistake fails for all
            refused = _learners_error(error, path)
            continue
        cases.append(case)
    if not cases:
        way_out = "or say which shapes fit, as in PROBLEMS = [((2, 3),)]"
        raise StageFailed("forward", f"{refused}\n  {way_out}")
    return cases


def _case(made: Any, problem: Any, rng: np.random.Generator, path: str) -> Case:
    arguments: dict[str, Any] = {}
    if len(problem) == 2 and isinstance(problem[0], dict):
        arguments, problem = problem
    function = made
    if isinstance(made, type):
        with _stage("loads", path):
            function = made(**arguments)
    arrays = []
    for entry in problem:
        is_shape = isinstance(entry, tuple) and all(isinstance(n, int) for n in entry)
        array = rng.standard_normal(entry) if is_shape else np.asarray(entry)
        arrays.append(array.astype(np.float64) if array.dtype.kind == "f" else array)
    return Case(function, arrays)


def _inputs_of(made: Any) -> int:
    """How many arrays forward takes, or how many Tensors the function does."""
    is_op = isinstance(made, Op) or (isinstance(made, type) and issubclass(made, Op))
    function = made.forward if is_op else made
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.kind in kinds and p.default is p.empty and p.name not in ("self", "mem")
    ]
    return max(len(names), 1)


def _forward(cases: list[Case], reference: Any, path: str) -> None:
    """Forward runs on every problem, and gives what the reference gives."""
    for case in sorted(cases, key=lambda c: sum(a.size for a in c.arrays)):
        shapes = ", ".join(str(a.shape) for a in case.arrays)
        with _stage("forward", path, f"\n  inputs of shape {shapes}"):
            y = case.function(*map(Tensor, case.arrays))
        if reference is None or not isinstance(y, Tensor):
            continue
        expected = np.asarray(reference(*[a.copy() for a in case.arrays]))
        if y.shape != expected.shape:
            raise StageFailed(
                "forward",
                f"inputs of shape {shapes}: the output has shape {y.shape}"
                f", the reference has {expected.shape}",
            )
        wrong = ~np.isclose(y.numpy(), expected, rtol=1e-9, atol=1e-9, equal_nan=True)
        if wrong.any():
            index = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise StageFailed(
                "forward",
                f"inputs of shape {shapes}: the output at {list(index)} is "
                f"{y.numpy()[index]:.6g}, the reference gives {expected[index]:.6g}",
            )


def _gradients(cases: list[Case], path: str, seed: int) -> Any:
    """The report over all problems, in float64, then in float32."""
    report = None
    for dtype in (np.float64, np.float32):
        problems = [(c.function, [_in_precision(a, dtype) for a in c.arrays], None) for c in cases]
        with _stage("dtype" if report is not None else "gradient", path):
            found = check_problems(problems, seed)
        if found.verdict != "pass":
            return found
        report = report or found
    return report


def _in_precision(array: Array, dtype: Any) -> Tensor:
    return Tensor(array.astype(dtype) if array.dtype.kind == "f" else array)


def _learners_error(error: Exception, path: str) -> str:
    """An error with the line of the learner's file at which it came up; no traceback of ours."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):
        return f"{path}, line {error.lineno}: {(error.text or '').strip()}\n  {text}"
    line = last_line(error, Path(path))
    return f"{path}, line {line.lineno}: {line.line}\n  {text}" if line else text


def _show(answer: dict[str, Any], name: str) -> None:
    print(f"gradcheck {name}")
    failed = answer["stage"]
    for stage in STAGES:
        if stage == failed:
            print(f"  {stage:<11} FAILED")
            break
        print(f"  {stage:<11} ok")
    report = answer.get("report")
    if report and answer["ok"]:
        print(f"{report['checked']} elements compared, {report['kinks']} left out at kinks")
        return
    print(f"\n{answer['diagnosis']}")
    if report and report["worst"]:
        worst = report["worst"]
        shapes = ", ".join(str(tuple(shape)) for shape in report["shapes"])
        print(f"\nsmallest example: inputs of shape {shapes}")
        print(f"  input {worst['input']} at {worst['element']}")
        print(f"    your backward           {float(worst['analytic']): .8g}")
        print(f"    slope of your forward   {float(worst['numeric']): .8g}")
    elif report:
        print(f"\ninputs of shape {', '.join(str(tuple(s)) for s in report['shapes'])}")
