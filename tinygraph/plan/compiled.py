"""compile: a function of tensors that runs through plans.

The first call with arguments of some shapes traces the function (tracing.py), turns what it did
into code (code.py), rewrites that (rewrites/) and makes a plan (runner.py).  The second traces it
once more, and looks whether it still does the same (changes.py).  Later calls with such arguments
run the plan.  A function that no plan can repeat runs as it stands, and says so once.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import update_wrapper
from typing import Any

from tinygraph import anomaly
from tinygraph.device import CPU, Device
from tinygraph.errors import ArgumentError, PlanWarning
from tinygraph.plan.changes import Account, difference
from tinygraph.plan.code import code_of
from tinygraph.plan.fast import NoNumba, with_compiled_bodies
from tinygraph.plan.recorded import AsItStands, Recorded
from tinygraph.plan.rewrites import rewrite
from tinygraph.plan.runner import Plan
from tinygraph.plan.structure import put_together, slots_of, take_apart
from tinygraph.plan.table import describe
from tinygraph.plan.tracing import Backward, Deed, Elsewhere, Refused, Trace
from tinygraph.plan.tuning import Tuning
from tinygraph.shapes import Spec
from tinygraph.tensor import Tensor, grad_mode

MOST_PLANS = 16  # of one function; those used least are dropped first


def compile(
    fn: Callable[..., Any],
    *,
    threads: int | None = None,
    tile: int | None = None,
    fast: bool | None = None,
    tune: bool = False,
) -> Compiled:
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
    tune : bool
        Measure a few numbers of threads and tile sizes at the first call with arguments of some
        shapes, and keep the fastest; `threads` or `tile` leaves only the other one to be measured.
        `explain()` tells the times.  Another process may choose otherwise, and so come to other
        bits: `tuning.to_list()` of one and `tuning.load` of the other make them the same.

    Returns
    -------
    Compiled
        Call it like `fn`; `explain()` tells what it does.

    Warns
    -----
    PlanWarning
        Once, where `fn` does what no plan can repeat: it reads a value in the middle, moves a
        tensor to another device, calls backward twice, computes something else at the second call
        than at the first.  It then runs as it stands.  And once where plans are dropped, for there
        are more than 16.

    Notes
    -----
    For each combination of shapes, dtypes, grad mode and modes of modules `fn` runs without
    computing anything at the first call, and at the second, to see whether it still does the same:
    a number that it finds somewhere and that has changed is noticed there, and not later.  What it
    does besides tensor operations, optimiser steps, `zero_grad`, schedules and clipping (counting,
    printing, appending to a list) is not repeated.

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
            raise ArgumentError("compile", name, "an int of at least 1", repr(value))
    if not callable(fn):
        raise ArgumentError("compile", "fn", "a function", repr(fn))
    if fast not in (None, True, False):
        raise ArgumentError("compile", "fast", "True, False or None", repr(fast))
    if tune and threads and tile:
        raise ArgumentError(
            "compile",
            "tune",
            "threads or tile left open",
            f"threads {threads} and tile {tile}",
            "leave one of them out",
        )
    return Compiled(fn, threads, tile, fast, Tuning(threads, tile) if tune else None)


class Compiled:
    """What `tg.compile` returns; call it like the function."""

    def __init__(
        self,
        fn: Callable[..., Any],
        threads: int | None,
        tile: int | None,
        fast: bool | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        update_wrapper(self, fn)
        self.tuning = tuning
        self.fn, self.threads, self.tile, self.fast = fn, threads, tile, fast
        self.reasons: list[str] = []  # why it ran as it stands
        self._dropped = False  # whether plans were, so that it was told
        self._device = CPU  # of the last plan: where the next one is looked for first
        self._found: OrderedDict[Hashable, list[Recorded | AsItStands]] = OrderedDict()

    def __call__(self, *args: Any, **options: Any) -> Any:
        if grad_mode.trace is not None or anomaly.mode.enabled:
            return self.fn(*args, **options)
        given: list[Any] = []
        placed = tuple([take_apart(x, given) for x in args])
        named = take_apart(options, given) if options else None
        key = placed, named, grad_mode.enabled
        recorded = self._look_up(key)
        if recorded is None:
            found = self._found.setdefault(key, [])
            recorded = self._record(args, options, given, others=found)
            found.append(recorded)
        elif isinstance(recorded, Recorded) and any(x.grad is not None for x in recorded.unsure):
            # Now it can be told whether the function removes these gradients itself.
            found = self._found[key]
            found[found.index(recorded)] = recorded = self._record(
                args, options, given, [x for x, _, wanted in recorded.leaves if wanted], recorded
            )
        elif isinstance(recorded, Recorded) and recorded.account is not None:
            recorded = self._look_again(key, recorded, args, options, given)
        if isinstance(recorded, AsItStands):
            if recorded.wraps:
                args, options = put_together((args, options), recorded.tensors(given))
            return self.fn(*args, **options)
        if self.tuning is not None and not recorded.settled:
            recorded.settle(self.tuning, given)
        return recorded.run(given)

    def _look_up(self, key: Hashable) -> Any:
        found = self._found.get(key)
        if found is None:
            while len(self._found) >= MOST_PLANS:
                self._found.popitem(last=False)
                self._tell_of_dropping()
            return None
        self._found.move_to_end(key)
        for recorded in found:
            if recorded.holds():
                return recorded
        return None

    def _tell_of_dropping(self) -> None:
        """Warn once: making plans that are soon dropped takes longer than running without."""
        if not self._dropped:
            self._dropped = True
            name = getattr(self.fn, "__name__", "function")
            warnings.warn(
                PlanWarning(
                    f"compile: {name} needs more than {MOST_PLANS} plans, one for each kind of "
                    "arguments; those used least are dropped. Way out: pass numbers that change "
                    "from call to call as arrays (np.array(t)), and batches of few sizes"
                ),
                stacklevel=4,
            )

    def _look_again(
        self, key: Hashable, recorded: Recorded, args: Any, options: Any, given: list[Any]
    ) -> Recorded | AsItStands:
        """At the second call: the recording, where the function still does the same."""

        def same() -> Recorded:
            trace, _, _ = self._trace(recorded.device, args, options, given, ())
            _require_same(recorded, Account(trace))
            return recorded

        found, again = self._found[key], self._unless_refused(same, recorded)
        found[found.index(recorded)] = again
        return again

    def _record(
        self,
        args: Any,
        options: Any,
        given: list[Any],
        watched: Sequence[Tensor] = (),
        before: Recorded | None = None,
        others: Sequence[Recorded | AsItStands] = (),
    ) -> Recorded | AsItStands:
        """A recording of a call; `before` is an earlier one, of which it must be the same, and
        `others` are recordings that did not hold before the call."""

        def traced() -> Recorded:
            recorded = self._traced(args, options, given, watched)
            if not recorded.holds() or any(other.holds() for other in others):
                raise Refused(
                    "it changes requires_grad or the mode of a module (train, eval) "
                    "itself. Way out: do that before the call"
                )
            if before is not None:
                _require_same(before, recorded.account)
                recorded.account = None
            return recorded

        earlier = before or next((x for x in others if isinstance(x, Recorded)), None)
        return self._unless_refused(traced, earlier)

    def _unless_refused(
        self, trace: Callable[[], Recorded], earlier: Recorded | None
    ) -> Recorded | AsItStands:
        """What `trace` finds; where it fails that is said, and the function runs as it stands."""
        try:
            return trace()
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
                stacklevel=4,
            )
        return AsItStands(earlier)

    def _traced(
        self, args: Any, options: Any, given: list[Any], watched: Sequence[Tensor]
    ) -> Recorded:
        """On the arguments' device; arrays follow the first tensor that `fn` computes with."""
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
        trace, result, leaves = self._trace(device, args, options, given, watched)
        return _recorded(trace, result, leaves, self.threads, self.tile, self.fast)

    def _trace(
        self, device: Device, args: Any, options: Any, given: list[Any], watched: Sequence[Tensor]
    ) -> tuple[Trace, Any, list[Tensor]]:
        """What the function does, what it returns, and what stands for its arguments."""
        with Trace(watched, device) as trace:
            leaves = [
                trace.argument(Spec(x.shape, x.dtype), x.requires_grad, x.device)
                if isinstance(x, Tensor)
                else trace.argument(Spec(x.shape, x.dtype))
                for x in given
            ]
            parts = iter(leaves)
            traced_args, traced_options = put_together((args, options), parts)
            result = self.fn(*traced_args, **traced_options)
        return trace, result, leaves

    def explain(self) -> str:
        """What was compiled, as text: a table for each plan, and why there is none."""
        lines = []
        for found in self._found.values():
            for recorded in found:
                if isinstance(recorded, Recorded):
                    plan = recorded.plans[0] if recorded.plans else recorded.make()
                    tuned = [str(recorded.choice)] if recorded.choice else []
                    lines.append("\n".join([describe(plan), *tuned]))
        lines += [f"runs as it stands: {reason}" for reason in self.reasons]
        return "\n\n".join(lines) or "nothing is compiled yet: call it first"


# ---- from a trace to a plan -----------------------------------------------------------------


def _require_same(before: Recorded, now: Account | None) -> None:
    """A recording is good from its second call on, where the function does the same then."""
    reason = difference(before.account, now) if before.account and now else ""
    if reason:
        raise Refused(reason)
    before.account = None


def _recorded(
    trace: Trace,
    result: Any,
    arguments: list[Tensor],
    threads: int | None,
    tile: int | None,
    fast: bool | None,
) -> Recorded:
    account = Account(trace)
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
        for made in code.instructions
        if made.tensor is not None
    ]
    modules = list({id(module): (module, mode) for module, mode in trace.modules}.values())
    zeroed = {
        parameter for event in trace.events if isinstance(event, Deed) for parameter in event.zeroes
    }
    return Recorded(
        make,
        slots,
        before,
        after,
        leaves,
        modules,
        code.device,
        root_output,
        trace.unsure - zeroed,
        [make()],
        account=account,
    )


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
