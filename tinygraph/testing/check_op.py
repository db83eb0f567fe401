"""check_op: does an op keep its contract?  The demands on tinygraph's own ops, for yours.

The stages run in an order in which the first failure is the one to look at: a wrong value before
a wrong gradient, a wrong gradient before what a plan or a kernel would make of it.  What each stage
demands stands in contract.py; tinygraph's tests run the same methods over its own ops.
"""

from __future__ import annotations

import doctest
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, nearest
from tinygraph.engine import Op, Tensor, topological_order
from tinygraph.testing.contract import Contract
from tinygraph.testing.drawing import Example, try_all, try_each
from tinygraph.testing.op_report import CheckOpError, OpReport, Stage
from tinygraph.testing.problem import Bad, Convention

STAGES = ("value", "gradient", "batch", "conventions", "bad input", "kernel", "docstring")
KERNEL_SHARE = 5  # a launch on the emulator costs more than a call of numpy: fewer examples


def check_op(
    op: Any,
    reference: Callable[..., Any] | None = None,
    problems: Any = None,
    bad_input: Iterable[Bad] = (),
    conventions: Iterable[Convention] = (),
    *,
    constants: Sequence[int] = (),
    differentiable: bool = True,
    tolerance: float = 1.0,
    stages: Iterable[str] = STAGES,
    examples: int = 50,
    seed: int = 0,
    raise_on_failure: bool = True,
) -> OpReport:
    """Hold an op to the contract that tinygraph's own ops keep.

    Parameters
    ----------
    op : Op, subclass of Op, or function
        What is applied to tensors.  A class is made with the keywords of each problem as its
        hyper-parameters.
    reference : callable, optional
        The same function of float64 arrays, by other means: naive loops, scipy.  Without it values
        are compared between dtypes and layouts alone.
    problems : strategy or sequence of Problem
        Calls of the op; an array, or a tuple of arrays, is a call without keywords.  By default one
        float array of any shape: `tg.testing.strategies.elementwise_problems()`.
    bad_input : iterable of Bad
        Calls that the op has to refuse.
    conventions : iterable of Convention
        What is agreed where there is no derivative: compared, not differenced.
    constants : sequence of int
        Positions of float arguments that have no gradient.
    differentiable : bool
        False for an op without a backward.
    tolerance : float
        Widens the bounds of an op that sums more than usual.
    stages : iterable of str
        Which are tried, of "value", "gradient", "batch", "conventions", "bad input", "kernel" and
        "docstring"; by default all.  They keep their order.
    examples, seed : int
        How many problems are drawn for each stage, and from which seed.
    raise_on_failure : bool
        Raise CheckOpError where the report is not `ok`.

    Returns
    -------
    OpReport
        `.ok`; `.stages`, each with a verdict; `.failure`, the first stage that failed, with its
        smallest example; `.text()`, `.to_dict()`.  Nothing is tried after a failure.

    Raises
    ------
    CheckOpError
        A demand is not met, or all examples lie on kinks; `.report` holds the OpReport.
    ArgumentError
        `op` cannot be called, `problems` is neither a strategy nor a sequence, or `stages` names
        one that does not exist, or none that there is for this op.
    ImportError
        Problems are to be drawn, and hypothesis is not installed.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> class Square(tg.Op):
    ...     def forward(self, mem, x):
    ...         return x * x, x
    ...     def backward(self, mem, grad, x, needs):
    ...         return (grad * x,)  # the factor 2 is missing
    >>> report = tg.testing.check_op(
    ...     Square(), reference=np.square, problems=[[3.0, 1.0]], raise_on_failure=False)
    >>> report.ok, report.failure.name
    (False, 'gradient equals finite differences')
    >>> tg.testing.check_op(Square(), problems=[[3.0, 1.0]], stages=["value"]).ok
    True
    """
    if not callable(op):
        raise ArgumentError(
            "check_op", "op", "an Op, a subclass of Op, or a function of tensors", type(op).__name__
        )
    wanted = _known(stages)
    contract = Contract()
    contract.function = _of_class(op) if isinstance(op, type) and issubclass(op, Op) else op
    contract.reference = reference or _itself(contract.function)
    contract.constants, contract.tolerance = tuple(constants), tolerance
    contract.differentiable = differentiable
    if problems is None:
        from tinygraph.testing.strategies import elementwise_problems  # needs hypothesis

        problems = elementwise_problems()
    check = _Check(contract, op, reference is not None, problems, examples, seed)
    tried: list[Stage] = []
    for stage in check.stages(wanted, list(bad_input), list(conventions)):
        tried.append(stage)
        if stage.verdict == "fail":
            break
    if not tried:  # a check of nothing would be ok
        expected, got = "one that there is for this op", ", ".join(wanted)
        raise ArgumentError("check_op", "stages", expected, got)
    report = OpReport(_name(op), tuple(tried))
    if raise_on_failure and not report.ok:
        raise CheckOpError(report.text(), report)
    return report


