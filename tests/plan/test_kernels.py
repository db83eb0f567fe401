"""Plans on the emulator: the kernels' numbers, in buffers and in an order that are checked."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

import tinygraph as tg
from tests.plan.networks import NETWORKS, F, images, small_network, step_of
from tinygraph import nn
from tinygraph.cuda.devices import EmulatorDevice
from tinygraph.cuda.kernel import Kernel
from tinygraph.ops.products import gemm
from tinygraph.plan import buffers
from tinygraph.plan.buffers import KERNEL_ALIGNMENT
from tinygraph.testing import strategies as ts

IMAGES, LABELS = images(0, 5)


def seed_network(device="emulator"):
    tg.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 3)
    ).to(device)


def plans_of(compiled):
    """Those that nobody is using."""
    return [plan for made in compiled._found for plan in made.plans]


def trained(make, device, compiled):
    """Losses, parameters and buffers after steps with dropout, a smaller batch, a schedule."""
    tg.manual_seed(3)
    model = make().to(device)
    rule = tg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = tg.optim.StepLR(rule, step_size=2, gamma=0.5)
    step = step_of(model, rule)
    run = tg.compile(step) if compiled else step
    losses = []
    for i, n in enumerate((18, 18, 17, 18)):
        x, y = (tg.Tensor(a, device=device) for a in images(i, n))
        losses.append(run(x, y).item())
        schedule.step()
    return losses, model.state_dict(), run


@pytest.mark.second
@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_a_training_is_that_of_the_graph_and_of_the_cpus_plan(make):
    """Running statistics, and weights that are used twice, among them."""
    losses, state, run = trained(make, "emulator", True)
    assert len(plans_of(run)) == 2 and not run.reasons
    for device, compiled in (("emulator", False), ("cpu", True)):
        want_losses, want, _ = trained(make, device, compiled)
        np.testing.assert_allclose(losses, want_losses, rtol=1e-5)
        for name, array in want.items():
            np.testing.assert_allclose(state[name], array, rtol=1e-3, atol=1e-5, err_msg=name)


@pytest.mark.second
@settings(max_examples=10)
@given(ts.graphs())
def test_random_graphs(graph):
    """Backward inside, three times: buffers are made, laid out, used again."""
    leaves = [
        [tg.Tensor(x.value, requires_grad=x.requires_grad, device="emulator") for x in nodes]
        for nodes in (graph.nodes(), graph.nodes())
    ]

    def step(leaves):
        outputs = graph.build(leaves)
        loss = sum([tg.sum(y * y) for y in outputs], start=np.zeros(()))
        loss.backward()
        return loss, outputs

    planned = tg.compile(lambda: step(leaves[1]))
    for _ in range(3):
        (want, them), (got, ours) = step(leaves[0]), planned()
        for a, b in zip((got, *ours), (want, *them), strict=True):
            np.testing.assert_allclose(a.value, b.value, rtol=1e-12)
    assert not planned.reasons
    for x, y in zip(*leaves, strict=True):
        assert (x.grad is None) == (y.grad is None)
        if x.grad is not None:
            np.testing.assert_allclose(y.grad, x.grad, rtol=1e-10, atol=1e-12)


@pytest.mark.second
def test_the_checker_finds_nothing_in_a_planned_step(monkeypatch):
    reports = []
    check = Kernel._report

    def spy(*args, **options):
        reports.append(check(*args, **options))
        return reports[-1]

    monkeypatch.setattr(Kernel, "_report", spy)
    model = seed_network()
    learn = step_of(model, tg.optim.SGD(model.parameters(), lr=0.1))

    def step(x, y):
        loss = learn(x, y)
        tg.optim.clip_grad_value(list(model.parameters()), 1.0)
        return loss

    run = tg.compile(step)
    with tg.cuda.checking():
        losses = [run(IMAGES, LABELS).item() for _ in range(3)]
    assert losses[2] < losses[0] and all(report.ok for report in reports)
    launched = [report.kernel.split("<")[0] for report in reports]
    assert set(launched) >= {
        "conv2d_relu_max_pool2d_forward",
        "linear_forward",
        "sgd_update",
        "clip_gradient",
    }
    each = len(launched) // 3
    assert launched == launched[:each] * 3


class Accumulates(tg.Op):
    """x added to what stands in a buffer."""

    KERNEL = tg.cuda.Kernel(
        """__global__ void add_to(float* y, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}""",
        "add_to",
    )

    def __init__(self, request):
        self.request = request

    def forward_kernel(self, mem, x):
        y = getattr(mem, self.request)(x.shape, x.dtype)
        self.KERNEL(1, 32, y.reshape(-1), x, x.size)
        return y, None


def test_reading_what_the_last_run_left_in_a_buffer_is_found():
    """To the checker an array of a plan is as fresh at every run as a new one; zeros are zeros."""
    x = tg.Tensor(np.ones((2, 3), F), device="emulator")
    zeros = tg.compile(lambda x: Accumulates("zeros")(x))
    empty = tg.compile(lambda x: Accumulates("empty")(x))
    for _ in range(2):
        empty(x)
    with tg.cuda.checking():
        for _ in range(3):
            np.testing.assert_array_equal(zeros(x).value, x.value)
        with pytest.raises(tg.errors.KernelLaunchError, match="uninitialized"):
            empty(x)


# ---- buffers and order ---------------------------------------------------------------------------


def dataflow(launches):
    """For each launch its kernel and, for each array that it reads, which launches wrote it."""
    writers, found = {}, []
    for number, launch in enumerate(launches):
        ranges = [range(*_bytes(use)) for use in launch.arrays]
        sources = [
            sorted({writers.get(at, -1) for at in cells})
            for use, cells in zip(launch.arrays, ranges, strict=True)
            if use.reads and use.bytes  # an empty array is a null pointer
        ]
        for use, cells in zip(launch.arrays, ranges, strict=True):
            if use.writes:
                writers.update(dict.fromkeys(cells, number))
        found.append((launch.kernel.name, sources))
    return found


def _bytes(use):
    first = use.array.__array_interface__["data"][0]
    return first, first + use.bytes


def recorded(run, *arguments):
    with tg.cuda.recording(execute=False) as launches:
        run(*arguments)
    return launches


def reads_the_same(alone, shared):
    """But for sums of gradients of leaves: in the first run their first term is a copy, which is no
    launch (-1), later it is written where it leaves."""
    (name, first), (again, later) = alone, shared
    sums = name == "binary_forward<float, Add>"
    same = all(a == b or (sums and a == [-1]) for a, b in zip(first, later, strict=True))
    return name == again and same


@pytest.mark.parametrize("make", [small_network, NETWORKS["residual"]])
def test_every_launch_reads_what_it_reads_without_an_arena(make):
    """The first run has an array for each request; all others share places."""
    run = tg.compile(step_of(make().to("emulator")))
    alone, shared = (dataflow(recorded(run, IMAGES, LABELS)) for _ in range(2))
    (plan,) = plans_of(run)
    assert len(alone) > 8 and all(map(reads_the_same, alone, shared))
    arena, requested = plan.bytes_of_buffers()
    assert arena < 0.8 * requested


def wrong_gradients(monkeypatch, layout):
    """Whether loss or gradients of the seed network differ from the graph's, with that layout."""
    model = seed_network()
    step = step_of(model)

    def results(run):
        loss = run(tg.Tensor(IMAGES, device="emulator"), LABELS).item()
        return [loss, *[p.grad.copy() for p in model.parameters()]]

    monkeypatch.setattr(buffers, "lay_out", layout)
    run = tg.compile(step)
    results(run)
    return not all(
        np.allclose(a, b, rtol=1e-4, atol=1e-6)
        for a, b in zip(results(run), results(step), strict=True)
    )


