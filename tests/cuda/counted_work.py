"""For each .cu file, work that launches all its kernels on shapes that fill their blocks and tiles.

An op that has no line here is counted on the problems of its own tests (contract_work.py).

Numbers take the branches that cost: negative where an activation has a negative side, powers that
are no squares, labels in range.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import tinygraph as tg
from tinygraph.cuda import Kernel, Out
from tinygraph.cuda.devices import EMULATOR
from tinygraph.cuda.reading.source import kernel_file
from tinygraph.engine.memory import eager_memory
from tinygraph.ops.common import scatter
from tinygraph.ops.common.patterns import band, spaced
from tinygraph.ops.windows.conv2d_relu_max_pool2d import Conv2dReluMaxPool2d
from tinygraph.ops.windows.single_channel_stage import sum_parts
from tinygraph.plan.rewrites.stage_and_linear import StageAndLinear

F4, F8, I8 = np.float32, np.float64, np.int64
Work = Callable[[], Any]


def numbers(*shape: int, low: float = -1, high: float = 1) -> np.ndarray:
    return np.random.default_rng(0).uniform(low, high, shape).astype(F4)


def integers(*shape: int, below: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, below, shape)


def op(function: Callable[..., Any], *arrays: Any, **keywords: Any) -> Work:
    """An op on the emulator, forward and backward with the gradients of all float arrays."""

    def work() -> None:
        nodes = [
            tg.Tensor(x, device="emulator", requires_grad=x.dtype.kind == "f")
            if isinstance(x, np.ndarray)
            else x
            for x in arrays
        ]
        y = function(*nodes, **keywords)
        if y.requires_grad:
            y.backward(numbers(*y.shape).astype(y.dtype))

    return work


def each(*works: Work) -> Work:
    def work() -> None:
        for one in works:
            one()

    return work


def steps(optimizer: Any, *settings: dict[str, Any]) -> Work:
    """Two steps of an optimiser for each of some settings: the first has no state yet."""

    def work() -> None:
        for chosen in settings:
            weights = [tg.Parameter(numbers(n), device="emulator") for n in (512, 256)]
            both = optimizer(weights, **chosen)
            for _ in range(2):
                for w in weights:
                    w.grad = numbers(w.size)
                both.step()

    return work


def losses(function: Callable[..., Any], low: float = -1, high: float = 1) -> Work:
    """A loss of each element; a sum in one block; a mean in two stages; without some gradients."""

    def of(n: int, reduction: str, *, y_too: bool = True) -> Work:
        x, y = numbers(n, low=low, high=high), numbers(n, low=low, high=high)[::-1].copy()
        if y_too:
            return op(function, x, y, reduction=reduction)
        return op(lambda x: function(x, tg.Tensor(y, device="emulator"), reduction=reduction), x)

    return each(of(512, "none"), of(256, "sum"), of(16384, "mean"), of(512, "sum", y_too=False))


def along_axes(function: Callable[..., Any], *more: Callable[..., Any]) -> Work:
    """Sets of one thread, a warp, a block, and in two stages."""
    sizes = [((512, 8), 1), ((16, 1024), 1), ((2, 8192), 1), ((1, 65536), 1), ((64, 256), 0)]
    return each(
        *[op(f, numbers(*shape), axis=axis) for f in (function, *more) for shape, axis in sizes]
    )


BROADCAST = ((64, 256), (256,))


def binary(function: Callable[..., Any], low: float = -1, high: float = 1) -> Work:
    """Operands of one shape, and one that is repeated."""
    return each(
        *[
            op(function, numbers(64, 256, low=low, high=high), numbers(*shape, low=low, high=high))
            for shape in BROADCAST
        ]
    )


def comparisons() -> Work:
    functions = (tg.less, tg.less_equal, tg.greater, tg.greater_equal, tg.equal, tg.not_equal)
    return each(*[op(f, numbers(512), numbers(512)) for f in functions])


def logic() -> Work:
    random = np.random.default_rng(0)
    x, y = (random.integers(-9, 9, 512) for _ in range(2))
    return each(*[op(f, x, y) for f in (tg.bitwise_and, tg.bitwise_or, tg.bitwise_xor)])


def whole_division() -> Work:
    x = integers(512, below=9).astype(F4) + F4(0.5)
    y = np.full(512, -2, F4)  # each rest has another sign, and no quotient is rounded
    quotient = op(lambda x, y: tg.floor_divide(x.detach(), y.detach()), x, y)
    return each(quotient, op(tg.remainder, x, y))


def clipping() -> None:
    for norm_type in (2.0, 3.0):
        weights = [tg.Parameter(numbers(n), device="emulator") for n in (512, 4096)]
        for w in weights:
            w.grad = 10 * numbers(*w.shape)
        tg.optim.clip_grad_norm(weights, 0.5, norm_type)
        tg.optim.clip_grad_value(weights, 0.001)


def cast() -> Work:
    x = numbers(512)
    return each(
        *[
            op(tg.astype, np.abs(x).astype(kind), dtype=target)
            for kind, target in ((F4, F8), (F4, np.float16), (np.float16, F4), (I8, F4))
        ]
    )


def embedding() -> Work:
    rows = integers(512, below=9)
    return op(lambda w: tg.embedding(tg.Tensor(rows, device="emulator"), w), numbers(9, 16))


def gather() -> Work:
    return each(
        *[
            op(
                lambda x, i=indices: tg.gather(x, 1, tg.Tensor(i, device="emulator")),
                numbers(256, 8),
            )
            for indices in (integers(256, 1, below=8), integers(256, 64, below=8))
        ]
    )


def positions() -> None:
    """What gather's backward asks for where indices are many."""
    indices = integers(512, below=8)
    Kernel(kernel_file("gather.cu"), "gather_positions")(
        2, 256, indices, Out(np.empty(512, I8)), 512, 8, 4, 1
    )


