"""Kernels launched as one says, not as tinygraph chooses: the sides of `variants`.

A side is made once, its arrays on the device, its launches looked up, so that nothing but the
launches is timed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import tinygraph as tg
from tinygraph.cuda import op_kernel
from tinygraph.engine.memory import eager_memory
from tinygraph.engine.op import Op
from tinygraph.engine.spec import Shape
from tinygraph.ops.common.launch import THREADS, ChunkedLaunch
from tinygraph.ops.elementwise.relu import Relu
from tinygraph.ops.products.gemm import (
    STEPS,
    GemmChoice,
    choose_gemm,
    chunks_of_sum,
    tile_grid,
)
from tinygraph.ops.products.linear import Linear
from tinygraph.ops.shaping.reshape import Flatten
from tinygraph.ops.windows.conv2d import Conv2d
from tinygraph.ops.windows.conv2d_relu_max_pool2d import Conv2dReluMaxPool2d
from tinygraph.ops.windows.convolution import SHORTEST_SUM, TILES, ConvolutionChoice, tiles_of
from tinygraph.ops.windows.max_pool2d import MaxPool2d
from tinygraph.ops.windows.single_channel_stage import SingleChannelStage
from tinygraph.plan.rewrites.stage_and_linear import StageAndLinear

F4 = np.dtype(np.float32)


class Side(NamedTuple):
    """One way to compute something.

    Attributes
    ----------
    run : what is timed
    results : what it computes, in numpy; all sides must agree
    """

    run: Callable[[], Any]
    results: Callable[[], Sequence[np.ndarray]]


Sides = Mapping[str, Side]  # the first one is what tinygraph chooses


def _side(run: Callable[[], Sequence[Any]], to_numpy: Callable[[Any], np.ndarray]) -> Side:
    return Side(run, lambda: [to_numpy(array) for array in run()])


def _numbers(*shapes: Shape, device: str) -> list[Any]:
    """Tensors of random numbers, the same for each side."""
    rng = np.random.default_rng(0)
    return [tg.Tensor(rng.standard_normal(s, np.float32), device=device) for s in shapes]


# ---- products -----------------------------------------------------------------------------------


def gemm_steps(m: int, n: int, k: int) -> list[GemmChoice]:
    """The step of the ladder that is chosen for a product, and the others that work in float32."""
    chosen = choose_gemm(m, n, k, F4)
    tiles = [tile for tile in STEPS if tile != chosen.tile]
    return [chosen, *(chosen._replace(tile=tile) for tile in tiles)]


def gemm_cuts(m: int, n: int, k: int) -> list[GemmChoice]:
    """A product whose sum is cut into chunks, and in one piece."""
    chosen = choose_gemm(m, n, k, F4)
    return [chosen, chosen._replace(chunks=1)]


def products(m: int, n: int, k: int, choices: Sequence[GemmChoice], device: str) -> Sides:
    """The same product in these ways."""
    a, b = _numbers((m, k), (k, n), device=device)
    return {_words(choice.step, choice.chunks): _product(a, b, choice) for choice in choices}


def _words(kernel: str, chunks: int) -> str:
    return kernel + (f", {chunks} chunks" if chunks > 1 else "")


def _product(a: Any, b: Any, choice: GemmChoice) -> Side:
    """One launch of matmul.cu, and another one that adds up the chunks."""
    (m, k), n = a.shape, b.shape[1]
    kernel = op_kernel("matmul", "matmul", F4, **choice.macros, TRANSPOSE_A=0, TRANSPOSE_B=0)
    grid = tile_grid(choice.tile, m, n, choice.chunks, F4)
    # one product, one term: sizes 1 and steps 0 of two batch axes and of a summed one
    axes = (1, 1, 0, 0, 0, 0, 1, 0, 0)
    bound = kernel.bind(grid, THREADS, m, n, k, *axes, choice.chunks, 0)
    product, mem = ChunkedLaunch(bound, choice.chunks), eager_memory((), a.device)

    def run() -> list[Any]:
        c = mem.empty((m, n), F4)
        product.write(mem, c, a.value, b.value)
        return [c]

    return _side(run, a.device.to_numpy)


# ---- convolutions -------------------------------------------------------------------------------


class Pass(NamedTuple):
    """A pass of a convolution whose output has the size of the images.

    Attributes
    ----------
    name : "forward", "input_gradient" or "weight_gradient"
    x, w : shapes of images and filters
    """

    name: str
    x: Shape
    w: Shape

    @property
    def op(self) -> Conv2d:
        return Conv2d((1, 1), (self.w[2] // 2, self.w[3] // 2), (1, 1), 1)

    @property
    def chosen(self) -> ConvolutionChoice:
        return self.op.choice(*self, F4, "highest")

    def tiles(self) -> list[ConvolutionChoice]:
        """The tile that is chosen, and the others, each with the chunks that fit it."""
        chosen, size = self.chosen, self.op.product_of(*self)
        choices = [chosen]
        for tile in TILES:
            chunks = chunks_of_sum(size.terms, size.k, tiles_of(tile, size, F4), SHORTEST_SUM)
            choices += [replace(chosen, tile=tile, chunks=chunks)] if tile != chosen.tile else []
        return choices

    def cuts(self) -> list[ConvolutionChoice]:
        """With the sum cut into chunks, and in one piece."""
        return [self.chosen, replace(self.chosen, chunks=1)]

    def sides(self, choices: Sequence[ConvolutionChoice], device: str) -> Sides:
        """The pass in these ways."""
        y = self.x[0], self.w[0], *self.x[2:]
        x, w, gy, no_bias = _numbers(self.x, self.w, y, (0,), device=device)
        tensors = {"forward": (w, x, no_bias), "input_gradient": (w, gy)}
        arrays = [t.value for t in tensors.get(self.name, (gy, x))]
        mem = eager_memory((), x.device)

        def side(choice: ConvolutionChoice) -> Side:
            launch = self.op.launch(*self, F4, choice)

            def run() -> list[Any]:
                result = mem.empty(self.op.result(*self), F4)
                launch.write(mem, result, *arrays)
                return [result]

            return _side(run, x.device.to_numpy)

        return {_words(f"tile of {c.tile}", c.chunks): side(c) for c in choices}


# ---- backward of the seed network's stage and of the layer behind it ----------------------------


class _GeneralStage(Conv2dReluMaxPool2d):
    """The fused op by its kernels for filters, strides and channels of any kind."""

    name = "conv2d_relu_max_pool2d"

    def single_channel_stage(self, x: Shape, w: Shape) -> SingleChannelStage | None:
        return None


def stage_sides(x: Shape, filters: int, classes: int, device: str) -> Sides:
    """Backward from the gradient of the classes to those of all parameters."""
    features = filters * math.prod((side - 2) // 2 for side in x[2:])
    shapes = x, (filters, 1, 3, 3), (filters,), (classes, features), (classes,), (x[0], classes)
    image, w, b, v, c, gy = _numbers(*shapes, device=device)
    settings = (1, 1), (0, 0), (1, 1), 1
    stage = Conv2dReluMaxPool2d(*settings, pool=2)
    pool = MaxPool2d((2, 2), (2, 2), (0, 0), False)
    head: list[tuple[Op, list[Any]]] = [(Flatten(1), []), (Linear(), [v, c])]
    chains: dict[str, list[tuple[Op, list[Any]]]] = {
        "stage and linear in one launch": [(StageAndLinear(stage, True), [w, b, v, c])],
        "stage, linear": [(stage, [w, b]), *head],
        "stage of any kind, linear": [(_GeneralStage(*settings, pool=2), [w, b]), *head],
        "conv, ReLU, max-pool, linear": [
            (Conv2d(*settings), [w, b]),
            (Relu(), []),
            (pool, []),
            *head,
        ],
    }
    return {name: _backward(ops, image, gy) for name, ops in chains.items()}


def _backward(ops: Sequence[tuple[Op, list[Any]]], x: Any, gy: Any) -> Side:
    """Backward through ops of which each reads the one before; forward runs once."""
    value, walk = x.value, []
    for at, (op, more) in enumerate(ops):
        needs = (at > 0, *[True] * len(more))
        value, saved = op.forward_kernel(
            eager_memory(needs, x.device), value, *[t.value for t in more]
        )
        walk.append((op, eager_memory((), x.device), saved, needs))

    def run() -> list[Any]:
        gradient, found = gy.value, []
        for op, mem, saved, needs in reversed(walk):
            gradient, *rest = op.backward_kernel(mem, gradient, saved, needs)
            found[:0] = rest
        return found

    return _side(run, x.device.to_numpy)
