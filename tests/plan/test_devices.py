"""Where a plan runs: arrays, models that move, bad values, rewrites that suit the device."""

import itertools

import numpy as np
import pytest

import tinygraph as tg
from tests.plan.networks import F
from tests.plan.test_kernels import IMAGES, LABELS, plans_of, seed_network, step_of
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, DeviceError, GraphError, PlanWarning
from tinygraph.cuda.devices import EMULATOR
from tinygraph.plan.code import Code
from tinygraph.plan.rewrites import REWRITES


def test_arrays_go_where_the_parameters_are():
    """Though the first op takes none; and the backward of a result is the plan's."""
    w = tg.Parameter(np.ones((2, 6), F), device="emulator")
    run = tg.compile(lambda x: tg.mean(tg.linear(tg.flatten(x, 1), w)))
    for _ in range(2):
        w.grad = None
        y = run(np.full((4, 2, 3), 2, F))
        assert y.device is EMULATOR and y.item() == 12
        y.backward(0.5)
        np.testing.assert_array_equal(w.grad, np.full((2, 6), 0.5, F))
    assert not run.reasons


def test_gradients_add_up():
    w = tg.Parameter([3.0], device="emulator")
    v = tg.Tensor([2.0], requires_grad=True, device="emulator")

    @tg.compile
    def step(x):
        loss = tg.sum(w * w * x)
        loss.backward()
        return loss

    for _ in range(3):
        step(v)
    np.testing.assert_array_equal(w.grad, [36.0])
    np.testing.assert_array_equal(v.grad, [27.0])


def test_a_gradient_that_somebody_holds_is_not_written_again():
    w = tg.Parameter([3.0], device="emulator")
    rule = tg.optim.SGD([w], lr=0.0)

    @tg.compile
    def step(x):
        loss = tg.sum(w * x)
        rule.zero_grad()
        loss.backward()
        return loss

    held = []
    for i in range(4):
        step(np.full(1, i, F))
        held.append(w.grad)
    np.testing.assert_array_equal(np.concatenate(held), [0, 1, 2, 3])


def test_a_model_that_moves_gets_another_plan():
    model = nn.Linear(3, 2)
    run = tg.compile(lambda x: model(x))
    x = np.ones((2, 3), F)
    want = run(x).value
    for device in ("emulator", "cpu"):
        model.to(device)
        got = run(x)
        assert got.device == device
        np.testing.assert_allclose(got.value, want, rtol=1e-6)
    del got
    assert [plan.device.name for plan in plans_of(run)] == ["cpu", "emulator"]


def test_labels_are_looked_at():
    run = tg.compile(step_of(seed_network()))
    for _ in range(2):
        run(IMAGES, LABELS)
        with pytest.raises(ArgumentError, match="label"):
            run(IMAGES, np.full(5, 9))


@pytest.mark.second
def test_a_compiled_step_can_be_captured(rehearsed_cuda):
    """Dropout and Adam in the plan's graph: the bits of steps without plan or graph."""

    def losses(compiled, captured):
        tg.manual_seed(1)
        layers = nn.Linear(6, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 2)
        model = nn.Sequential(*layers).to("cuda")
        rule = tg.optim.Adam(model.parameters(), lr=0.01)
        run = step_of(model, rule)
        run = tg.compile(run) if compiled else run
        run = tg.cuda.capture(run, warm_up=1) if captured else run
        rng, found = np.random.default_rng(0), []
        for _ in range(4):
            x = tg.Tensor(rng.standard_normal((16, 6)).astype(F), device="cuda")
            y = tg.Tensor(rng.integers(0, 2, 16), device="cuda")
            found.append(run(x, y).item())
        return found

    assert losses(True, True) == losses(True, False) == losses(False, False)


@pytest.mark.second
def test_on_a_gpu_tuning_has_nothing_to_choose(rehearsed_cuda):
    """Its kernels take all samples at once: the numbers are those of a plan that is not tuned."""

    def losses(**options):
        tg.manual_seed(1)
        model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2)).to("cuda")
        run = tg.compile(step_of(model, tg.optim.SGD(model.parameters(), lr=0.1)), **options)
        x = np.random.default_rng(0).standard_normal((16, 6)).astype(F)
        return [run(x, np.arange(16) % 2).item() for _ in range(3)], run.explain()

    plain, tuned = losses(), losses(tune=True)
    assert tuned[0] == plain[0] and "nothing to choose: kernels on cuda take all" in tuned[1]