def stage_and_linear() -> None:
    """What a plan makes of the two; images without a gradient."""
    fused = StageAndLinear(Conv2dReluMaxPool2d((1, 1), (0, 0), (1, 1), 1, 2), has_bias=True)
    images = tg.Tensor(numbers(64, 1, 10, 10), device="emulator")
    shapes = (32, 1, 3, 3), (32,), (10, 32 * 16), (10,)
    parameters = [tg.Parameter(numbers(*shape), device="emulator") for shape in shapes]
    fused(images, *parameters).backward(numbers(64, 10))


def sums_of_parts() -> None:
    pairs = [(numbers(3, size), np.empty(size, F4)) for size in (300, 20, 5)]
    sum_parts(eager_memory((), EMULATOR), *pairs)


def sums_by_row() -> None:
    memory = eager_memory((True,), EMULATOR)
    for terms, rows in ((4096, 40), (70000, 40)):
        scatter.sum_by_row(memory, integers(terms, below=rows), numbers(terms, 2), rows, 2)


def made_by_place() -> None:
    for kind in (F4, F8, I8):
        spaced(EMULATOR, 512, kind(1), kind(2), -1, kind(9))
    band(EMULATOR, 32, 32, 0, 1)


def getitem() -> Work:
    rows = integers(64, below=6)
    return each(
        op(tg.getitem, numbers(6, 64), index=(rows,)),
        op(tg.getitem, numbers(6, 64), index=(slice(None), rows)),
    )


def strided() -> Work:
    return each(
        op(tg.transpose, numbers(8, 8, 16), axes=(1, 0, 2)),
        op(lambda x: x[..., ::-1], numbers(16, 64)),
    )


def batch_norm() -> Work:
    def plain(x: Any, training: bool) -> Any:
        stats = [tg.Tensor(np.full(x.shape[1], v, F4), device="emulator") for v in (0.5, 2)]
        return tg.batch_norm(x, None, None, *stats, training=training)

    works = []
    for shape in ((64, 2, 16, 16), (4096, 32)):
        for training in (True, False):
            x, w, b = numbers(*shape), numbers(shape[1]), numbers(shape[1])
            stats = numbers(shape[1]), numbers(shape[1], low=1, high=2)

            def full(x: Any, w: Any, b: Any, stats: Any = stats, training: bool = training) -> Any:
                return tg.batch_norm(
                    x,
                    w,
                    b,
                    *[tg.Tensor(s.copy(), device="emulator") for s in stats],
                    training=training,
                )

            works += [op(full, x, w, b), op(plain, x, training=training)]
    return each(*works)


def layer_norm() -> Work:
    return each(
        *[
            work
            for shape in ((16, 256), (4, 4096), (512, 64))
            for work in (
                op(
                    lambda x, w, b, n=shape[1]: tg.layer_norm(x, n, w, b),
                    numbers(*shape),
                    numbers(shape[1]),
                    numbers(shape[1]),
                ),
                op(lambda x, n=shape[1]: tg.layer_norm(x, n), numbers(*shape)),
            )
        ]
    )


