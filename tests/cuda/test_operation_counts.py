"""Each kernel states its floating-point operations, and the emulator counts as many.

The kernels run as ops launch them, on shapes that fill blocks and tiles, and on numbers that take
every branch that costs.  Counted must then be what is stated; no less ever, and no more than what
`SHARED_WORK` allows: what the threads of a group do to put their sums together, and what each
of them computes although the mathematics needs it once.

An op without a line in counted_work.py runs on the problems of its own tests, whose shapes fill no
tile.  Where its threads share nothing, the most that is counted among numbers of different signs is
what is stated.  Elsewhere it is no less, as a tile or a tree that is not full works on zeros, and
none where none is stated.
"""

import math
import re
from collections import defaultdict
from dataclasses import dataclass
from unittest import mock

import numpy as np
import pytest

from tests.cuda.contract_work import contract_work
from tests.cuda.counted_work import WORK
from tinygraph.cuda import Kernel, recording
from tinygraph.cuda.reading.instances import instances
from tinygraph.cuda.reading.operation_counts import operation_count, statements
from tinygraph.cuda.reading.preprocessor import preprocess
from tinygraph.cuda.reading.signature import kernels, parse
from tinygraph.cuda.reading.source import KERNELS, Source

FILES = sorted(path.name for path in KERNELS.glob("*.cu"))
# Additions in each thread of a group that reduces a sum (reduce.cuh): five exchanges in the warp,
# then those over eight warps.
REDUCTION = {1: 0, 32: 5, 256: 12}
SCAN = {1: 0, 32: 6, 256: 14}


def group_of(at):
    """How many threads share a sum: a number of the launch, or a macro."""
    names = ("group", "ROW_THREADS", "PLANE_THREADS")
    return next((int(at[name]) for name in names if name in at), 256)


def each_thread(more, reductions=0):
    """`more` operations, and some sums reduced, in each thread of the launch."""
    return lambda at: at["threads"] * (more + reductions * REDUCTION[group_of(at)])


