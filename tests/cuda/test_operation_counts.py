"""Each kernel states its floating-point operations, and the emulator counts as many.

The kernels run as ops launch them, on shapes that fill blocks and tiles, and on numbers that take
every branch that costs.  Counted must then be what is stated; no less ever, and no more than what
`SHARED_WORK` allows: what the threads of a group do to put their sums together, and what each
of them computes although the mathematics needs it once.

An op without a line in counted_work.py runs on the problems of its own tests, whose shapes fill no
tile.  Where its threads share nothing, the most that is counted among numbers of different signs is
what is stated.  Elsewhere it is no less, as a tile or a tree that is not full works on zeros, none
where none is stated, and in the fullest launch of a kernel at most half as much again.
"""

import math
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from unittest import mock

import numpy as np
import pytest

import tinygraph as tg
from tests.cuda.contract_work import contract_work
from tests.cuda.counted_work import WORK
from tinygraph.cuda import recording
from tinygraph.cuda.reading.instances import instances
from tinygraph.cuda.reading.operation_counts import operation_count, statements
from tinygraph.cuda.reading.preprocessor import preprocess
from tinygraph.cuda.reading.signature import kernels, parse
from tinygraph.cuda.reading.source import Source, kernel_file, kernel_files
from tinygraph.engine.running import Runner

FILES = sorted(path.name for path in kernel_files())
# Additions in each thread of a group that reduces a sum (reduce.cuh): five exchanges in the warp,
# then those over eight warps.
REDUCTION = {1: 0, 8: 3, 32: 5, 256: 12, 512: 20}
SCAN = {1: 0, 32: 6, 256: 14}


def group_of(at):
    """How many threads share a sum: a number of the launch, or a macro."""
    names = ("group", "ROW_THREADS", "PLANE_THREADS")
    return next((int(at[name]) for name in names if name in at), 256)


def each_thread(more, reductions=0):
    """`more` operations, and some sums reduced, in each thread of the launch."""
    return lambda at: at["threads"] * (more + reductions * REDUCTION[group_of(at)])