def softmax() -> Work:
    return along_axes(tg.softmax, tg.log_softmax)


def labels(function: Callable[..., Any]) -> Work:
    """A loss of labels: of each, in one block, of a warp, a block or a thread for each row."""

    def of(*shape: int, reduction: str) -> Work:
        named = integers(shape[0], *shape[2:], below=shape[1])
        return op(
            lambda x: function(x, tg.Tensor(named, device="emulator"), reduction=reduction),
            numbers(*shape),
        )

    return each(
        of(64, 32, reduction="none"),
        of(256, 4, reduction="sum"),
        of(8, 1024, reduction="mean"),
        of(4, 8, 16, 16, reduction="mean"),
        of(16384, 2, reduction="mean"),
    )


def probabilities() -> Work:
    shapes = ((64, 32), (8, 1024), (4, 8, 16, 16))
    return each(
        *[op(tg.softmax_cross_entropy, numbers(*shape), numbers(*shape, low=0)) for shape in shapes]
    )


def products() -> Work:
    """Each tile of GEMM filled, transposed operands in backward; many products."""
    sizes = ((64, 64, 64), (256, 128, 256))
    works = [op(tg.matmul, numbers(m, k), numbers(k, n)) for m, k, n in sizes]
    return each(*works, op(tg.matmul, numbers(3, 16, 16), numbers(3, 16, 16)))


def convolution() -> tuple[np.ndarray, ...]:
    """Images, filters and biases: all filters of a block, and ReLU stops no window."""
    return numbers(8, 4, 18, 18), numbers(32, 4, 3, 3), numbers(32, low=40, high=50)


def linear() -> Work:
    return each(
        *[
            op(tg.linear, numbers(r, i), numbers(o, i), numbers(o))
            for r, i, o in ((64, 64, 64), (256, 128, 256), (16, 16, 16))
        ]
    )


def random_numbers() -> None:
    eager_memory((), EMULATOR).random((2048,))


