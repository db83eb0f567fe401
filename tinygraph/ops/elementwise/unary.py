"""Functions of one number, element by element: relu, sigmoid, exp, clip, ...

A member states its mathematics twice, and nothing else: in numpy, `function` writes y and
`gradient` gx = gy * dy/dx (elementwise.py has short ones); in CUDA, in the .cu file with the stem
of the module, a functor with the name of the class (see ops/elementwise/unary.cuh).  Where both
methods are made of ufuncs, as most are, a plan computes the op in a chain with its neighbours by
itself: it takes down the calls (plan/elementwise_tape.py).  Scratch arrays come from `mem`.

`@unary` above the public function says of argument, result and errors what all members do;
`@float_unary` says it of those that have floats for integers too, `Exp()(floats(x))`, and
`@number_unary` of those that have integers for them.

    of        the ufunc that is the function, where there is one: it stands for `function`
    keeps     "x" (the default) or "y": what gradient reads; None where it reads neither
    takes     the dtypes; by default float32 and float64
    numbers   the hyper-parameters of the functor, at most two
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import getfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tinygraph.cuda import BoundLaunch, op_kernel
from tinygraph.engine import Array, Gradients, Memory, Needs, Spec, eager_memory
from tinygraph.ops.common import FLOATS, documented, on_elements, remembered, require_one_dtype
from tinygraph.ops.common.blocks import WORTH_BLOCKS, Blocks

_NONE = (0, 0), (0.0, 0.0)  # hyper-parameters that are not there, of an integer and of a float


class Unary:
    """Mixed into the ops: the output is like the input, sample by sample."""

    name: ClassVar[str]
    of: ClassVar[Any]
    takes: ClassVar[str] = FLOATS
    keeps: ClassVar[str | None] = "x"
    member: ClassVar[type]  # the class, of this one and its bases, that states the mathematics

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if Unary in cls.__bases__ or vars(cls).keys() & {"function", "of"}:
            cls.member = cls

    # ---- what a member writes ---------------------------------------------------------------

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        """Write f(x) into y."""
        self.of(x, out=y)

    def gradient(self, mem: Memory, gy: Array, kept: Array, gx: Array) -> None:
        """Write gy * f'(x) into gx; `kept` is x or y, as `keeps` says."""
        raise NotImplementedError

    def numbers(self, dtype: np.dtype[Any]) -> tuple[float, ...]:
        """The hyper-parameters that the functor takes."""
        return ()

    @property
    def functor(self) -> str:
        """Its name in the .cu file."""
        return self.member.__name__

    # ---- what all share ---------------------------------------------------------------------

    def infer(self, x: Spec) -> Spec:
        if x.dtype.char not in self.takes:
            require_one_dtype(self.name, self.takes, x=x)
        return x

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty(x.shape, x.dtype)
        _in_blocks(mem, self.function, x, y)
        return y, self._kept(mem, x, y)

    def backward(self, mem: Memory, gy: Array, kept: Any, needs: Needs) -> Gradients:
        gx = mem.empty(gy.shape, gy.dtype)
        _in_blocks(mem, self.gradient, gy, kept, gx)
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty(x.shape, x.dtype)
        self._launch("unary_forward", x, y)
        return y, self._kept(mem, x, y)

    def backward_kernel(self, mem: Memory, gy: Array, kept: Any, needs: Needs) -> Gradients:
        gx = mem.empty(gy.shape, gy.dtype)
        self._launch("unary_backward", gy, gy if kept is None else kept, gx)
        return (gx,)

    def _kept(self, mem: Memory, x: Array, y: Array) -> Array | None:
        if not mem.needs[0] or self.keeps is None:
            return None
        return y if self.keeps == "y" else x

    def _launch(self, function: str, *arrays: Array) -> None:
        x, numbers = arrays[0], self.numbers(arrays[0].dtype)
        if x.size:
            launch = _over(self.member, self.functor, function, x.dtype, x.size, len(numbers))
            launch(*arrays, *((x.size, *numbers) if numbers else ()))

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


def _in_blocks(mem: Memory, function: Callable[..., None], x: Array, *others: Any) -> None:
    """Call a function of elements on blocks of large arrays; None stays None."""
    arrays = [x, *others]
    if x.nbytes < WORTH_BLOCKS or not all(a is None or a.flags.c_contiguous for a in arrays):
        function(mem, *arrays)
        return
    flat = [None if a is None else a.reshape(-1) for a in arrays]
    scratch = eager_memory(mem.needs)  # of each thread: `mem` may answer in an order
    blocks = Blocks(mem, x.size, x.itemsize)
    blocks.run(lambda _, block: function(scratch, *[a if a is None else a[block] for a in flat]))


@remembered
def _over(
    member: type, functor: str, function: str, dtype: Any, size: int, given: int
) -> BoundLaunch:
    """The launch over so many elements; where hyper-parameters are given, size is with them."""
    kernel = op_kernel(Path(getfile(member)).stem, function, dtype, functor)
    absent = _NONE[dtype.kind == "f"][given:]
    return on_elements(kernel, size, *(absent if given else (size, *absent)))


class Flat(Unary):
    """Mixed into functions that are flat between their jumps: the derivative is 0 at those too."""

    keeps: ClassVar[None] = None

    def gradient(self, mem: Memory, gy: Array, kept: Any, gx: Array) -> None:
        gx[...] = 0


unary = documented(
    """
    Parameters
    ----------
    x : Tensor
        Any shape; float32 or float64.

    Returns
    -------
    Tensor
        Same shape and dtype.

    Raises
    ------
    DtypeError
        `x` is not of a float dtype.
    """
)

number_unary = documented(
    """
    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64 or integers.

    Returns
    -------
    Tensor
        Same shape and dtype.

    Raises
    ------
    DtypeError
        `x` does not hold numbers.
    """
)

float_unary = documented(
    """
    Parameters
    ----------
    x : Tensor
        Any shape; float32 or float64; integers and bools are made float32.

    Returns
    -------
    Tensor
        Same shape; the dtype of `x`, or float32.

    Raises
    ------
    DtypeError
        `x` is float16.
    """
)