def each_turn(more):
    """`more` operations for each window in all turns but the first, of 9 taps each; and ten sums,
    taps and one more, that a block reduces."""

    def beyond(at):
        turns = -(-at["C"] * at["KH"] * at["KW"] // 9)
        return at["argmax"] * (turns - 1) * more(at) + at["threads"] * 51

    return beyond


# By kernel, what may be counted beyond the statement.
SHARED_WORK = {
    # normalization.cuh: three sums; 11 operations for the moments of a thread, a group's are 10
    "batch_moments": each_thread(11, 3),
    "layer_norm_forward": each_thread(21, 3),
    "layer_norm_backward": each_thread(4, 2),
    "parameter_sums": each_thread(14),  # columns, over eight warps
    "parameter_gradients": each_thread(10),
    "batch_statistics": each_thread(11),
    "gradient_sums": each_thread(0, 2),
    "gradient_means": each_thread(10),
    "normalize": each_thread(1),
    "normalize_backward": each_thread(1),
    # broadcast.cuh: runs added up, and the tree over the lanes
    "binary_backward": each_thread(2),
    "expand_backward": each_thread(2),
    "where_backward": each_thread(2),
    # elementwise_loss.cuh: losses are summed up in vain where each is asked for
    "binary_cross_entropy_forward": each_thread(1, 1),
    "binary_cross_entropy_with_logits_forward": each_thread(1, 1),
    "half_squared_error_forward": each_thread(1, 1),
    "huber_loss_forward": each_thread(1, 1),
    "l1_loss_forward": each_thread(1, 1),
    "mse_loss_forward": each_thread(1, 1),
    "loss_finish": each_thread(0, 1),
    "nll_loss_sum": each_thread(0, 1),
    "sum_of_rows": each_thread(0, 1),
    "sum_of_partials": each_thread(0, 1),
    "gradient_powers": each_thread(0, 1),
    "norm_finish": each_thread(0, 1),
    # trees in shared memory
    "column_sums": each_thread(1),
    "conv2d_bias_gradient": each_thread(1),
    # axes.cuh: what belongs to a set is computed in each thread of its group
    "sum_forward": each_thread(0, 1),
    "mean_forward": each_thread(0, 1),
    "mean_backward": each_thread(1),
    "var_forward": each_thread(4, 4),
    "var_backward": each_thread(1),
    "logsumexp_forward": each_thread(2, 1),
    "softmax_forward": each_thread(3, 1),
    "softmax_backward": each_thread(0, 1),
    "product_sums": each_thread(0, 1),
    "slice_sums": each_thread(0, 1),
    "cumulative_sums": lambda at: at["x"] * SCAN[group_of(at)],
    "labels_forward": each_thread(0, 1),
    "labels_backward": each_thread(2),
    "probabilities_forward": each_thread(1, 3),
    "probabilities_backward": each_thread(3),
    # what each turn over the taps computes again, and sums that a block reduces
    "conv2d_relu_max_pool2d_backward": each_turn(lambda at: 1),
    # runs added up
    "global_avg_pool2d_forward": each_thread(1, 1),
    # a conversion counts as none: numbers below 2^-14 are scaled, and 2^52 is added and taken off
    "cast_from_half": lambda at: at["n"],
    "cast_to_half": lambda at: 3 * at["n"],
}


@dataclass
class Counted:
    """A launch: what the file states, what the emulator counted, what it may count beyond."""

    kernel: str
    stated: int
    counted: int
    beyond: float

    @property
    def agrees(self):
        return self.stated <= self.counted <= self.stated + self.beyond


def counted_in(file, work):
    """What is counted in each launch of a file's kernels while `work` runs."""
    found = []

    def profiled(kernel, grid, block, *args, shared=0):
        if kernel.source.path.name != file:
            return launch(kernel, grid, block, *args, shared=shared)
        with recording(execute=False) as launches:
            launch(kernel, grid, block, *args, shared=shared)
        (one,) = launches
        report = kernel.check(grid, block, *args, shared=shared, profile=True)
        assert report.ok, report.text()
        at = {use.parameter: use.array.size for use in one.arrays}
        at |= dict(kernel.source.defines) | one.scalars
        at["threads"] = int(np.prod(one.grid) * np.prod(one.block))
        beyond = SHARED_WORK.get(kernel.signature.function, lambda at: 0)(at)
        found.append(Counted(kernel.name, one.operations, report.operations, beyond))
        return None

    launch = Kernel.__call__
    with mock.patch.object(Kernel, "__call__", profiled):
        work()
    return found


SHARING = re.compile(r"__shared__|__shfl\w*|__reduce\w*|__sync\w+|atomic\w+")


def counted_in_contracts(file):
    """What an op counts on the problems of its tests: of launches that are alike, the most."""
    shares = any(map(SHARING.fullmatch, preprocess(Source.read(KERNELS / file))))
    found = []
    for alike in contract_work(file):
        for launches in zip(*[counted_in(file, work) for work in alike], strict=True):
            assert len({(launch.kernel, launch.stated) for launch in launches}) == 1
            found.append(max(launches, key=lambda launch: launch.counted))
            function = found[-1].kernel.partition("<")[0]
            if shares and found[-1].stated and function not in SHARED_WORK:
                found[-1].beyond = math.inf
    return found


@pytest.mark.parametrize("file", FILES)
def test_every_kernel_of_ours_states_its_operations(file):
    stated = {statement.kernel for statement in statements(Source.read(KERNELS / file))}
    assert stated == {kernel.name for kernel in kernels(Source.read(KERNELS / file))}
    for instance in instances(KERNELS / file):
        source = Source.read(instance.path, instance.defines)
        names = [parameter.name for parameter in parse(source, instance.name).parameters]
        assert operation_count(source, instance.name, dict.fromkeys(names, 1)) is not None


@pytest.mark.parametrize("file", FILES)
def test_the_emulator_counts_what_is_stated(file):
    found = counted_in(file, WORK[file]) if file in WORK else counted_in_contracts(file)
    wrong = [launch for launch in found if not launch.agrees]
    assert not wrong
    launched = defaultdict(list)
    for launch in found:
        launched[launch.kernel.partition("<")[0]].append(launch)
    assert set(launched) == {kernel.name for kernel in kernels(Source.read(KERNELS / file))}


# ---- how statements are read ---------------------------------------------------------------------

TEXT = """
/* operations of k<T, Add|Sub>: 2 * n
 * operations of k<T, Power<2>>: (n if x else 3
 *                                + 4)
 * operations of k:
 *     (5 * n)  # less where a number is 0 */
template <typename T, typename Kind> __global__ void k(const T* x, int n);
"""


@pytest.mark.parametrize(
    "kernel, x, expected",
    [
        ("k<float, Add>", 1, 20),
        ("k< double , Sub >", 1, 20),
        ("k<float, Mul>", 1, 50),
        ("k<float, Power<2>>", 0, 7),
        ("k<float, Power<2>>", 1, 10),
        ("k<float>", 1, 50),
        ("k<int, Add>", 1, 0),
        ("k<unsigned long long, Mul>", 1, 0),
        ("j<float>", 1, None),
    ],
)
def test_the_first_statement_that_fits_holds(kernel, x, expected):
    assert operation_count(Source.read(TEXT), kernel, {"n": 10, "x": x}) == expected