WORK: dict[str, Work] = {
    "adadelta.cu": steps(tg.optim.Adadelta, {}, {"weight_decay": 0.1}),
    "adagrad.cu": steps(tg.optim.Adagrad, {}, {"weight_decay": 0.1}),
    "adam.cu": steps(tg.optim.Adam, {}, {"weight_decay": 0.1}, {"amsgrad": True}),
    "adamw.cu": steps(tg.optim.AdamW, {}, {"weight_decay": 0.1}),
    "arithmetic.cu": each(
        *map(binary, (tg.sub, tg.mul, tg.maximum, tg.minimum)),
        binary(tg.add),
        binary(tg.div, 1, 2),
        binary(tg.pow, 2.1, 2.9),
    ),
    "avg_pool2d.cu": op(tg.avg_pool2d, numbers(2, 4, 16, 16), kernel_size=2),
    "batch_norm.cu": batch_norm(),
    "binary_cross_entropy.cu": losses(tg.binary_cross_entropy, 0.1, 0.9),
    "binary_cross_entropy_with_logits.cu": losses(tg.binary_cross_entropy_with_logits),
    "cast.cu": cast(),
    "clipping.cu": clipping,
    "comparison.cu": comparisons(),
    "floor_divide.cu": whole_division(),
    "logic.cu": logic(),
    "concatenate.cu": op(lambda x, y: tg.concatenate((x, y), 1), numbers(8, 64), numbers(8, 64)),
    "conv2d.cu": each(
        op(tg.conv2d, numbers(1, 16, 6, 6), numbers(16, 16, 3, 3), numbers(16), algorithm="im2col"),
        op(
            tg.conv2d,
            numbers(2, 16, 18, 18),
            numbers(128, 16, 3, 3),
            numbers(128),
            algorithm="im2col",
        ),
    ),
    "conv2d_implicit.cu": op(
        tg.conv2d, numbers(2, 128, 8, 8), numbers(128, 128, 1, 1), numbers(128)
    ),
    "conv2d_relu_max_pool2d.cu": op(tg.conv2d_relu_max_pool2d, *convolution(), pool=2),
    "count_nonzero.cu": along_axes(tg.count_nonzero, tg.all),
    "cumsum.cu": along_axes(tg.cumsum),
    "adaptive_avg_pool2d.cu": op(tg.adaptive_avg_pool2d, numbers(4, 4, 32, 32), output_size=8),
    "attention.cu": each(
        *[
            op(
                tg.scaled_dot_product_attention,
                *[numbers(2, 64, 32) for _ in range(3)],
                numbers(64, 64),
                dropout_p=share,
            )
            for share in (0, 0.5)
        ]
    ),
    "embedding.cu": embedding(),
    "expand.cu": each(
        op(tg.expand, numbers(1, 256), shape=(64, 256)),
        op(tg.expand, numbers(8, 1), shape=(8, 4096)),
    ),
    "gather.cu": each(gather(), positions),
    "patterns.cu": made_by_place,
    "gelu.cu": each(op(tg.gelu, numbers(512)), op(tg.gelu, numbers(512), approximate="tanh")),
    "getitem.cu": getitem(),
    "global_avg_pool2d.cu": each(
        op(tg.global_avg_pool2d, numbers(4, 4, 32, 32)),
        op(tg.global_avg_pool2d, numbers(2, 2, 128, 64)),
    ),
    "half_squared_error.cu": losses(tg.half_squared_error),
    "huber_loss.cu": losses(tg.huber_loss),
    "im2col.cu": each(op(tg.im2col, numbers(2, 4, 16, 16), kernel_size=3)),
    "interpolate.cu": each(
        op(tg.nn.functional.interpolate, numbers(2, 2, 16, 16), scale_factor=2),
        op(
            tg.nn.functional.interpolate,
            numbers(2, 2, 16, 16),
            scale_factor=2,
            mode="bilinear",
        ),
    ),
    "l1_loss.cu": losses(tg.l1_loss),
    "layer_norm.cu": layer_norm(),
    "linear.cu": linear(),
    "linear_few_outputs.cu": op(tg.linear, numbers(64, 4096), numbers(10, 4096), numbers(10)),
    "logsumexp.cu": along_axes(tg.logsumexp),
    "losses.cu": each(losses(tg.mse_loss), labels(tg.nll_loss)),
    "matmul.cu": products(),
    "lion.cu": steps(tg.optim.Lion, {}, {"weight_decay": 0.1}),
    "max.cu": along_axes(tg.amax, tg.amin, tg.argmax, tg.argmin),
    "max_pool2d.cu": op(tg.max_pool2d, numbers(2, 4, 16, 16), kernel_size=2),
    "mean.cu": along_axes(tg.mean),
    "mse_loss.cu": losses(tg.mse_loss),
    "nll_loss.cu": labels(tg.nll_loss),
    "norm.cu": each(along_axes(tg.norm), along_axes(lambda x, axis: tg.norm(x, 3, axis))),
    "pad.cu": op(tg.pad, numbers(8, 62), pad_width=((0, 0), (1, 1)), value=0.5),
    "prelu.cu": each(
        op(tg.prelu, numbers(64, 2, 16, 16, high=0), numbers(2)),
        op(tg.prelu, numbers(256, 64, high=0), numbers(1)),
    ),
    "prod.cu": along_axes(tg.prod),
    "random.cu": random_numbers,
    "rmsprop.cu": steps(
        tg.optim.RMSprop, {}, {"weight_decay": 0.1}, {"centered": True, "momentum": 0.9}
    ),
    "rounding.cu": each(
        *[op(f, numbers(512)) for f in (tg.sign, tg.floor, tg.ceil, tg.trunc, tg.round)]
    ),
    "scatter.cu": sums_by_row,
    "sgd.cu": steps(
        tg.optim.SGD,
        {"lr": 0.1},
        {"lr": 0.1, "momentum": 0.9},
        {"lr": 0.1, "weight_decay": 0.1},
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    ),
    "single_channel_stage.cu": each(
        op(tg.conv2d_relu_max_pool2d, numbers(64, 1, 10, 10), numbers(32, 1, 3, 3), numbers(32)),
        stage_and_linear,
    ),
    "softmax.cu": softmax(),
    "sort.cu": op(tg.argsort, numbers(16, 64), axis=1),
    "softmax_cross_entropy.cu": each(
        labels(tg.softmax_cross_entropy),
        labels(partial(tg.cross_entropy, label_smoothing=0.1)),
        probabilities(),
    ),
    "strided.cu": strided(),
    "sums_of_parts.cu": sums_of_parts,
    "sum.cu": along_axes(tg.sum),
    "transpose.cu": op(tg.transpose, numbers(64, 64), axes=(1, 0)),
    "var.cu": along_axes(tg.var, tg.std),
    "where.cu": op(lambda a, b: tg.where(tg.greater(a, b), a, b), numbers(64, 256), numbers(256)),
}
