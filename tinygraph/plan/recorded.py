"""Recorded: what one trace of a compiled function has found, and how a call of it runs.

before      what the function does on the host before it computes: `zero_grad`, counts
the plan    values, and gradients where the function calls backward
after       steps of optimisers and schedules, clipping
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tinygraph.engine import CPU, Array, Device, Spec, Tensor, here, leaf
from tinygraph.engine.hooks import through_hooks
from tinygraph.nn.hooks import hooked
from tinygraph.plan.changes import Account, difference
from tinygraph.plan.code import code_of
from tinygraph.plan.fast import with_compiled_bodies
from tinygraph.plan.leaf_gradients import added
from tinygraph.plan.readings import MISSING, Reading
from tinygraph.plan.result import PlannedCall, as_node
from tinygraph.plan.rewrites import rewrite
from tinygraph.plan.runner import Plan
from tinygraph.plan.side_effects import Change, other_changes
from tinygraph.plan.structure import fill, places_of
from tinygraph.plan.tracing import Backward, Deed, Refused, Trace
from tinygraph.plan.tuning import Choice, Tuning, cut_as


@dataclass(eq=False)
class Recorded:
    """What one trace has found."""

    make: Callable[[], Plan]  # makes one more, where all others wait for their backward
    result: Any  # what to return, with a `Place` in the place of each Tensor
    account: Account  # of the first call: what later ones must do, too
    before: list[Deed]  # what is done on the host around the run
    after: list[Deed]
    leaves: list[tuple[Tensor, Spec, bool]]  # with requires_grad: the plan is good while it is so
    modules: list[tuple[Any, bool]]  # with their modes, likewise
    device: Device  # where the plan runs, and its results are
    root_output: int | None  # what the caller may differentiate, where `fn` calls no backward
    unsure: set[Tensor]  # see Trace
    plans: list[Plan]  # those that nobody is using
    key: Hashable = None  # the kind of arguments; see `take_apart`
    readings: list[Reading] = field(default_factory=list)  # what was found outside of them
    changes: list[Change] = field(default_factory=list)  # what the function leaves behind
    settled: bool = False  # whether tiles and threads have been tuned, where they are to be
    choice: Choice | None = None  # what was chosen
    calls: int = 1
    same_until: int = 1  # the last of these calls that was seen to do the same as the first
    due: bool = False  # whether the next call looks again, whatever its number

    def holds(self) -> bool:
        for holder, key, value, _ in self.readings:
            if holder.get(key, MISSING) is not value and not all(r.holds() for r in self.readings):
                return False
        return self.stands()

    def stands(self) -> bool:
        """Whether leaves and modules are as they were."""
        for tensor, spec, requires_grad in self.leaves:
            value, device = tensor.value, tensor.device
            if value.shape != spec.shape or value.dtype != spec.dtype or device is not self.device:
                return False
            if tensor.requires_grad is not requires_grad or tensor.hooks:
                return False
        return all(module.training is mode and not hooked(module) for module, mode in self.modules)

    def compare(self, later: Account, changes: Sequence[Change]) -> None:
        """Refused where a later call did something else than the first.

        That says which calls have run through the plan since the last that did the same.
        """
        if reason := difference(self.account, later) or other_changes(self.changes, changes):
            first, last = self.same_until + 1, self.calls - 1
            calls = f"Call {first}" if first == last else f"Calls {first} to {last}"
            told = f". {calls} of this kind ran through the plan, without such a change"
            raise Refused(reason + (told if first <= last else ""))

    def take(self) -> Plan:
        return self.plans.pop() if self.plans else self.make()

    def settle(self, tuning: Tuning, given: Sequence[Any]) -> None:
        """Let the plan have the fastest tiles and threads, and all later ones the same."""
        plan, self.choice = tuning.tuned(self.take(), self._arrays(given))
        self.plans[:], self.settled = [plan], True
        if not self.choice.reason:
            self.make = partial(cut_as, plan, plan.threads, plan.tile)

    def run(self, given: list[Any]) -> Any:
        """One call of the function: what it returns."""
        arrays = self._arrays(given)
        done = {id(deed): deed.call() for deed in self.before}
        if self.root_output is not None:
            tensors = self._differentiable(given, arrays)
        else:
            plan = self.take()
            try:
                tensors = [as_node(array, plan) for array in plan.run(arrays)]
                for argument, gradient in plan.gradients.of_arguments.items():
                    _accumulate(given[argument], gradient)
            finally:
                self.plans.append(plan)
        for deed in self.after:
            done[id(deed)] = deed.call()
        for change in self.changes:
            change.repeat()
        return fill(self.result, tensors, done)

    def _arrays(self, given: Sequence[Any]) -> list[Array]:
        return [x.value if isinstance(x, Tensor) else self.device.from_numpy(x) for x in given]

    def _differentiable(self, given: list[Any], arrays: list[Array]) -> list[Tensor]:
        """The results as leaves, but for the one that the caller may differentiate: a node."""
        plan = self.take()
        instructions = plan.code.instructions
        sources = [
            (at, given[made.argument] if made.argument is not None else made.tensor)
            for at, made in enumerate(instructions)
            if made.op is None
        ]
        wanted = [(at, x) for at, x in sources if isinstance(x, Tensor) and x.requires_grad]
        op = PlannedCall(
            plan, self.plans, self.root_output or 0, arrays, tuple([at for at, _ in wanted])
        )
        node = op(*[x for _, x in wanted])
        tensors = [as_node(array, plan) for array in op.outputs]
        tensors[self.root_output or 0] = node
        return tensors


def _accumulate(tensor: Tensor, gradient: Array) -> None:
    if tensor.hooks:
        gradient = through_hooks(tensor, gradient)
    if tensor.grad is None:
        tensor.grad = tensor.device.copy(gradient)
    else:
        tensor.grad = added(tensor.device, tensor.grad, gradient)
    here.top.complete(tensor)


class AsItStands:
    """In the place of a recording: the function runs without a plan.

    Where `earlier` calls went through a plan, arrays among the arguments came to the function as
    Tensors: then they still do.  `reason` is what is told once it has run.
    """

    def __init__(
        self,
        key: Hashable,
        earlier: Recorded | None = None,
        readings: Sequence[Reading] = (),
        reason: str = "",
    ) -> None:
        self.key, self.readings, self.reason, self.calls = key, readings, reason, 1
        self.once = False  # whether it may be a plan after this call, which makes things ready
        self.wraps = earlier is not None
        self._device = CPU if earlier is None else earlier.device
        leaves = [] if earlier is None else earlier.leaves  # parameters move, numbers do not
        self._leaf = next((x for x, _, _ in leaves if type(x) is not Tensor), None)

    def tensors(self, given: Sequence[Any]) -> Iterator[Tensor]:
        """The arguments, arrays as Tensors on the device of what the function computes with."""
        device = self._device if self._leaf is None else self._leaf.device
        return (x if isinstance(x, Tensor) else leaf(device.from_numpy(x), device) for x in given)

    def holds(self) -> bool:
        return all(reading.holds() for reading in self.readings)


# ---- from a trace to a plan -----------------------------------------------------------------


def recorded_of(
    trace: Trace, result: Any, threads: int | None, tile: int | None, fast: bool | None
) -> Recorded:
    """A trace as something to run; Refused where no plan can repeat it."""
    account = Account(trace)
    outputs: list[Tensor] = []
    places = places_of(result, outputs, trace)
    if any(node.keeps_grad for node in trace.nodes):
        raise Refused("it asks for the gradient of a node with retain_grad")
    if any(x.hooks for node in trace.nodes for x in (node, *node.inputs)):
        raise Refused("a tensor of it has a hook, which a plan does not call")
    before, root, after = _sorted_events(trace)
    root_output = None
    if root is None:
        open_ends = [i for i, node in enumerate(outputs) if node.requires_grad]
        if len(open_ends) > 1:
            raise Refused("several of its results can be differentiated, and it calls no backward")
        root_output = open_ends[0] if open_ends else None
    start = outputs[root_output] if root_output is not None else root
    code = code_of(trace.nodes, outputs, start, trace.arguments, trace.aliases, trace.device)
    code = with_compiled_bodies(rewrite(code), fast)
    # What the caller differentiates stays whole: its backward comes later, with any gradient.
    carrying = range(len(trace.arguments)) if root_output is None else ()

    def make() -> Plan:
        return Plan(code, carrying, threads, tile)

    tensors = [(made.tensor, made) for made in code.instructions if made.tensor is not None]
    deeds = [event for event in trace.events if isinstance(event, Deed)]
    return Recorded(
        make,
        places,
        account,
        before,
        after,
        leaves=[(x, made.spec, x.requires_grad) for x, made in tensors],
        modules=list({id(module): (module, mode) for module, mode in trace.modules}.values()),
        device=code.device,
        root_output=root_output,
        unsure=trace.unsure - {parameter for deed in deeds for parameter in deed.zeroes},
        plans=[make()],
    )


def _sorted_events(trace: Trace) -> tuple[list[Deed], Tensor | None, list[Deed]]:
    """What is done before and after the run, and where backward begins."""
    before: list[Deed] = []
    after: list[Deed] = []
    root: Tensor | None = None
    computed = False
    for event in trace.events:
        if isinstance(event, Backward):
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
