"""compile against the graph itself: values, gradients, trainings; and what it leaves alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests.plan.networks import NETWORKS, F, images, network_with_statistics, small_network, step_of
from tinygraph.testing import strategies as ts


def trained(make, compiled, steps=4, optimizer=None, batches=(20, 20, 17, 20), **options):
    """Losses, parameters and buffers after a few steps from one seed."""
    tg.manual_seed(3)
    model = make()
    rule = (optimizer or (lambda p: tg.optim.SGD(p, lr=0.1, momentum=0.9)))(model.parameters())

    step = step_of(model, rule)
    run = tg.compile(step, **options) if compiled else step
    losses = [run(*images(i, n)).item() for i, n in zip(range(steps), batches, strict=True)]
    return losses, model, run


def assert_same(ours, theirs, rtol=1e-5, atol=1e-6):
    np.testing.assert_allclose(ours[0], theirs[0], rtol=rtol)
    for (name, a), b in zip(
        ours[1].state_dict().items(), theirs[1].state_dict().values(), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=rtol * 100, atol=atol * 10, err_msg=name)


@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("options", [{}, {"tile": 3}, {"tile": 4, "threads": 2}], ids=str)
def test_a_training_is_that_of_the_graph(make, options):
    """Dropout and running statistics among them, and a last batch that is smaller."""
    assert_same(trained(make, True, **options), trained(make, False))


@pytest.mark.parametrize(
    "rule",
    [
        lambda p: tg.optim.Adam(p, lr=0.01),
        lambda p: tg.optim.AdamW(p, lr=0.01),
        lambda p: tg.optim.RMSprop(p, lr=0.01),
    ],
)
def test_any_optimiser(rule):
    ours, theirs = (trained(small_network, c, optimizer=rule) for c in (True, False))
    assert_same(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_bits_at_every_run(threads):
    first, second = (trained(small_network, True, tile=3, threads=threads) for _ in range(2))
    assert first[0] == second[0]
    for a, b in zip(first[1].state_dict().values(), second[1].state_dict().values(), strict=True):
        assert a.tobytes() == b.tobytes()


def test_what_is_cut_is_cut_and_the_table_says_so():
    text = trained(small_network, True, tile=3, threads=2)[2].explain()
    assert "tiles of 3 samples, 7 in all, on 2 threads" in text
    assert "conv2d_relu_max_pool2d" in text and "dropout" in text
    text = trained(network_with_statistics, True)[2].explain()
    assert "the batch is not cut: batch_norm" in text


def test_the_table_tells_arguments_from_tensors_without_a_name():
    w = tg.Parameter(np.ones((3, 4), F))
    run = tg.compile(lambda x: tg.linear(x, w))
    run(np.ones((2, 4), F))
    assert " argument 0, a tensor " in run.explain()


def change(*leaves):
    """Other values in the same arrays, of the same signs."""
    for x in leaves:
        if x.value.dtype.kind == "f":
            x.value *= 0.75


@given(ts.graphs(), st.booleans())
def test_random_graphs(graph, several):
    """Forward by one plan, backward by it later; called again, so that kept buffers are used, the
    calls of bodies taken down, and replayed."""
    if len(graph.outputs) > 1 and not several:
        return
    upstream = np.random.default_rng(0)
    eager, compiled = graph.nodes(), graph.nodes()

    def total(*leaves):
        return sum([tg.sum(y * y) for y in graph.build(leaves)], start=np.zeros(()))

    planned = tg.compile(total)
    for _ in range(4):
        scale = upstream.standard_normal()
        want, got = total(*eager), planned(*compiled)
        np.testing.assert_allclose(got.value, want.value, rtol=1e-12)
        want.backward(scale)
        got.backward(scale)
        change(*eager, *compiled)
    for x, y in zip(eager, compiled, strict=True):
        assert (x.grad is None) == (y.grad is None)
        if x.grad is not None:
            np.testing.assert_allclose(y.grad, x.grad, rtol=1e-10, atol=1e-12)


@given(ts.graphs())
def test_random_graphs_with_backward_inside(graph):
    eager, compiled = graph.nodes(), graph.nodes()

    def step(leaves):
        outputs = graph.build(leaves)
        loss = sum([tg.sum(y * y) for y in outputs], start=np.zeros(()))
        loss.backward()
        return loss, outputs

    planned = tg.compile(lambda: step(compiled))
    for _ in range(4):
        (want, them), (got, ours) = step(eager), planned()
        np.testing.assert_allclose(got.value, want.value, rtol=1e-12)
        for a, b in zip(ours, them, strict=True):
            np.testing.assert_allclose(a.value, b.value, rtol=1e-12)
        change(*eager, *compiled)
    for x, y in zip(eager, compiled, strict=True):
        if x.grad is not None:
            np.testing.assert_allclose(y.grad, x.grad, rtol=1e-10, atol=1e-12)


@given(st.integers(2, 9), st.integers(1, 9), st.integers(1, 3), st.sampled_from(["mean", "sum"]))
def test_any_cut_of_a_batch(n, tile, threads, reduction):
    rng = np.random.default_rng(n)
    x, y = rng.standard_normal((n, 3)), rng.standard_normal((n, 2))
    weights = [tg.Parameter(rng.standard_normal(s), dtype=np.float64) for s in ((4, 3), (2, 4))]

    def step(x, y):
        h = tg.sigmoid(tg.linear(x, weights[0]))
        loss = tg.mse_loss(tg.linear(h, weights[1]), y, reduction=reduction)
        loss.backward()
        return loss, h

    found = []
    for run in (step, tg.compile(step, tile=tile, threads=threads)):
        for w in weights:
            w.grad = None
        loss, h = run(x, y)
        found.append([loss.value, h.value, *[w.grad for w in weights]])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-14)


# ---- what may change between calls ---------------------------------------------------------------


def test_modes_of_modules_and_grad_mode():
    tg.manual_seed(0)
    model = small_network()
    forward = tg.compile(model)
    x = images(0, 5)[0]
    for mode in (model.train, model.eval, model.train):
        mode()
        tg.manual_seed(1)
        want = model(x).value
        tg.manual_seed(1)
        np.testing.assert_allclose(forward(x).value, want, rtol=1e-5, atol=1e-6)
    with tg.no_grad():
        model.eval()
        y = forward(x)
        assert not y.requires_grad
        np.testing.assert_allclose(y.value, model(x).value, rtol=1e-5, atol=1e-6)


def test_arrays_of_parameters_may_be_replaced_and_frozen():
    w = tg.Parameter([[2.0]])
    run = tg.compile(lambda x: tg.sum(tg.linear(x, w) * tg.linear(x, w)))
    x = np.ones((3, 1), F)
    assert run(x).item() == 12
    w.value = np.array([[3.0]], F)
    assert run(x).item() == 27
    w.requires_grad = False
    assert not run(x).requires_grad
    w.requires_grad = True
    run(x).backward()
    np.testing.assert_allclose(w.grad, [[18.0]])


def test_what_leaves_a_plan_is_never_overwritten():
    w = tg.Parameter(np.ones((1, 2), F))

    @tg.compile
    def step(x):
        y = tg.linear(x, w)
        loss = tg.sum(y * y)
        w.grad = None
        loss.backward()
        return loss, y

    loss, y = step(np.ones((4, 2), F))
    first = loss.value.copy(), y.value.copy(), w.grad
    kept = w.grad.copy()
    step(np.full((4, 2), 5, F))
    assert loss.value == first[0] and (y.value == first[1]).all() and (first[2] == kept).all()


@pytest.mark.parametrize("where", ["first", "before backward", "last", "nowhere"])
def test_gradients_that_the_function_removes_itself(where):
    def step(w):
        if where == "first":
            w.grad = None
        loss = tg.sum(w * w)
        if where == "before backward":
            w.grad = None
        loss.backward()
        if where == "last":
            w.grad = None
        return loss

    w, v = tg.Parameter([3.0]), tg.Parameter([3.0])
    run = tg.compile(lambda: step(v))
    for _ in range(4):
        step(w)
        run()
        assert (w.grad is None) == (v.grad is None)
        assert w.grad is None or w.grad == v.grad


def test_two_results_wait_for_their_backward():
    """Each holds what its backward needs, though both come from one compiled function."""
    w = tg.Parameter([2.0])
    run = tg.compile(lambda x: tg.sum(w * w * x))
    first, second = run(np.array([3.0], F)), run(np.array([5.0], F))
    first.backward()
    np.testing.assert_allclose(w.grad, [12.0])
    second.backward()
    np.testing.assert_allclose(w.grad, [32.0])
    assert len(run._found) == 1


def test_gradients_of_arguments():
    x = tg.Tensor([1.0, 2.0], requires_grad=True)

    @tg.compile
    def step(x):
        loss = tg.sum(x * x)
        loss.backward()
        return loss

    step(x)
    step(x)
    np.testing.assert_allclose(x.grad, [4.0, 8.0])


def test_gradients_add_up_without_zero_grad():
    w = tg.Parameter([1.0])

    @tg.compile
    def step(x):
        loss = tg.sum(w * x)
        loss.backward()
        return loss

    for _ in range(3):
        step(np.array([2.0], F))
    np.testing.assert_allclose(w.grad, [6.0])


# ---- what belongs to a step ----------------------------------------------------------------------


def test_clipping_schedules_and_detach():
    def run(compiled):
        w = tg.Parameter([[3.0, -2.0]])
        rule = tg.optim.SGD([w], lr=0.5)
        schedule = tg.optim.StepLR(rule, step_size=2, gamma=0.5)

        def step(x):
            y = tg.linear(x, w)
            loss = tg.sum(y * y.detach())
            rule.zero_grad()
            loss.backward()
            tg.optim.clip_grad_norm([w], 1.0)
            rule.step()
            schedule.step()
            return {"loss": loss, "y": y}

        f = tg.compile(step) if compiled else step
        results = [f(np.eye(2, dtype=F))["loss"].item() for _ in range(5)]
        return results, w.value, rule.groups[0]["lr"]

    (a, wa, la), (b, wb, lb) = run(True), run(False)
    np.testing.assert_allclose(a, b, rtol=1e-6)
    np.testing.assert_allclose(wa, wb, rtol=1e-6)
    assert la == lb


class Opaque(tg.Op):
    """A user's op that makes its arrays itself, and saves something unknown."""

    class Box:
        def __init__(self, x):
            self.x = x

    def forward(self, mem, x):
        return np.sin(x), self.Box(x)

    def backward(self, mem, grad, saved, needs):
        return (grad * np.cos(saved.x),)

    def batch(self, specs, carries):
        return "map"


