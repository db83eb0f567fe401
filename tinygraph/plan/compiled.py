"""compile: a function of tensors that runs through plans.

The first call with arguments of some shapes traces the function (tracing.py), turns what it did
into code (code.py), rewrites that (rewrites/) and makes a plan (runner.py).  Calls with such
arguments that find the same values outside of them (readings.py) run the plan.  The calls 2, 4, 8,
... trace the function once more, and look whether it still does the same (changes.py).  A function
that no plan can repeat runs as it stands, and says so once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from functools import update_wrapper
from typing import Any, NamedTuple

from tinygraph.base import ArgumentError, PlanWarning, one_of, whole
from tinygraph.engine import CPU, Device, Spec, Tensor, here
from tinygraph.plan.changes import Account
from tinygraph.plan.fast import NoNumba
from tinygraph.plan.readings import Readings, Unrepeatable
from tinygraph.plan.recorded import AsItStands, Recorded, recorded_of
from tinygraph.plan.structure import put_together, take_apart
from tinygraph.plan.table import describe
from tinygraph.plan.tracing import Elsewhere, Refused, Trace
from tinygraph.plan.tuning import Tuning

MOST_PLANS = 16  # of one function; those used least are dropped first
MOST_OF_A_KIND = 4  # of these for the same kind of arguments


def compile(
    fn: Callable[..., Any],
    *,
    threads: int | None = None,
    tile: int | None = None,
    fast: bool | None = None,
    tune: bool = False,
) -> CompiledFunction:
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
        shapes, and keep the fastest; what is given as `threads` or `tile` stays.  Another process
        may choose otherwise, and so come to other bits: `tuning.to_list()` of one and `tuning.load`
        of the other make them the same.

    Returns
    -------
    CompiledFunction
        Call it like `fn`; `explain()` tells what it does.

    Warns
    -----
    PlanWarning
        Once, where `fn` does what no plan can repeat, such as reading a value in the middle or
        drawing from numpy's generators, or has come to compute something else: it then runs as it
        stands.  And once where plans are dropped, for there are more than 16, or more than 4 for
        the same kind of arguments.

    Notes
    -----
    A plan is found by the shapes and dtypes of arrays, all other values among the arguments (in
    tuples, lists, dicts, dataclasses, namespaces), grad mode, modes of modules, and the numbers,
    strings and flags that `fn` reads from globals, closures and attributes, or changes there; a
    plan changes them too.  For each of these `fn` runs without computing anything at the first
    call, and at calls 2, 4, 8, ..., to see whether it still does the same.  What it does besides
    (printing, writing files) is done at those calls alone.

    A plan stays on the device of the tensors that `fn` computes with, and arrays are put there.  On
    the emulator and on a GPU it runs through the kernels, the batch as a whole: `threads` and
    `tile` are for the cpu.

    Results equal those of `fn` to rounding, and are the same bits for the same number of threads.

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
    threads = None if threads is None else whole("compile", "threads", threads)
    tile = None if tile is None else whole("compile", "tile", tile)
    one_of("compile", "fast", fast, (True, False, None))
    if not callable(fn):
        raise ArgumentError("compile", "fn", "a function", repr(fn))
    if tune and threads and tile:
        given = f"threads {threads} and tile {tile}"
        way_out = "leave one of them out"
        raise ArgumentError("compile", "tune", "threads or tile left open", given, way_out)
    return CompiledFunction(fn, threads, tile, fast, Tuning(threads, tile) if tune else None)


class _Arguments(NamedTuple):
    """Of one call: their kind, and the arrays and Tensors among them."""

    key: Hashable
    args: Any
    options: Any
    given: list[Any]


class CompiledFunction:
    """What `tg.compile` returns; call it like the function.

    Attributes
    ----------
    name : str
        What warnings call the function.
    """

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
        self._found: list[Recorded | AsItStands] = []  # the one that was used last stands first
        self._readings = Readings(fn)  # of the last trace
        self.name = getattr(fn, "__name__", "function")

    def __call__(self, *args: Any, **options: Any) -> Any:
        if not here.top.plans:
            return self.fn(*args, **options)
        given: list[Any] = []
        key: Hashable = None
        try:
            placed = tuple([take_apart(x, given) for x in args])
            plain = take_apart(options, given) if options else None
            top = here.top
            key = placed, plain, top.remembers, top.threads, top.of_ranks
        except Refused as refusal:
            self._tell(str(refusal))
        if key is None:
            return self.fn(*args, **options)
        recorded = self._look_up(key)
        if recorded is None:
            if self._is_another_each_time(key):
                latest = self._found[0]
                recorded = AsItStands(key, latest if isinstance(latest, Recorded) else None)
            else:
                recorded = self._record(_Arguments(key, args, options, given))
        else:
            recorded.calls += 1
            if isinstance(recorded, Recorded):
                if any(x.grad is not None for x in recorded.unsure):
                    # Now it can be told whether the function removes these gradients itself.
                    recorded = self._record_again(recorded, _Arguments(key, args, options, given))
                elif (recorded.due or recorded.calls & (recorded.calls - 1) == 0) and top.reads:
                    recorded = self._look_again(recorded, _Arguments(key, args, options, given))
            elif recorded.once:
                recorded = self._record(_Arguments(key, args, options, given))
        if isinstance(recorded, AsItStands):
            if recorded.wraps:
                args, options = put_together((args, options), recorded.tensors(given))
            result = self.fn(*args, **options)
            if recorded.reason and not recorded.once:  # now: an error of fn speaks for itself
                self._tell(recorded.reason)
            if recorded.calls == 1:  # what fn changes itself does not tell its calls apart
                recorded.readings = [each for each in recorded.readings if each.holds()]
            return result
        if self.tuning is not None and not recorded.settled:
            recorded.settle(self.tuning, given)
        return recorded.run(given)

    def look_again(self) -> None:
        """At the next call of each kind too, see whether the function still does the same."""
        for recorded in self._found:
            if isinstance(recorded, Recorded):
                recorded.due = True

    def _look_up(self, key: Hashable) -> Recorded | AsItStands | None:
        for at, recorded in enumerate(self._found):
            if recorded.key == key and recorded.holds():
                if at:  # the one that was used last stands first
                    self._found.insert(0, self._found.pop(at))
                return recorded
        return None

    def _is_another_each_time(self, key: Hashable) -> bool:
        """Whether there are many plans, and none was used a second time.  Room for one more else.

        Making a plan takes longer than running the function once without."""
        alike = [x for x in self._found if x.key == key]
        full = alike if len(alike) >= MOST_OF_A_KIND else self._found
        if full is self._found and len(full) < MOST_PLANS:
            return False
        if not self._dropped:
            self._dropped = True
            if not self.reasons:  # else it was told of already
                warnings.warn(PlanWarning(self._told_of_many(full)), stacklevel=3)
        if all(x.calls == 1 for x in full):
            return True
        self._found.remove(full[-1])
        return False

    def _told_of_many(self, full: Sequence[Recorded | AsItStands]) -> str:
        latest, *earlier = full
        read = {r.place: r.value for r in latest.readings}
        others = [r for x in earlier if x.key == latest.key for r in x.readings]
        changing = {r.told: None for r in others if r.value is not read.get(r.place, r.value)}
        why = f" ({', '.join(changing)} is another one in each)" if changing else ""
        return (
            f"compile: {self.name} needs more than {len(full)} plans, one for each kind of "
            f"arguments and for all that it reads besides{why}; those used least are dropped, "
            "and where none is used twice it runs as it stands. Way out: pass numbers that "
            "change from call to call as arrays (np.array(t)), and batches of few sizes"
        )

    def _look_again(self, recorded: Recorded, call: _Arguments) -> Recorded | AsItStands:
        """At calls 2, 4, 8, ...: the recording, where the function still does the same."""

        def same() -> Recorded:
            trace, _ = self._trace(recorded.device, call)
            _, changes = self._readings.settled(trace.deeds)
            recorded.compare(Account(trace), changes)
            recorded.same_until, recorded.due = recorded.calls, False
            return recorded

        again = self._unless_refused(same, recorded)
        if isinstance(again, AsItStands):  # others of this kind may not be trusted either
            again.readings = []
            self._found[:] = [again, *[x for x in self._found if x.key != recorded.key]]
        return again

    def _record(self, call: _Arguments) -> Recorded | AsItStands:
        """A recording of a call, which is kept."""
        others = [x for x in self._found if x.key == call.key]
        tried = [x for x in others if isinstance(x, AsItStands) and x.once]

        def traced() -> Recorded:
            recorded = self._traced(call)
            states = any(change.is_of_a_state for change in recorded.changes)
            again = not recorded.changes and any(x.holds() for x in others if x not in tried)
            if states or again or not recorded.stands():
                raise Refused(
                    "it changes requires_grad, the mode of a module (train, eval) or a number "
                    "that it reads itself. Way out: do that before the call"
                )
            return recorded

        earlier = next((x for x in others if isinstance(x, Recorded)), None)
        made = self._unless_refused(traced, earlier, call.key)
        if isinstance(made, AsItStands) and made.once:  # does it leave such things at every call?
            made.once = not any(isinstance(x, AsItStands) and x.once for x in self._found)
            made.readings = [] if tried else made.readings
        self._found[:] = [made, *[x for x in self._found if x not in tried]]
        return made

    def _record_again(self, before: Recorded, call: _Arguments) -> Recorded | AsItStands:
        """The same recording, where leaves have gradients now."""

        def traced() -> Recorded:
            recorded = self._traced(call, [x for x, _, wanted in before.leaves if wanted])
            before.compare(recorded.account, recorded.changes)
            recorded.calls = recorded.same_until = before.calls
            return recorded

        made = self._unless_refused(traced, before)
        self._found[self._found.index(before)] = made
        return made

    def _unless_refused(
        self, trace: Callable[[], Recorded], earlier: Recorded | None, key: Hashable = None
    ) -> Recorded | AsItStands:
        """What `trace` finds; where it fails that is said, and the function runs as it stands."""
        once = False
        try:
            return trace()
        except Refused as refusal:
            reason, once = str(refusal), isinstance(refusal, Unrepeatable)
        except (NoNumba, KeyboardInterrupt, SystemExit):
            self._readings.undo()
            raise
        except Exception as error:  # an error of fn itself will show when it runs as it stands
            reason = f"tracing it fails: {type(error).__name__}: {error}"
            if isinstance(error, ValueError) and "is read-only" in str(error):
                reason = (
                    "it writes into an array or a value that it has not made, which a plan does "
                    "not repeat. Way out: do that outside, or compute another array"
                )
        finally:
            readings, self._readings = self._readings, Readings(self.fn)  # it holds nothing
        lasting = readings.lasting()
        readings.undo()
        made = AsItStands(key if earlier is None else earlier.key, earlier, lasting, reason)
        made.once = once
        return made

    def _tell(self, reason: str) -> None:
        """Warn, once, that the function runs as it stands."""
        if reason in self.reasons:
            return
        self.reasons.append(reason)
        if len(self.reasons) == 1:
            warnings.warn(
                PlanWarning(f"compile: {self.name} runs as it stands, without a plan: {reason}"),
                stacklevel=3,
            )

    def _traced(self, call: _Arguments, watched: Sequence[Tensor] = ()) -> Recorded:
        """On the arguments' device; arrays follow the first tensor that `fn` computes with."""
        device = next((x.device for x in call.given if isinstance(x, Tensor)), self._device)
        tried: list[Device] = []
        while True:
            try:
                traced = self._trace(device, call, watched)
            except Elsewhere as found:
                self._readings.undo()
                tried.append(device)
                if found.device in tried:
                    raise
                device = found.device
            else:
                self._device = device
                recorded = recorded_of(*traced, self.threads, self.tile, self.fast)
                recorded.key = call.key
                found_outside = self._readings.settled(traced[0].deeds)
                recorded.readings, recorded.changes = found_outside
                return recorded

    def _trace(
        self, device: Device, call: _Arguments, watched: Sequence[Tensor] = ()
    ) -> tuple[Trace, Any]:
        """What the function does, and what it returns."""
        self._readings = readings = Readings(self.fn, (call.args, call.options))
        with Trace(watched, device) as trace:
            for x in call.given:
                of_tensor = (x.requires_grad, x.device) if isinstance(x, Tensor) else ()
                trace.argument(Spec(x.shape, x.dtype), *of_tensor)
            args, options = put_together((call.args, call.options), iter(trace.arguments))
            with readings:
                readings.copies((args, options))
                result = self.fn(*args, **options)
        return trace, result

    def explain(self) -> str:
        """What was compiled, as text: a table for each plan, and why there is none."""
        lines = []
        for recorded in reversed(self._found):
            if isinstance(recorded, Recorded):
                plan = recorded.plans[0] if recorded.plans else recorded.make()
                tuned = [str(recorded.choice)] if recorded.choice else []
                lines.append("\n".join([describe(plan), *tuned]))
        lines += [f"runs as it stands: {reason}" for reason in self.reasons]
        return "\n\n".join(lines) or "nothing is compiled yet: call it first"
