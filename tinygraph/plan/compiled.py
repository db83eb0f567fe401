"""compile: a function of tensors that runs through plans.

The first call with arguments of some shapes traces the function (tracing.py), turns what it did
into code (code.py), rewrites that (rewrites/) and makes a plan (runner.py).  Later calls with such
arguments run the plan.  A function that no plan can repeat runs as it stands, and says so once.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any

from tinygraph import anomaly
from tinygraph.device import CPU, Device
from tinygraph.errors import ArgumentError, PlanWarning, explain
from tinygraph.plan.code import code_of
from tinygraph.plan.fast import NoNumba, with_compiled_bodies
from tinygraph.plan.result import PlannedCall, as_node
from tinygraph.plan.rewrites import rewrite
from tinygraph.plan.runner import Plan, added
from tinygraph.plan.structure import fill, put_together, slots_of, take_apart
from tinygraph.plan.table import describe
from tinygraph.plan.tracing import Backward, Deed, Elsewhere, Refused, Trace
from tinygraph.shapes import Array, Spec
from tinygraph.tensor import Tensor, grad_mode

MOST_PLANS = 16  # of one function; those used least are dropped first


def compile(
    fn: Callable[..., Any], *, threads: int | None = None, tile: int | None = None,
    fast: bool | None = None,
) -> Compiled:  # fmt: skip
    """A function that does what `fn` does, through plans: buffers laid out once, ops fused, a
    large batch cut into tiles, several threads.

    Parameters
    ----------
    fn : function of arrays and Tensors
        With `backward()` and `optimizer.step()` inside, or without: then the result can be
        differentiated as that of `fn` can.  It returns Tensors, in tuples, lists or dicts, or None.
    threads : int, optional
        By default all cores where the work is worth it, else one.
    tile : int, optional
        Samples of a tile; by default chosen from shapes.
    fast : bool, optional
        Whether numba compiles the bodies of some ops, such as convolution + ReLU + max-pooling:
        True must, False must not.  By default where it is installed and the values of a batch take
        some MB.  The first process compiles for a few seconds; the result is kept on disk.

    Returns
    -------
    Compiled
        Call it like `fn`; `explain()` tells what it does.

    Warns
    -----
    PlanWarning
        Once, where `fn` does what no plan can repeat: it reads a value in the middle, moves a
        tensor to another device, calls backward twice.  It then runs as it stands.

    Notes
    -----
    `fn` runs once for each combination of shapes, dtypes, grad mode and modes of modules, without
    computing anything.  What it does besides tensor operations, optimiser steps, `zero_grad`,
    schedules and clipping (counting, printing, appending to a list) is not repeated, and other
    numbers that it makes, with numpy for example, stay as they were.

    A plan stays on the device of the tensors that `fn` computes with; arrays among the arguments
    are put there.  On the emulator and on a GPU it runs through the kernels, the batch as a whole:
    `threads` and `tile` are for the cpu.

    Results equal those of `fn`
    to rounding; with the same number of threads they are the same bits at every run.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> w = tg.Parameter([[1.0, -1.0]])
    >>> optimizer = tg.optim.SGD([w], lr=0.5)
    >>> @tg.compile
    ... def step(x, y):
    ...     loss = tg.mse_loss(tg.linear(x, w), y)
    ...     optimizer.zero_grad()
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss
    >>> x, y = np.ones((3, 2), np.float32), np.ones((3, 1), np.float32)
    >>> [round(step(x, y).item(), 4) for _ in range(3)]
    [1.0, 1.0, 1.0]
    """
    for name, value in (("threads", threads), ("tile", tile)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise ArgumentError(explain("compile", name, "an int of at least 1", repr(value)))
    if not callable(fn):
        raise ArgumentError(explain("compile", "fn", "a function", repr(fn)))
    if fast not in (None, True, False):
        raise ArgumentError(explain("compile", "fast", "True, False or None", repr(fast)))
    return Compiled(fn, threads, tile, fast)


@dataclass(eq=False)
class Recorded:
    """What one trace has found.

    Attributes
    ----------
    make : function
        Makes a plan: one more where all others wait for their backward.
    result : nested tuples, lists and dicts
        What to return, with a `Slot` in the place of each Tensor.
    before, after : list of Deed
        What is done on the host around the run.
    leaves : list of (tensor, spec, requires_grad)
        What was true of the leaves; the plan is good while it is.
    modules : list of (module, training)
        The same of modules.
    device : Device
        Where the plan runs, and its results are.
    root_output : int or None
        The result that the caller may differentiate, where `fn` calls no backward.
    unsure : set of Tensor
        See Trace.
    plans : list of Plan
        Those that nobody is using.
    """

    make: Callable[[], Plan]
    result: Any
    before: list[Deed] = field(default_factory=list)
    after: list[Deed] = field(default_factory=list)
    leaves: list[tuple[Tensor, Spec, bool]] = field(default_factory=list)
    modules: list[tuple[Any, bool]] = field(default_factory=list)
    device: Device = CPU
    root_output: int | None = None
    unsure: set[Tensor] = field(default_factory=set)
    plans: list[Plan] = field(default_factory=list)

    def holds(self) -> bool:
        for tensor, spec, requires_grad in self.leaves:
            value = tensor.value
            if (value.shape != spec.shape or tensor.requires_grad is not requires_grad
                    or value.dtype != spec.dtype
                    or tensor.device is not self.device):  # fmt: skip
                return False
        return all(module.training is mode for module, mode in self.modules)

    def take(self) -> Plan:
        return self.plans.pop() if self.plans else self.make()


class Compiled:
    """What `tg.compile` returns; call it like the function."""

    def __init__(
        self, fn: Callable[..., Any], threads: int | None, tile: int | None,
        fast: bool | None = None,
    ) -> None:  # fmt: skip
        update_wrapper(self, fn)
        self.fn, self.threads, self.tile, self.fast = fn, threads, tile, fast
        self.reasons: list[str] = []  # why it ran as it stands
        self._device = CPU  # of the last plan: where the next one is looked for first
        self._found: OrderedDict[Hashable, list[Recorded | _AsItStands]] = OrderedDict()

    def __call__(self, *args: Any, **options: Any) -> Any:
        if grad_mode.trace is not None or anomaly.mode.enabled:
            return self.fn(*args, **options)
        given: list[Any] = []
        key = (take_apart((args, options), given), grad_mode.enabled)
        recorded = self._look_up(key)
        if recorded is None:
            recorded = self._record(args, options, given)
            self._found.setdefault(key, []).append(recorded)
        elif isinstance(recorded, Recorded) and any(x.grad is not None for x in recorded.unsure):
            # Now it can be told whether the function removes these gradients itself.
            found = self._found[key]
            found[found.index(recorded)] = recorded = self._record(
                args, options, given, [x for x, _, wanted in recorded.leaves if wanted]
            )
        if isinstance(recorded, _AsItStands):
            return self.fn(*args, **options)
        return _run(recorded, given)

    def _look_up(self, key: Hashable) -> Any:
        found = self._found.get(key)
        if found is None:
            while len(self._found) >= MOST_PLANS:
                self._found.popitem(last=False)
            return None
        self._found.move_to_end(key)
        return next((recorded for recorded in found if recorded.holds()), None)

    def _record(
        self, args: Any, options: Any, given: list[Any], watched: Sequence[Tensor] = ()
    ) -> Recorded | _AsItStands:
        try:
            return self._traced(args, options, given, watched)
        except NoNumba:
            raise
        except Refused as refusal:
            reason = str(refusal)
        except Exception as error:  # an error of fn itself will show when it runs as it stands
            reason = f"tracing it fails: {type(error).__name__}: {error}"
        self.reasons.append(reason)
        if len(self.reasons) == 1:
            name = getattr(self.fn, "__name__", "function")
            warnings.warn(
                PlanWarning(f"compile: {name} runs as it stands, without a plan: {reason}"),
                stacklevel=3,
            )
        return _AsItStands()

    def _traced(
        self, args: Any, options: Any, given: list[Any], watched: Sequence[Tensor]
    ) -> Recorded:
        device = next((x.device for x in given if isinstance(x, Tensor)), self._device)
        tried: list[Device] = []
        while True:
            try:
                recorded = self._traced_on(device, args, options, given, watched)
            except Elsewhere as found:
                tried.append(device)
                if found.device in tried:
                    raise
                device = found.device
            else:
                self._device = device
                return recorded

    def _traced_on(
        self, device: Device, args: Any, options: Any, given: list[Any], watched: Sequence[Tensor]
    ) -> Recorded:
        with Trace(watched, device) as trace:
            leaves = [
                trace.argument(Spec(x.shape, x.dtype), x.requires_grad, x.device)
                if isinstance(x, Tensor) else trace.argument(Spec(x.shape, x.dtype))
                for x in given
            ]  # fmt: skip
            parts = iter(leaves)
            traced_args, traced_options = put_together((args, options), parts)
            result = self.fn(*traced_args, **traced_options)
        return _recorded(trace, result, leaves, self.threads, self.tile, self.fast)

    def explain(self) -> str:
        """What was compiled, as text: a table for each plan, and why there is none."""
        lines = []
        for found in self._found.values():
            for recorded in found:
                if isinstance(recorded, Recorded):
                    lines.append(describe(recorded.plans[0] if recorded.plans else recorded.make()))
        lines += [f"runs as it stands: {reason}" for reason in self.reasons]
        return "\n\n".join(lines) or "nothing is compiled yet: call it first"


class _AsItStands:
    """In the place of a recording: the function runs without a plan."""

    def holds(self) -> bool:
        return True


# ---- from a trace to a plan -----------------------------------------------------------------


def _recorded(
    trace: Trace, result: Any, arguments: list[Tensor], threads: int | None, tile: int | None,
    fast: bool | None,
) -> Recorded:  # fmt: skip
    outputs: list[Tensor] = []
    slots = slots_of(result, outputs, trace)
    if any(node.keeps_grad for node in trace.nodes):
        raise Refused("it asks for the gradient of a node with retain_grad")
    before, root, after = _sorted_events(trace)
    root_output = None
    if root is None:
        open_ends = [i for i, node in enumerate(outputs) if node.requires_grad]
        if len(open_ends) > 1:
            raise Refused("several of its results can be differentiated, and it calls no backward")
        root_output = open_ends[0] if open_ends else None
    start = outputs[root_output] if root_output is not None else root
    code = code_of(trace.nodes, outputs, start, arguments, trace.aliases, trace.device)
    code = with_compiled_bodies(rewrite(code), fast)
    # What the caller differentiates stays whole: its backward comes later, with any gradient.
    carrying = range(len(arguments)) if root_output is None else ()

    def make() -> Plan:
        return Plan(code, carrying, threads, tile)

    leaves = [
        (made.tensor, made.spec, made.tensor.requires_grad)
        for made in code.instructions if made.tensor is not None
    ]  # fmt: skip
    modules = list({id(module): (module, mode) for module, mode in trace.modules}.values())
    zeroed = {
        parameter for event in trace.events if isinstance(event, Deed) for parameter in event.zeroes
    }
    return Recorded(make, slots, before, after, leaves, modules, code.device, root_output,
                    trace.unsure - zeroed, [make()])  # fmt: skip


def _sorted_events(trace: Trace) -> tuple[list[Deed], Tensor | None, list[Deed]]:
    """What is done before and after the run, and where backward begins."""
    before: list[Deed] = []
    after: list[Deed] = []
    root: Tensor | None = None
    computed = False
    for event in trace.events:
        if isinstance(event, Backward):
            if event.gradient is not None:
                raise Refused("it gives backward a gradient of its own")
            root = event.root
        elif isinstance(event, Deed):
            if root is not None and not event.anywhere:
                after.append(event)
            elif computed and event.name != "zero_grad" and not event.anywhere:
                raise Refused(f"it does {event.name} between computing and backward")
            else:
                before.append(event)
        elif after:
            raise Refused("it computes after the optimiser's step")
        else:
            computed = True
    return before, root, after


# ---- running --------------------------------------------------------------------------------


def _run(recorded: Recorded, given: list[Any]) -> Any:
    device = recorded.device
    arrays = [x.value if isinstance(x, Tensor) else device.from_numpy(x) for x in given]
    for deed in recorded.before:
        deed.call()
    if recorded.root_output is not None:
        tensors = _differentiable(recorded, given, arrays)
    else:
        plan = recorded.take()
        try:
            tensors = [as_node(array, plan) for array in plan.run(arrays)]
            for argument, gradient in plan.argument_gradients.items():
                _accumulate(given[argument], gradient)
        finally:
            recorded.plans.append(plan)
    for deed in recorded.after:
        deed.call()
    return fill(recorded.result, tensors)


def _accumulate(tensor: Tensor, gradient: Array) -> None:
    if tensor.grad is None:
        tensor.grad = tensor.device.copy(gradient)
    else:
        tensor.grad = added(tensor.device, tensor.grad, gradient)


def _differentiable(recorded: Recorded, given: list[Any], arrays: list[Array]) -> list[Tensor]:
    """The results as leaves, but for the one that the caller may differentiate: a node."""
    plan = recorded.take()
    instructions = plan.code.instructions
    sources = [
        (at, given[made.argument] if made.argument is not None else made.tensor)
        for at, made in enumerate(instructions) if made.op is None
    ]  # fmt: skip
    wanted = [(at, x) for at, x in sources if isinstance(x, Tensor) and x.requires_grad]
    op = PlannedCall(
        plan, recorded.plans, recorded.root_output or 0, arrays, tuple([at for at, _ in wanted])
    )
    node = op(*[x for _, x in wanted])
    tensors = [as_node(array, plan) for array in op.outputs]
    tensors[recorded.root_output or 0] = node
    return tensors