@pytest.mark.parametrize("tile", [None, 2])
def test_ops_of_users(tile):
    w = tg.Parameter(np.linspace(-1, 1, 6).reshape(3, 2), dtype=np.float64)
    x = np.random.default_rng(0).standard_normal((5, 2))

    def step(x):
        loss = tg.mean(Opaque()(tg.linear(tg.tanh(x), w)))
        loss.backward()
        return loss

    step(x)
    want, w.grad = w.grad, None
    run = tg.compile(step, tile=tile)
    for _ in range(2):
        w.grad = None
        run(x)
        np.testing.assert_allclose(w.grad, want, rtol=1e-12)


class Fickle(tg.Op):
    """Asks for an array whose size depends on values."""

    def forward(self, mem, x):
        mem.empty((int(x.sum()),), x.dtype)
        return x + 1, None


def test_an_op_that_breaks_the_contract_of_mem_is_named():
    run = tg.compile(lambda x: Fickle()(x))
    run(np.array([1.0]))
    with pytest.raises(tg.errors.GraphError, match="fickle: mem.empty"):
        run(np.array([2.0]))


def test_an_array_that_the_function_moves_is_taken_where_it_goes():
    w = tg.Parameter([[2.0]], device="emulator")
    run = tg.compile(lambda x: tg.sum(tg.linear(tg.Tensor.to(x, "emulator"), w)))
    x = np.ones((3, 1), F)
    for _ in range(3):
        assert run(x).item() == 6
    assert "runs as it stands" not in run.explain()