def _known(stages: Iterable[str]) -> list[str]:
    """Names of stages, all of which exist."""
    given = [stages] if isinstance(stages, str) else list(stages)
    for name in given:
        if name not in STAGES:
            hint = nearest(str(name), STAGES)
            raise ArgumentError("check_op", "stages", f"some of {STAGES}", repr(name), hint)
    if not given:
        raise ArgumentError("check_op", "stages", f"some of {STAGES}", "none")
    return given


def _itself(function: Callable[..., Tensor]) -> Callable[..., Any]:
    """A function of tensors as one of arrays."""

    def reference(*arrays: Any, **kwargs: Any) -> Any:
        args = [None if a is None else Tensor(a) for a in arrays]
        return function(*args, **kwargs).numpy()

    return reference


def _of_class(op: type[Op]) -> Callable[..., Tensor]:
    """A subclass of Op as a function of tensors and hyper-parameters."""

    def function(*tensors: Any, **hyper_parameters: Any) -> Tensor:
        return op(**hyper_parameters)(*tensors)

    return function


def _name(op: Any) -> str:
    named = op if isinstance(op, type) or not isinstance(op, Op) else type(op)
    return getattr(named, "__name__", repr(op))


@dataclass
class _Check:
    """The stages for one op, each made when it is asked for."""

    contract: Contract
    op: Any
    has_reference: bool
    problems: Any
    examples: int
    seed: int

    def stages(
        self, wanted: list[str], bad_input: list[Bad], conventions: list[Convention]
    ) -> Iterator[Stage]:
        """The stages that are wanted, in order; a caller stops at the first failure."""
        c = self.contract
        if "value" in wanted:
            yield from self.value_stages()
        if "gradient" in wanted and c.differentiable:
            yield from self.gradient_stages()
        if "batch" in wanted:
            yield from self.batch_stages()
        if "conventions" in wanted:
            yield self.each("conventions", conventions, c.try_convention)
        if "bad input" in wanted:
            yield self.each("bad input is refused", bad_input, c.try_bad_input)
        if "kernel" in wanted:
            yield from self.kernel_stages()
        if "docstring" in wanted:
            yield self.docstring()

    def value_stages(self) -> Iterator[Stage]:
        c = self.contract
        against = "the reference" if self.has_reference else "itself in float64, contiguous"
        yield self.stage(
            f"value equals {against}, in any dtype and layout",
            lambda case: c.try_value(case.problem, case.dtype, case.layout),
            variants=True,
        )
        if not self.has_reference:
            yield Stage("value equals a reference", "skipped", message="no reference was given")

    def gradient_stages(self) -> Iterator[Stage]:
        c = self.contract
        yield self.finite_differences()
        yield self.stage(
            "gradient in any dtype and layout",
            lambda case: c.try_gradient_in(case.problem, case.dtype, case.layout),
            variants=True,
        )
        yield self.stage(
            "each gradient alone", lambda case: c.try_each_gradient_alone(case.problem)
        )

    def batch_stages(self) -> Iterator[Stage]:
        """What `batch` claims, where it claims anything of any problem."""
        c = self.contract
        claimed: Counter[str] = Counter()

        def attempt(case: Example) -> None:
            claimed[c.claim(case.problem) or "nothing"] += 1
            c.try_batch_claim(case.problem, lambda n: min(case.cut, n))

        stage = self.stage("what batch claims", attempt)
        if stage.verdict == "pass" and not claimed.keys() - {"nothing"}:
            yield Stage(stage.name, "skipped", message="it claims nothing: no plan cuts the batch")
            return
        yield stage
        yield self.stage("an empty batch", lambda case: c.try_empty_batch(case.problem))

    def finite_differences(self) -> Stage:
        """gradcheck over the problems; examples on kinks say nothing."""
        verdicts: Counter[str] = Counter()

        def attempt(case: Example) -> None:
            verdicts[self.contract.try_gradient(case.problem)] += 1

        stage = self.stage("gradient equals finite differences", attempt)
        if stage.verdict == "pass" and not verdicts["pass"]:
            message = "every example lies on a kink; draw other values, state conventions"
            return Stage(stage.name, "inconclusive", stage.examples, message)
        return stage

    def kernel_stages(self) -> Iterator[Stage]:
        """On the emulator, where every op below the value has a kernel."""
        name = "kernel equals the reference, the same bits twice"
        reason = self.no_kernel()
        if reason:
            yield Stage(name, "skipped", message=reason)
            return
        c, fewer = self.contract, max(5, self.examples // KERNEL_SHARE)

        def attempt(case: Example) -> None:
            nodes = c.leaves(case.problem, case.dtype, case.layout, device="emulator")
            c.try_kernel(case.problem, nodes, case.dtype, case.layout)
            c.try_same_bits(case.problem, "emulator")

        def checked(case: Example) -> None:
            nodes = c.leaves(case.problem, case.dtype, device="emulator")
            c.try_under_the_checker(case.problem, nodes)

        yield self.stage(name, attempt, variants=True, examples=fewer)
        yield self.stage(
            "kernel of an empty batch",
            lambda case: c.try_empty_batch(case.problem, "emulator"),
            examples=fewer,
        )
        yield self.stage("kernel under the checker", checked, variants=True, examples=fewer)

    def no_kernel(self) -> str:
        """Why no kernel can be run; empty if one can."""
        found: list[Op] = []

        def look(case: Example) -> None:
            y = self.contract.apply(case.problem, self.contract.leaves(case.problem))
            found.extend(node.op for node in topological_order([y]) if node.op is not None)

        self.stage("the ops below the value", look, examples=5)
        without = {op.name for op in found if type(op).forward_kernel is Op.forward_kernel}
        if without or not found:
            return f"{', '.join(sorted(without)) or 'the function'} has no forward_kernel"
        return ""

    def stage(
        self,
        name: str,
        attempt: Callable[[Example], None],
        variants: bool = False,
        examples: int | None = None,
    ) -> Stage:
        """Try one demand on all problems."""
        with np.errstate(all="ignore"):  # inf and nan are results, not accidents
            number = examples or self.examples
            return try_all(name, self.problems, attempt, number, self.seed, variants)

    def each(self, name: str, given: list[Any], attempt: Callable[[Any], None]) -> Stage:
        """Try one demand on each thing that was given by hand."""
        if not given:
            return Stage(name, "skipped", message="none was given")
        return try_each(name, given, attempt)

    def docstring(self) -> Stage:
        """The examples in the op's docstring give what they print."""
        name = "examples in the docstring"
        owner = type(self.op) if isinstance(self.op, Op) else self.op
        text = vars(owner).get("__doc__") if isinstance(owner, type) else owner.__doc__
        if ">>>" not in (text or ""):
            return Stage(name, "skipped", message="it has none")
        module = inspect.getmodule(owner)
        names = {**(vars(module) if module else {}), getattr(owner, "__name__", "op"): owner}
        test = doctest.DocTestParser().get_doctest(inspect.cleandoc(text or ""), names, name, "", 0)
        written: list[str] = []
        results = doctest.DocTestRunner(verbose=False).run(test, out=written.append)
        if results.failed:
            return Stage(name, "fail", results.attempted, "".join(written))
        return Stage(name, "pass", results.attempted)
