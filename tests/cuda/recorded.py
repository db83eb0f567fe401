"""Launches as the ops of the library make them: each is written down while an op runs.

The op runs on numpy and on the emulator, and both must agree.  What the whole kernel then wrote is
the answer that a mutant of it is measured by: a mutant that no line of the op can tell from the
kernel is no wrong kernel of this library.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np

import tinygraph as tg
from tests.cuda.launch import Launch, Updated
from tinygraph.cuda import Kernel, Out
from tinygraph.cuda.arguments import Argument


class _RecordedModule:
    """Stands before a compiled module and writes down what it is asked to check."""

    def __init__(self, module: Any, kernel: Kernel, label: str, launches: list[Launch]) -> None:
        self.module, self.kernel, self.label, self.launches = module, kernel, label, launches

    def check(
        self, arguments: Sequence[Argument], grid: Any, block: Any, shared: int, *options: Any
    ) -> Any:
        before = [np.copy(argument.value) for argument in arguments]
        report = self.module.check(arguments, grid, block, shared, *options)
        given = tuple(map(_argument, arguments, before))
        path = self.kernel.source.path
        assert path is not None, "kernels of ops stand in files"
        self.launches.append(
            Launch(
                path.name,
                self.kernel.name,
                dict(self.kernel.source.defines),
                grid,
                given,
                self.label,
                block,
                shared,
            )
        )
        return report


def _argument(argument: Argument, before: np.ndarray) -> Any:
    """One argument as `Launch` takes it, with what the kernel has made of it."""
    if not argument.parameter.pointer:
        return before.item()
    if argument.role == "in" or not before.size:
        return before
    after = argument.value.copy()
    return Out(after) if argument.role == "out" else Updated(before, after, argument.role)


def launches_in(label: str, work: Callable[[], Any]) -> list[Launch]:
    """The launches that a call makes on the emulator."""
    launches: list[Launch] = []
    module_of = Kernel._module

    def recorded(kernel: Kernel, checked: bool) -> Any:
        return _RecordedModule(module_of(kernel, checked), kernel, label, launches)

    with mock.patch.object(Kernel, "_module", recorded), tg.cuda.checking():
        work()
    return launches


def op_launches(
    function: Callable[..., Any],
    *arrays: Any,
    label: str = "",
    differentiable: bool = True,
    constants: Collection[int] = (),
    **keywords: Any,
) -> Iterator[Launch]:
    """The launches of an op, forward and backward: with every gradient, each alone, and none.

    Arguments that are float arrays require a gradient, but for those whose positions are in
    `constants`; others go through as they are.
    """
    floats = [i for i, x in enumerate(arrays) if differentiable and _is_variable(x)]
    variables = [i for i in floats if i not in constants]
    choices = [variables, *([i] for i in variables if len(variables) > 1), []]
    for wanted in choices if variables else [[]]:
        expected = _run(function, arrays, keywords, wanted, "cpu")
        got: list[Any] = []

        def on_emulator(got: list[Any] = got, wanted: list[int] = wanted) -> None:
            got += _run(function, arrays, keywords, wanted, "emulator")

        yield from launches_in(f"{label} wanted={wanted}", on_emulator)
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_allclose(b, a, rtol=2e-4, atol=2e-5, err_msg=f"{function} {label}")


def _is_variable(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def _run(
    function: Callable[..., Any],
    arrays: Sequence[Any],
    keywords: dict[str, Any],
    wanted: list[int],
    device: str,
) -> list[np.ndarray]:
    """The value of an op, and the gradients that are wanted."""
    nodes = [
        tg.Tensor(x, requires_grad=i in wanted, device=device) if isinstance(x, np.ndarray) else x
        for i, x in enumerate(arrays)
    ]
    y = function(*nodes, **keywords)
    if wanted:
        y.backward(np.random.default_rng(1).standard_normal(y.shape).astype(y.dtype))
    return [y.numpy(), *[node.grad for i, node in enumerate(nodes) if i in wanted]]