def lasting(spans):
    """The buffers that are still in use when the next op runs, but for the loss."""
    return [i for i, (first, last, size) in enumerate(spans) if first < last and size > 4]


def overlapping(spans):
    """Pairs of them that are in use at one time."""
    return [
        (i, j)
        for i, j in itertools.combinations(lasting(spans), 2)
        if spans[i][0] <= spans[j][1] and spans[j][0] <= spans[i][1]
    ]


@pytest.mark.second
def test_a_mistake_in_the_layout_is_seen(monkeypatch):
    """One buffer in the place of another one; and a place that is a block too short."""
    whole, spans = buffers.lay_out, []

    def right(given, alignment):
        spans[:] = given
        return whole(given, alignment)

    def on_another(given, alignment):
        offsets, total = whole(given, alignment)
        offsets[j] = offsets[i]
        return offsets, max(total, offsets[i] + given[j][2])

    def too_short(given, alignment):
        cut = list(given)
        cut[i] = (*cut[i][:2], max(0, cut[i][2] - KERNEL_ALIGNMENT))
        return whole(cut, alignment)

    assert not wrong_gradients(monkeypatch, right)
    assert len(overlapping(spans)) > 8 and len(lasting(spans)) > 5
    for i, j in overlapping(spans):
        assert wrong_gradients(monkeypatch, on_another), (spans[i], spans[j])
    for i in lasting(spans):
        assert wrong_gradients(monkeypatch, too_short), spans[i]