def each_row(more, reductions):
    """The same for each row of a group of ROW_THREADS, and at the end a sum over the block."""

    def beyond(at):
        group, block = (int(at.get(name, 256)) for name in ("ROW_THREADS", "BLOCK_THREADS"))
        turns = -(-at["rows"] * group // at["threads"])
        return at["threads"] * (turns * (more + reductions * REDUCTION[group]) + REDUCTION[block])

    return beyond


def each_turn(more):
    """`more` operations for each window in all turns but the first, of 9 taps each; and ten sums,
    taps and one more, that a block reduces."""

    def beyond(at):
        turns = -(-at["C"] * at["KH"] * at["KW"] // 9)
        return at["argmax"] * (turns - 1) * more(at) + at["threads"] * (51 + 3)

    return beyond


def each_group(at):
    """Ten sums for each of two filters of a group, which a warp adds up over the windows."""
    windows = at["argmax"] // (at["N"] * at["D"])
    blocks = at["threads"] // (-(-at["groups"] * windows // 32) * 32)
    return blocks * at["groups"] * 20 * 32 * (-(-windows // 32) + 5)


def each_tile(at):
    """Of each of a thread's rows in each tile of keys: three sums of eight threads, the old sums
    scaled; and at the end the sum inverted, and the logarithm."""
    rows, tiles = at["threads"] * int(at["TILE"]) // 16, -(-at["S"] // int(at["TILE"]))
    return rows * (tiles * (7 + int(at["HEAD"]) // 8) + 1) + 2 * at["lse"]


# By file and kernel, what may be counted beyond the statement.
SHARED_WORK = {
    # an output that a pixel asks in vain whether it reads it
    "interpolate.cu: interpolate_backward": lambda at: 4 * at["gy"] + 3 * at["gx"],
    "attention.cu: attention_forward": each_tile,
    # normalization.cuh: three sums; 11 operations for the moments of a thread, a group's are 10
    "batch_norm.cu: batch_moments": each_thread(11, 3),
    "layer_norm.cu: layer_norm_forward": each_thread(21, 3),
    "layer_norm.cu: layer_norm_backward": each_thread(10, 2),
    "layer_norm.cu: parameter_sums": each_thread(20),  # columns, over eight warps
    "layer_norm.cu: parameter_gradients": each_thread(10),
    "batch_norm.cu: batch_statistics": each_thread(11),
    "batch_norm.cu: gradient_sums": each_thread(0, 2),
    "batch_norm.cu: gradient_means": each_thread(10),
    "batch_norm.cu: normalize": each_thread(1),
    "batch_norm.cu: normalize_backward": each_thread(1),
    # broadcast.cuh: runs added up, and the tree over the lanes
    "arithmetic.cu: binary_backward": each_thread(2),
    "expand.cu: expand_backward": each_thread(2),
    "where.cu: where_backward": each_thread(2),
    # gcc rounds float32 to whole numbers by adding and subtracting 2**23
    "rounding.cu: unary_forward": lambda at: 2 * at["n"],
    # elementwise_loss.cuh: losses are summed up in vain where each is asked for
    "binary_cross_entropy.cu: binary_cross_entropy_forward": each_thread(1, 1),
    "binary_cross_entropy_with_logits.cu: binary_cross_entropy_with_logits_forward": each_thread(
        1, 1
    ),
    "half_squared_error.cu: half_squared_error_forward": each_thread(1, 1),
    "huber_loss.cu: huber_loss_forward": each_thread(1, 1),
    "l1_loss.cu: l1_loss_forward": each_thread(1, 1),
    "mse_loss.cu: mse_loss_forward": each_thread(1, 1),
    "losses.cu: loss_finish": each_thread(0, 1),
    "nll_loss.cu: nll_loss_sum": each_thread(0, 1),
    "losses.cu: sum_of_partials": each_thread(0, 1),
    "clipping.cu: gradient_squares": each_thread(0, 1),
    "clipping.cu: gradient_powers": each_thread(0, 1),
    "clipping.cu: norm_finish": each_thread(0, 1),
    # trees in shared memory
    "linear.cu: column_sums": each_thread(1),
    "linear_few_outputs.cu: linear_few_outputs": lambda at: at["threads"] * 20 * int(at["OUTPUTS"]),
    "conv2d.cu: conv2d_bias_gradient": each_thread(4),
    # axes.cuh: what belongs to a set is computed in each thread of its group
    "sum.cu: sum_forward": each_thread(0, 1),
    "mean.cu: mean_forward": each_thread(0, 1),
    "mean.cu: mean_backward": each_thread(1),
    "var.cu: var_forward": each_thread(4, 4),
    "var.cu: var_backward": each_thread(3),
    "max.cu: extreme_backward": each_thread(1),
    "norm.cu: norm_forward": each_thread(0, 1),
    "norm.cu: norm_backward": each_thread(2),
    "prelu.cu: prelu_backward": each_thread(0, 1),
    "prod.cu: prod_forward": each_thread(0, 2),
    "prod.cu: prod_backward": each_thread(1),
    "logsumexp.cu: logsumexp_forward": each_thread(2, 1),
    "softmax.cu: softmax_forward": each_thread(3, 1),
    "softmax.cu: softmax_backward": each_thread(0, 1),
    "softmax.cu: product_sums": each_thread(0, 1),
    "cumsum.cu: slice_sums": each_thread(0, 1),
    "cumsum.cu: cumulative_sums": lambda at: at["x"] * SCAN[group_of(at)] + at["threads"],
    # long_sum.cuh: a sum of 64 is handed on, and at the end three are added
    "adaptive_avg_pool2d.cu: adaptive_avg_pool2d_forward": each_thread(3),
    "adaptive_avg_pool2d.cu: adaptive_avg_pool2d_backward": each_thread(3),
    "avg_pool2d.cu: avg_pool2d_forward": each_thread(3),
    "avg_pool2d.cu: avg_pool2d_backward": each_thread(3),
    "getitem.cu: getitem_backward": each_thread(3),
    "scatter.cu: sum_rows": lambda at: at["terms"] // 63 + 3 * at["sums"],
    "softmax_cross_entropy.cu: labels_forward": each_row(6, 2),
    "softmax_cross_entropy.cu: labels_backward": each_thread(2),
    "softmax_cross_entropy.cu: probabilities_forward": each_row(4, 3),
    "softmax_cross_entropy.cu: probabilities_backward": each_thread(3),
    # what each turn over the taps computes again, and sums that a block reduces
    "conv2d_relu_max_pool2d.cu: conv2d_relu_max_pool2d_backward": each_turn(lambda at: 1),
    "single_channel_stage.cu: single_channel_stage_backward": each_group,
    # each block adds up gy beside
    "single_channel_stage.cu: single_channel_stage_linear_backward": (
        lambda at: each_group(at) + at["threads"] // 32 * at["gy"]
    ),
    # runs added up
    "global_avg_pool2d.cu: global_avg_pool2d_forward": each_thread(1, 1),
    # a conversion counts as none: numbers below 2^-14 are scaled, and 2^52 is added and taken off
    "cast.cu: cast_from_half": lambda at: at["n"],
    "cast.cu: cast_to_half": lambda at: 3 * at["n"],
}


@dataclass
class Counted:
    """A launch: what the file states, what the emulator counted, what it may count beyond."""

    kernel: str
    stated: int
    counted: int
    beyond: float
    threads: int = 1

    @property
    def agrees(self):
        return self.stated <= self.counted <= self.stated + self.beyond


def counted_in(file, work):
    """What is counted in each launch of a file's kernels while `work` runs."""
    with Profiled(file) as profiled:
        work()
    return profiled.found


class Profiled(Runner):
    """Profiles the launches of a file's kernels under the checker, in their place."""

    def __init__(self, file):
        self.file, self.found = file, []

    def launch(self, launch):
        kernel = launch.kernel
        if kernel.source.path.name != self.file:
            self.below.launch(launch)
            return
        with recording(execute=False) as launches:
            launch.bound(*launch.given)
        (one,) = launches
        extents = launch.grid, launch.block
        report = kernel.check(*extents, *launch.args, shared=launch.shared, profile=True)
        assert report.ok, report.text()
        at = {use.parameter: use.array.size for use in one.arrays}
        at |= dict(kernel.source.defines) | one.scalars
        at["threads"] = int(np.prod(one.grid) * np.prod(one.block))
        beyond = SHARED_WORK.get(f"{self.file}: {kernel.signature.function}", lambda at: 0)(at)
        counts = one.operations, report.operations, beyond, at["threads"]
        self.found.append(Counted(kernel.name, *counts))


ELEMENT_TYPE = re.compile(r"\b(unsigned |signed )?(float|double|bool|char|short|int|long long)\b")


def formula(instance):
    """The name of an instance whatever its numbers are: binary_forward<T, Add>."""
    return ELEMENT_TYPE.sub("T", instance).replace(" ", "")


SHARING = re.compile(r"__shared__|__shfl\w*|__reduce\w*|__sync\w+|atomic\w+")


def counted_in_contracts(file):
    """What an op counts on the problems of its tests: of launches that are alike, the most."""
    shares = any(map(SHARING.fullmatch, preprocess(Source.read(kernel_file(file)))))
    found = []
    for alike in contract_work(file):
        for launches in zip(*[counted_in(file, work) for work in alike], strict=True):
            assert len({(launch.kernel, launch.stated) for launch in launches}) == 1
            found.append(max(launches, key=lambda launch: launch.counted))
    return with_sums_shared(file, found) if shares else found


FULLEST = 1.5  # counted for each stated, in the launch whose threads have most to do


def with_sums_shared(file, found):
    """What kernels without an allowance may count beyond, where threads share sums.

    The work of sharing goes with the number of threads, what is stated with that of the elements.
    So the fullest launch counts little beyond, and a statement that is too low shows in it.
    """
    by_kernel = defaultdict(list)
    for launch in found:
        function = launch.kernel.partition("<")[0]
        if launch.stated and f"{file}: {function}" not in SHARED_WORK:
            by_kernel[launch.kernel].append(launch)
    for launches in by_kernel.values():
        fullest = min(launch.counted / launch.stated for launch in launches)
        for launch in launches:
            launch.beyond = math.inf if fullest <= FULLEST else (FULLEST - 1) * launch.stated
    return found


@pytest.mark.parametrize("file", FILES)
def test_every_kernel_of_ours_states_its_operations(file):
    stated = {statement.kernel for statement in statements(Source.read(kernel_file(file)))}
    assert stated == {kernel.name for kernel in kernels(Source.read(kernel_file(file)))}
    for instance in instances(kernel_file(file)):
        source = Source.read(instance.path, instance.defines)
        names = [parameter.name for parameter in parse(source, instance.name).parameters]
        assert operation_count(source, instance.name, dict.fromkeys(names, 1)) is not None


@pytest.mark.parametrize("file", FILES)
@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.usefixtures("launched_once")
def test_the_emulator_counts_what_is_stated(file):
    found = counted_in(file, WORK[file]) if file in WORK else counted_in_contracts(file)
    wrong = [launch for launch in found if not launch.agrees]
    assert not wrong, (
        f"{file} states otherwise than is counted. Way out: correct `operations of`; where threads "
        f"share sums, a large problem in the test file, or an allowance in SHARED_WORK: {wrong}"
    )
    launched = {launch.kernel for launch in found}
    assert {name.partition("<")[0] for name in launched} == {
        kernel.name for kernel in kernels(Source.read(kernel_file(file)))
    }
    # A statement is of a formula: each must be counted, with numbers of one type at least.
    untried = set(map(formula, (i.name for i in instances(kernel_file(file)))))
    untried -= set(map(formula, launched))
    assert not untried, (
        f"{file}: what {sorted(untried)} state was not counted. Way out: launch them in "
        "tests/cuda/counted_work.py, or leave the file out there: then problems of its own tests "
        "are taken"
    )


@pytest.mark.second
def test_allowances_are_for_kernels_that_are_there():
    there = {f"{file}: {k.name}" for file in FILES for k in kernels(Source.read(kernel_file(file)))}
    assert set(SHARED_WORK) <= there


@pytest.mark.second
@pytest.mark.parametrize("file, function", [("var.cu", "var_forward"), ("softmax.cu", "")])
def test_a_statement_that_is_too_low_is_noticed_where_threads_share_sums(file, function):
    """Without an allowance for the kernel, as it is with a new one."""
    count = counted_in

    def halved(file, work):
        found = count(file, work)
        for launch in found:
            launch.stated //= 2
        return found

    with mock.patch.dict(SHARED_WORK, clear=True):
        right = counted_in_contracts(file)
        assert all(launch.agrees for launch in right if launch.kernel.startswith(function))
        with mock.patch.object(sys.modules[__name__], "counted_in", halved):
            wrong = counted_in_contracts(file)
    for kernel in {launch.kernel for launch in right if launch.stated > 1}:
        assert not all(launch.agrees for launch in wrong if launch.kernel == kernel), kernel


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


# ---- issued operations ---------------------------------------------------------------------------


def test_issued_operations_are_stated_beside():
    text = TEXT + "// issued operations of k<float>: ceil_div(n, 16) * 16"
    source = Source.read(text)
    assert operation_count(source, "k<float, Mul>", {"n": 10, "x": 1}, issued=True) == 16
    assert operation_count(source, "k<float, Mul>", {"n": 10, "x": 1}) == 50
    assert operation_count(source, "k<double, Mul>", {"n": 10, "x": 1}, issued=True) == 50
    assert operation_count(source, "j<float>", {"n": 10, "x": 1}, issued=True) is None
    assert len(statements(source)) == 3 and len(statements(source, issued=True)) == 1


@pytest.mark.parametrize("shape", [(10, 70), (64, 10), (130, 5), (200, 130)])
def test_tiles_beyond_an_edge_are_issued(shape):
    """A product on tiles that reach over its edges: what the emulator counts, edges included."""
    (rows, columns), k = shape, 64
    a, b = (np.ones(s, np.float32) for s in ((rows, k), (k, columns)))
    weight, bias = np.ones((columns, k), np.float32), np.ones(columns, np.float32)
    for file, apply in (
        ("matmul.cu", lambda: tg.Tensor(a, device="emulator") @ tg.Tensor(b, device="emulator")),
        (
            "linear.cu",
            lambda: tg.linear(*(tg.Tensor(x, device="emulator") for x in (a, weight, bias))),
        ),
    ):
        with tg.cuda.recording(execute=False) as launches:
            apply()
        product = next(one for one in launches if one.kernel.source.path.name == file)
        counted = counted_in(file, apply)[0].counted
        tile = int(dict(product.kernel.source.defines)["GEMM_TILE"])
        assert counted == pytest.approx(product.issued_operations, rel=0.15), (file, tile)
        assert product.operations <= product.issued_operations


@pytest.mark.second
@pytest.mark.parametrize(
    "images, filters, settings",
    [
        ((2, 1, 9, 9), (5, 1, 3, 3), {}),  # 5 of 32 filters, 9 of 16 taps
        ((3, 4, 6, 5), (36, 4, 3, 3), {"padding": 1}),  # 90 of 128 outputs
        ((1, 4, 7, 8), (6, 2, 2, 2), {"groups": 2, "stride": 2}),
        ((1, 3, 5, 5), (70, 3, 1, 1), {"algorithm": "naive_implicit"}),  # 70 of 128 filters
        ((1, 30, 3, 3), (2, 30, 3, 3), {"padding": 1}),  # two chunks of the sum forward
    ],
)
def test_a_convolution_issues_what_reaches_beyond_its_edges(images, filters, settings):
    """In all three passes, with the rest of the last step of a sum."""

    def apply():
        x, w = (
            tg.Tensor(np.ones(shape, np.float32), requires_grad=True, device="emulator")
            for shape in (images, filters)
        )
        tg.sum(tg.conv2d(x, w, **settings)).backward()

    file = "conv2d_implicit.cu"
    counted = counted_in(file, apply)
    with tg.cuda.recording() as launches:
        apply()
    made = [one for one in launches if one.kernel.source.path.name == file]
    assert len(made) == len(counted) == 3
    for launch, found in zip(made, counted, strict=True):
        assert launch.kernel.name == found.kernel
        assert found.counted == pytest.approx(launch.issued_operations, rel=0.02), launch.kernel
        assert launch.operations < launch.issued_operations
        taps = np.prod(filters[1:]) * filters[0] * images[0]
        assert launch.operations == 2 * taps * launch.scalars["OH"] * launch.scalars["OW"]
