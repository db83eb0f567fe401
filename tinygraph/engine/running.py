"""Who runs this?  One stack of runners for each thread; eager is the lowest of them.

    y = x * w                       Op.__call__ asks here.top.apply(op, (x, w))
         |
    +----v------------+
    | Recording       |  launch, fresh          here.top: the runner that was entered last
    +----|------------+
    | Stopwatch       |  forward, backward, ...
    +----|------------+
    | no_grad         |  remembers = False
    +----v------------+
    | Eager           |  everything runs itself: always there
    +-----------------+

Whatever can be observed, replaced or forbidden while it runs is a method of `Eager`: an op, its
body, the reverse walk, an update, a launch.  A `Runner` has some of these methods, does its part
and calls `self.below.method(...)`; what it leaves alone is answered by the one below.  So the
engine knows nobody who watches it, and two watchers at once need not know each other.

    class Log(Runner):
        def forward(self, node, mem, arrays):
            print(node.op.name)
            return self.below.forward(node, mem, arrays)

    with Log():
        loss = model(x)

The stack belongs to its thread.  A thread that is started to do a part of the work inherits it,
through `inherit`.  Two settings are no runners, for they hold until they are changed, in all
threads, as in PyTorch: the seed (random.py) and the precision of products (precision.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tinygraph.base import GraphError
from tinygraph.engine.promises import backward_mistake, forward_mistake
from tinygraph.engine.writes import Writes, refuse_read_only

Function = TypeVar("Function", bound=Callable[..., Any])


class Eager:
    """Everything runs itself.

    Attributes
    ----------
    remembers : bool
        Whether new nodes remember how they were made, for `backward`.
    plans : bool
        Whether a compiled function may run as a plan, not as it stands.
    replays : bool
        Whether a plan may run the ufuncs that the bodies of its ops come down to.
    reads : bool
        Whether values may be looked at: not while a graph is captured, which has none yet.
    threads : int or None
        That a new plan has where it is not told; None for all cores.
    first_sample : int
        Where the samples that run begin in the whole batch: their random numbers are those that the
        whole batch has there.
    samples : int or None
        How many they are, where they are a part of a batch.
    weight : float
        How much a gradient counts that backward begins with: a part of a batch, its share.
    of_ranks : tuple of int or None
        How many samples of the batch each rank of a launch has, where that is known.
    """

    remembers = plans = replays = reads = True
    threads: int | None = None
    first_sample = 0
    samples: int | None = None
    weight = 1.0
    of_ranks: tuple[int, ...] | None = None
    below: Any = None  # nobody

    # ---- ops; a `node` is a Tensor, or in a plan what has its op, inputs and needs ----------

    def apply(self, op: Any, operands: tuple[Any, ...]) -> Any:
        """Make the node `op(*operands)`."""
        return op.make_node(operands)

    def forward(self, node: Any, mem: Any, arrays: list[Any]) -> Any:
        """Run the body of a node's op on arrays: the value, and what it saves."""
        try:
            if mem.device.runs_kernels:
                return node.op.forward_kernel(mem, *map(mem.contiguous, arrays))
            return node.op.forward(mem, *arrays)
        except TypeError as error:
            if mistake := forward_mistake(node.op, error):
                raise mistake from None
            raise

    def backward(self, node: Any, mem: Any, grad: Any, saved: Any) -> Any:
        """Run the derivative of a node's op: one gradient for each input."""
        try:
            if mem.device.runs_kernels:
                return node.op.backward_kernel(mem, mem.contiguous(grad), saved, node.needs)
            return node.op.backward(mem, grad, saved, node.needs)
        except (TypeError, ValueError) as error:
            if mistake := backward_mistake(node, grad, error):
                raise mistake from None
            raise

    def walk_back(self, walk: Callable[[], None], outputs: Any, gradients: Any) -> None:
        """Carry gradients from some nodes to the leaves below: what `walk()` does."""
        walk()

    def receive(self, user: Any, node: Any, grad: Any, before: Any, add: Callable[..., Any]) -> Any:
        """A gradient reaches a node from one that uses it, None for the caller of backward: what
        the node has now.  `before` is what it had until then, None at first; the sum is written
        into it where nobody else has that array."""
        return grad if before is None else add(node, grad)

    def add_up(self, add: Callable[..., Any], total: Any, term: Any, *how: Any) -> Any:
        """Add a gradient to a total, None before the first: what `add(total, term, *how)` gives."""
        return add(total, term, *how)

    def complete(self, leaf: Any) -> None:
        """`.grad` of a leaf has all that this backward adds to it."""

    def created(self, leaf: Any) -> None:
        """A leaf was made of no numbers of the user's: zeros, places, noise."""

    def draws_for_samples(self) -> bool:
        """Whether the op that runs draws for samples of the batch, and not for a parameter."""
        return True

    # ---- the host's part of a step ----------------------------------------------------------

    def call(self, module: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call a module of nn."""
        return module.forward(*inputs, **options)

    def update(self, optimizer: Any) -> None:
        """Let an optimiser change its parameters."""
        optimizer.update_all()

    def do(self, call: Callable[[], Any], name: str, anywhere: bool = False) -> Any:
        """Anything else that belongs to a step, such as clipping; `anywhere`: in any order."""
        return call()

    def read(self, node: Any) -> None:
        """The host is about to read a node's value."""

    def aside(self, what: str) -> None:
        """Code of the user's is about to see what is computed, or to replace it: it `what`."""

    def write(self, node: Any, array: Any) -> None:
        """Write an array of a leaf's shape, dtype and device into its value."""
        try:
            node.value[...] = array
        except ValueError:
            refuse_read_only(node)
            raise
        Writes.note(node)

    def share(self, made: Any, node: Any) -> None:
        """A leaf was made that has the value of a node."""

    # ---- memory and kernels -----------------------------------------------------------------

    def fresh(self, array: Any) -> None:
        """An uninitialised array was given out where kernels run."""

    def launch(self, launch: Any) -> None:
        """Make a launch of a kernel: a `tinygraph.cuda.Launch`."""
        launch.kernel.run(launch)

    def stream(self, generator: Any, device: Any) -> tuple[int, int, Any]:
        """Seed and stream of random numbers, and the array in which a later start stands."""
        return generator.seed, generator.next_stream(), None

    def varying(self, device: Any, dtype: Any, numbers: Callable[[], Any], owner: Any) -> Any:
        """The numbers of this step on a device, where another step may need others."""
        return device.constant(np.array(numbers(), dtype))

    def hold(self, thing: Any) -> None:
        """Something of whose arrays a launch on a GPU has the addresses."""

    def wait(self, why: str) -> None:
        """The host is about to wait for a GPU, or to copy."""


class Runner:
    """Stands above another one while it is entered, which can be done once."""

    below: Any = None  # the runner that was on top before

    def __enter__(self) -> Any:
        if self.below is not None:
            raise GraphError("running", type(self).__name__, "a new one", "one that was entered")
        self.below, here.top = here.top, self  # type: ignore[assignment]
        return self

    def __exit__(self, *exception: object) -> None:
        here.top = self.below

    def __getattr__(self, name: str) -> Any:
        """What this one leaves alone is answered by the one below; it is asked for that once."""
        answer = getattr(self.below, name)
        vars(self)[name] = answer
        return answer


class _Here(threading.local):
    """`here.top` is the runner that this thread asks."""

    top: Eager = Eager()


here = _Here()


def inherit(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, to be called in another thread under the runners of this one."""
    top = here.top

    def call(*args: Any) -> Any:
        before, here.top = here.top, top
        try:
            return function(*args)
        finally:
            here.top = before

    return call


class Around:
    """A context that enters a new runner, and stands above functions of any kind (wrapping.py)."""

    def __enter__(self) -> Any:
        self._runner().__enter__()

    def __exit__(self, *exception: object) -> None:
        here.top = here.top.below

    def __call__(self, function: Function) -> Function:
        from tinygraph.base.wrapping import above  # here: few programs need it

        made: Function = above(function, lambda: self, type(self).__name__)
        return made

    def _runner(self) -> Runner:
        raise NotImplementedError


class Bare(Around):
    """One without settings: `@no_grad` means `@no_grad()`."""

    def __new__(cls, function: Any = None) -> Any:
        made = super().__new__(cls)
        return made if function is None else made(function)


class _NoGrad(Runner):
    remembers = False


class no_grad(Bare):
    """Make nodes that remember neither op nor inputs, in this thread: evaluation without training.

    It is a context, and stands above functions: `@tg.no_grad()` or `@tg.no_grad`.  Of a generator
    and of an `async def` each resumption runs so, and what happens in between does not.

    Raises
    ------
    ArgumentError
        Above a class, or anything else that is no function.

    Examples
    --------
    >>> import tinygraph as tg
    >>> w = tg.Tensor([1.0], requires_grad=True)
    >>> with tg.no_grad():
    ...     y = w * 2
    >>> y.requires_grad, y.op
    (False, None)
    >>> @tg.no_grad()
    ... def scores():
    ...     yield w * 2
    >>> next(scores()).requires_grad
    False
    """

    _runner = _NoGrad