class Spread(nn.Module):
    """Values and gradients that are no contiguous arrays: repeated, and of a sum."""

    def __init__(self):
        self.weight = tg.Parameter(np.ones((3, 8), F))

    def forward(self, x):
        rows = tg.sum(x * x, axis=(1, 2))  # (N, W)
        return tg.linear(tg.expand(rows[:, :1], (-1, 8)) * rows, self.weight)


@pytest.mark.parametrize("make", [small_network, Spread])
def test_no_array_is_made_through_mem_in_the_steady_state(monkeypatch, make):
    model = make().to("emulator")
    run = tg.compile(step_of(model))
    x, y = (tg.Tensor(a, device="emulator") for a in (IMAGES, LABELS))
    for _ in range(2):
        run(x, y)
    made = []

    def spy_on(name):
        whole = getattr(EmulatorDevice, name)

        def spy(self, array, *rest):
            got = whole(self, array, *rest)
            if got is not array and got.size:
                made.append((name, got.shape))
            return got

        monkeypatch.setattr(EmulatorDevice, name, spy)

    for name in ("empty", "zeros", "copy", "contiguous"):
        spy_on(name)
    run(x, y)
    leaving = [(), *[p.shape for p in model.parameters()]]  # the loss, and gradients
    assert sorted(shape for _, shape in made) == sorted(leaving)
    assert {name for name, shape in made if shape} <= {"empty", "copy"}


@pytest.mark.second
def test_another_precision_takes_other_buffers(monkeypatch, request):
    """Tensor cores have larger tiles, so that a sum is in chunks: its parts want memory."""
    monkeypatch.setattr(gemm, "ENOUGH_BLOCKS", 4)
    monkeypatch.setattr(gemm, "SHORTEST_SUM", 16)
    gemm._product.cache_clear()
    request.addfinalizer(gemm._product.cache_clear)
    rng = np.random.default_rng(0)
    x, w = rng.integers(-4, 5, (65, 64)).astype(F), rng.integers(-4, 5, (65, 64)).astype(F)
    w = tg.Parameter(w, device="emulator")
    rule = tg.optim.SGD([w], lr=0.0)

    def step(x):
        loss = tg.mean(tg.linear(x, w))
        rule.zero_grad()
        loss.backward()
        return loss

    run = tg.compile(step)
    want = step(tg.Tensor(x, device="emulator")).item(), w.grad

    def arena():
        assert run(x).item() == want[0]
        np.testing.assert_allclose(w.grad, want[1], rtol=1e-3, atol=1e-5)
        return plans_of(run)[0].bytes_of_buffers()[0]

    before = [arena() for _ in range(3)]
    precision = tg.get_float32_matmul_precision()
    tg.set_float32_matmul_precision("high")
    try:
        after = [arena() for _ in range(3)]
    finally:
        tg.set_float32_matmul_precision(precision)
    assert len({*before}) == len({*after}) == 1 and before[0] < after[0]
