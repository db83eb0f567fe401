"""Module: a function with parameters.  Everything is found by looking at the object's attributes.

    class Net(nn.Module):
        def __init__(self):
            self.hidden = nn.Linear(2, 8)       # hidden.weight, hidden.bias
            self.scale = nn.Parameter([1.0])    # scale

        def forward(self, x):
            return tg.relu(self.hidden(x)) * self.scale

`vars(module)` is the register of parameters, in the order of assignment; there is no other.  So a
module needs no call of `super().__init__()`, and `del net.hidden` removes a layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np

from tinygraph.base import ArgumentError
from tinygraph.base.wrapping import around
from tinygraph.engine import Array, Buffer, Parameter, Shape, Tensor, Writes, get_device, here
from tinygraph.engine.hooks import Handle
from tinygraph.nn.hooks import call_with_hooks
from tinygraph.nn.loading import IncompatibleKeys, fitting
from tinygraph.nn.summary import summarize
from tinygraph.nn.tree import Tree

M = TypeVar("M", bound="Module")
T = TypeVar("T", bound=Tensor)


class Module(Tree):
    """A layer or a network.  Subclass it: make parameters in `__init__`, write `forward`.

    Attributes that are a `Parameter`, a `Buffer` or a `Module` are found; those in a list, a tuple,
    a set or a dict are refused, for they would be missed without a word: see `ModuleList`.

    Attributes
    ----------
    training : bool
        True until `eval()` is called; what layers such as dropout look at.

    Notes
    -----
    On assignment the parameters and buffers below take their dotted path as `name`, as pictures and
    errors show it.  The outermost module that holds a parameter names it last.

    Examples
    --------
    >>> import tinygraph as tg
    >>> from tinygraph import nn
    >>> class Scale(nn.Module):
    ...     def __init__(self, features):
    ...         self.factor = nn.Parameter(tg.ones(features))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> net = nn.Sequential(nn.Linear(4, 2), Scale(2))
    >>> [name for name, _ in net.named_parameters()]
    ['0.weight', '0.bias', '1.factor']
    """

    training = True
    spans_ranks = False  # whether its forward needs all ranks of a launch, for each batch
    _before_forward: tuple[Any, ...] = ()
    _after_forward: tuple[Any, ...] = ()
    _after_backward: tuple[Any, ...] = ()
    _settings: ClassVar[tuple[str, ...]] = ()  # attributes that `repr` shows
    _unusual: ClassVar[dict[str, Any]] = {}  # those that it shows where they are not as here

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """The output.  A subclass writes this; users call the module itself."""
        raise ArgumentError(
            f"{type(self).__name__}: no forward. Way out: define forward(self, x) in the class"
        )

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        if self._before_forward or self._after_forward or self._after_backward:
            return call_with_hooks(self, inputs, options)
        return here.top.call(self, inputs, options)

    def register_forward_pre_hook(self, hook: Callable[[Any, Any], Any]) -> Handle:
        """Call `hook(module, inputs)` before `forward`; what it returns are the inputs then.

        Returns a handle, whose `remove()` takes the hook away.
        """
        return Handle(self, "_before_forward", hook)

    def register_forward_hook(self, hook: Callable[[Any, Any, Any], Any]) -> Handle:
        """Call `hook(module, inputs, output)` after `forward`; what it returns is the output then.

        Returns a handle, whose `remove()` takes the hook away.

        Examples
        --------
        >>> from tinygraph import nn
        >>> layer, seen = nn.ReLU(), []
        >>> with layer.register_forward_hook(lambda module, x, y: seen.append(y.shape)):
        ...     y = layer([[1.0, -1.0]])
        >>> seen
        [(1, 2)]
        """
        return Handle(self, "_after_forward", hook)

    def register_full_backward_hook(self, hook: Callable[[Any, Any, Any], Any]) -> Handle:
        """Call `hook(module, grad_input, grad_output)` when backward has come through the module.

        These are tuples of arrays, one for each input without a name and for each output; None
        stands for what gets no gradient.  What the hook returns goes on in the place of
        `grad_input`, where a single input gets a gradient.

        Returns a handle, whose `remove()` takes the hook away.

        Examples
        --------
        >>> import tinygraph as tg
        >>> layer = tg.nn.ReLU()
        >>> x = tg.Tensor([1.0, -1.0], requires_grad=True)
        >>> handle = layer.register_full_backward_hook(lambda module, gx, gy: (10 * gx[0],))
        >>> layer(x).sum().backward()
        >>> x.grad
        array([10.,  0.], dtype=float32)
        """
        return Handle(self, "_after_backward", hook)

    # ---- modes, gradients, devices ----------------------------------------------------------

    def train(self: M, mode: bool = True) -> M:
        """Put this module and all below it into training mode (or out of it); returns itself."""
        for module in self.modules():
            module.training = bool(mode)
        return self

    def eval(self: M) -> M:
        """Put this module and all below it into evaluation mode; returns itself."""
        return self.train(False)

    @around
    def evaluating(self) -> Iterator[None]:
        """Evaluation mode for a while; then each module is in the mode that it was in.

        >>> from tinygraph import nn
        >>> layer = nn.Dropout(0.5)
        >>> with layer.evaluating():
        ...     print(layer.training)
        False
        >>> layer.training
        True
        """
        before = [(vars(module), vars(module).get("training")) for module in self.modules()]
        self.eval()
        try:
            yield
        finally:
            for attributes, mode in before:
                if mode is None:  # it was never set, and is that of the class
                    attributes.pop("training", None)
                else:
                    attributes["training"] = mode

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters; `set_to_none` is taken, and always so."""
        for parameter in self.parameters():
            parameter.grad = None

    def to(self: M, device: Any = None, dtype: Any = None, non_blocking: bool = False) -> M:
        """Move parameters, gradients and buffers to a device, or make their floats of a dtype.

        In place; returns itself.  Make the optimiser afterwards: its state lives where the
        parameters were, in their dtype.

        Parameters
        ----------
        device : str or Device, optional
            Or a dtype, in its place, as in PyTorch.
        dtype : dtype, optional
            float32 or float64.  Integers, such as counts, stay what they are.
        non_blocking : bool
            Taken, and changes nothing.

        Examples
        --------
        >>> import numpy as np
        >>> from tinygraph import nn
        >>> nn.Linear(2, 1).to(np.float64).weight.dtype
        dtype('float64')
        """
        if isinstance(device, (np.dtype, type)):
            device, dtype = None, device
        for _, leaf in self._named_leaves(Parameter, Buffer):
            leaf.become(leaf.device if device is None else get_device(device), dtype)
        return self

    def float(self: M) -> M:
        """`to(np.float32)`."""
        return self.to(np.float32)

    def double(self: M) -> M:
        """`to(np.float64)`."""
        return self.to(np.float64)

    def cpu(self: M) -> M:
        """`to("cpu")`."""
        return self.to("cpu")

    def cuda(self: M) -> M:
        """`to("cuda")`."""
        return self.to("cuda")

    # ---- saving and loading -----------------------------------------------------------------

    def state_dict(self) -> dict[str, Array]:
        """Copies of all parameters and buffers as numpy arrays, by dotted names."""
        leaves = self._saved_leaves()
        return {name: np.array(leaf.whole_of(leaf.numpy()), order="C") for name, leaf in leaves}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys:
        """Write saved values into the parameters and buffers, in place.

        Parameters
        ----------
        state : mapping from dotted name to array
            As `state_dict` gave it, or as PyTorch's did for the same layers, converted to numpy:
            there a shared parameter stands under each of its names.
        strict : bool
            Whether the names must be exactly those of this module.  Shapes and dtypes must fit in
            any case.

        Returns
        -------
        IncompatibleKeys
            `.missing_keys` and `.unexpected_keys`: names that were passed over; none when strict.

        Raises
        ------
        CheckpointError
            Something does not fit.  The message lists all of it, and nothing was changed.

        Examples
        --------
        >>> from tinygraph import nn
        >>> a, b = nn.Linear(3, 2), nn.Linear(3, 2)
        >>> b.load_state_dict(a.state_dict())
        IncompatibleKeys(missing_keys=[], unexpected_keys=[])
        >>> bool((a.weight.value == b.weight.value).all())
        True
        """
        leaves = dict(self._saved_leaves())
        names = self._all_names()  # a shared leaf may go by any of its names, or by several
        arrays, passed_over = fitting(type(self).__name__, state, leaves, names, strict)
        for name, array in arrays.items():
            leaf = names[name]
            leaf.value[...] = leaf.device.from_numpy(leaf.part_of(array))
        Writes.note(*[names[name] for name in arrays])
        return passed_over

    # ---- showing ----------------------------------------------------------------------------

    def summary(self, input_shape: Shape, dtype: Any = np.float32) -> str:
        """A table of the layers, their output shapes and their parameters, from a real forward.

        Parameters
        ----------
        input_shape : tuple of int
            The shape of one sample, without the batch axis: (1, 28, 28).
        dtype : dtype
            Of the input.

        Returns
        -------
        str
            One line for each call of a layer; N stands for the batch axis.

        Raises
        ------
        ShapeError, DtypeError, ...
            What the failing layer raised; the message names that layer.

        Examples
        --------
        >>> from tinygraph import nn
        >>> print(nn.Sequential(nn.Linear(4, 2), nn.ReLU()).summary((4,)))
        Sequential: (N, 4) float32 -> (N, 2) float32
        name  layer   output shape  parameters
        ----  ------  ------------  ----------
        0     Linear  (N, 2)                10
        1     ReLU    (N, 2)                 0
        parameters: 10 (40 B), 10 of them trainable
        buffers: 0 (0 B)
        layer outputs: 16 B for each sample
        """
        return summarize(self, input_shape, dtype)

    def extra_repr(self) -> str:
        """What stands between the parentheses of `repr`; by default its `_settings`."""
        unusual = [name for name, usual in self._unusual.items() if getattr(self, name) != usual]
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in (*self._settings, *unusual))

    def __repr__(self) -> str:
        lines = [self.extra_repr()] if self.extra_repr() else []
        children = list(self.named_children())
        if not children:
            return f"{type(self).__name__}({''.join(lines)})"
        lines += [f"({name}): {child!r}" for name, child in children]
        body = "\n".join(lines).replace("\n", "\n  ")
        return f"{type(self).__name__}(\n  {body}\n)"