@pytest.mark.second
@pytest.mark.parametrize("inside", [True, False], ids=["backward inside", "by the caller"])
def test_on_a_gpu_probabilities_are_looked_at_when_a_nan_is_read(rehearsed_cuda, inside):
    """At those that the op was given, though their place might have been free by then."""
    w = tg.Parameter(np.full((40, 9), 0.1, F), device="cuda")
    v = tg.Parameter(np.full((1, 40), 0.1, F), device="cuda")

    def step(x, y, squash):
        p = tg.linear(tg.tanh(tg.linear(x, w)), v)
        loss = tg.binary_cross_entropy(tg.sigmoid(p) if squash else p, y)
        w.grad = v.grad = None
        if inside:
            loss.backward()
        return loss

    run = tg.compile(step)
    x = np.ones((8, 9), F)
    for squash, y in itertools.product((True, False), (1, np.nan)):
        for _ in range(3):
            loss = run(x if squash else -x, np.full((8, 1), y, F), squash)
            if not inside:
                loss.backward(retain_graph=True)
            if squash:
                assert np.isnan(loss.item()) == np.isnan(y)  # a NaN that was given is no mistake
            else:
                with pytest.raises(ArgumentError, match="probabilities from 0 to 1"):
                    loss.item()


@pytest.mark.parametrize(
    "words, fn",
    [
        ("moves a tensor to another device", lambda w: tg.sum((w * 2).to("cpu"))),
        ("moves a tensor to another device", lambda w: tg.sum(w.to("cpu").to("emulator"))),
    ],
    ids=["away", "and back"],
)
def test_a_function_that_moves_tensors_runs_as_it_stands(words, fn):
    w = tg.Parameter([1.0, 2.0], device="emulator")
    run = tg.compile(lambda: fn(w))
    with pytest.warns(PlanWarning, match=words):
        assert run().item() == fn(w).item()


def test_tensors_of_two_devices_are_the_functions_own_error():
    w, v = tg.Parameter([1.0]), tg.Parameter([1.0], device="emulator")
    for run in (tg.compile(lambda: w * v), tg.compile(lambda w: w * v)):
        arguments = [] if run.fn.__code__.co_argcount == 0 else [w]
        with pytest.raises(DeviceError):
            run(*arguments)


def test_a_plan_to_read_names_the_device():
    x = tg.Tensor(IMAGES, device="emulator", name="x")
    model = seed_network()
    graph = tg.Graph(tg.sum(model(x)))
    plan = tg.plan(graph)
    assert "kernels on emulator take all samples at once" in plan.explain()
    assert "conv2d_relu_max_pool2d" in plan.explain()
    for factor in (1, 2):
        graph.forward({"x": factor * IMAGES})
        np.testing.assert_allclose(
            plan.run({"x": factor * IMAGES})[0], graph.outputs[0].value, rtol=1e-5
        )
    graph.backward()
    want = [p.grad / 3 for p in model.parameters()]  # two runs of the plan, and the graph's
    model.zero_grad()
    plan.run()
    for p, gradient in zip(model.parameters(), want, strict=True):
        assert p.grad.shape == gradient.shape
    with pytest.raises(GraphError, match="cpu and emulator"):
        tg.plan(tg.Graph(tg.Tensor([1.0]).to("emulator") * 2.0))


@pytest.mark.parametrize(
    "channels, ops",
    [(4, ["conv2d_relu_max_pool2d"]), (5, ["conv2d", "max_pool2d_relu"])],
)
@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_stages_of_many_channels_are_not_fused(device, channels, ops):
    """The three ops do better than the fused one there."""
    layers = nn.Conv2d(channels, 2, 3), nn.ReLU(), nn.MaxPool2d(2)
    x = tg.Tensor(np.ones((1, channels, 6, 6), F), device=device)
    plan = tg.plan(tg.Graph(nn.Sequential(*layers).to(device)(x))).plan
    assert [made.op.name for made in plan.code.instructions if made.op] == ops


class HostOnly(tg.Op):
    """A fused op that has no kernel."""

    def forward(self, mem, x):
        return np.exp(x), None


def test_a_rewrite_whose_op_has_no_kernel_is_left_out(monkeypatch):
    def chains(code: Code):
        last = len(code.instructions) - 1
        if not isinstance(code.instructions[last].op, HostOnly):
            yield (last,), HostOnly(), code.instructions[last].inputs

    monkeypatch.setitem(REWRITES, "for numpy alone", chains)
    ops = {}
    for device in ("cpu", "emulator"):
        run = tg.compile(lambda x: tg.exp(x))
        x = tg.Tensor([1.0], device=device)
        np.testing.assert_allclose(run(x).value, np.exp([1.0]), rtol=1e-6)
        ops[device] = [made.op.name for made in plans_of(run)[0].code.instructions if made.op]
    assert ops == {"cpu": ["host_only"], "emulator": ["exp"]}
