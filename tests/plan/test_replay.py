"""Replays: the bodies of ops as calls that are bound to arrays, beside the bodies themselves."""

import io
from pathlib import Path

import numpy as np
import pytest

import tinygraph as tg
from tests.cases.schema import FOLDER, CaseArray, load
from tests.plan.networks import step_of
from tinygraph import nn
from tinygraph.engine.op import Op
from tinygraph.plan.bound_calls import MOST_BYTES, Binder, NotBound
from tinygraph.plan.buffers import KeptMemory, Streams
from tinygraph.plan.declared import declared_of
from tinygraph.plan.replay import COPIED_BYTES, MOST_TIMES

CASES = [case for path in sorted(FOLDER.glob("*.json")) for case in load(path) if case.seed is None]


# ---- every op, with other values than those that were there when its calls were taken down -----


def leaves_of(tree, wanted, turn):
    """An argument as Tensors; its numbers in another order at every turn."""
    if isinstance(tree, list):
        return [leaves_of(part, wanted, turn) for part in tree]
    if not isinstance(tree, CaseArray):
        return tree
    values = tree.as_dtype("float32")
    return tg.Tensor(np.roll(values.reshape(-1), turn).reshape(values.shape), wanted)


def tensors_in(tree):
    if isinstance(tree, (list, tuple)):
        return [x for part in tree for x in tensors_in(part)]
    return [tree] if isinstance(tree, tg.Tensor) else []


def weights(y):
    """Another number for each element, so that no two gradients are the same."""
    return np.linspace(-1, 2, max(y.size, 1), dtype=np.float32)[: y.size].reshape(y.shape)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.op}: {case.name}")
def test_every_op_gives_the_bits_of_the_graph(case):
    def step(args):
        result = getattr(tg, case.op)(**args, **case.kwargs)
        outputs = [y for y in tensors_in(result) if y.requires_grad]
        if outputs:
            loss = sum([tg.sum(y * weights(y)) for y in outputs], start=np.zeros((), np.float32))
            loss.backward()
        return tensors_in(result)

    planned = tg.compile(step)
    for turn in range(3):  # the plan runs, its replay is taken down, and it is replayed
        found = []
        for run in (step, planned):
            args = {
                name: leaves_of(tree, name in case.gradients, turn)
                for name, tree in case.args.items()
            }
            results = [y.numpy() for y in run(args)]
            grads = [x.grad for x in tensors_in(list(args.values()))]
            found.append([*results, *grads, *[x.numpy() for x in tensors_in(list(args.values()))]])
        for want, got in zip(*found, strict=True):
            if want is None:
                assert got is None
            else:
                np.testing.assert_array_equal(got, want)


# ---- what is bound, and what is refused ---------------------------------------------------------


def bound(body, *given, places=()):
    """The calls of a body that asks for arrays of the shapes of `places`, and what it returns."""
    memory = KeptMemory("op", "op", (True,), Streams())
    memory.arrays, memory.kept = [np.zeros(shape, np.float32) for shape in places], True
    known = [x for x in given if isinstance(x, np.ndarray)]
    return Binder([*known, *memory.arrays]).calls_of(body, memory, *given)


def test_calls_repeat_a_body_on_other_values():
    x, labels = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([2, 0])

    def body(mem, x, labels):
        y = np.multiply(x, 2, out=mem.empty((2, 3), np.float32))
        y[:, 1:] += x.T[0]
        picked = y[mem.constant(np.arange(2)), labels]
        y[mem.constant(np.arange(2)), labels] = 0
        return y, np.sum(picked, keepdims=True) - 1, {"view": y.reshape(-1)[::2]}

    calls, (y, total, saved) = bound(body, x, labels, places=[(2, 3)])
    assert [type(array) for array in (y, total, saved["view"])] == [np.ndarray] * 3
    x += np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    labels[:] = 1, 2
    for call in calls:
        call()
    memory = KeptMemory("op", "op", (True,), Streams())
    want, want_total, want_saved = body(memory, x, labels)
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(total, want_total)
    np.testing.assert_array_equal(saved["view"], want_saved["view"])


def hidden(x):
    """A function that numpy knows nothing of."""
    return np.asarray(x).astype(np.float64)


REFUSED = {
    "a number is read": lambda mem, x: x * float(x[0, 0]),
    "a branch": lambda mem, x: x + 1 if (x > 0).all() else x - 1,
    "a loop": lambda mem, x: sum(row for row in x),
    "an item": lambda mem, x: x + x.item(0),
    "a mask": lambda mem, x: x[x > 0],
    "a function that is no ufunc": lambda mem, x: np.sort(x),
    "a method": lambda mem, x: x.argmax(axis=1),
    "another dtype": lambda mem, x: x.astype(np.float64),
    "something computed unseen": lambda mem, x: x + hidden(x),
    "an array from nowhere": lambda mem, x: x + np.ones(3, np.float32),
    "something that may hold arrays": lambda mem, x: (x + 1, object()),
    "a large array": lambda mem, x: np.add.outer(x, np.add.outer(x, x)),
    "many results": lambda mem, x: np.modf(x),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bodies_that_cannot_be_bound(what):
    x = np.ones((MOST_BYTES // 1024, 3), np.float32)
    with pytest.raises(NotBound):
        bound(REFUSED[what], x)


def test_an_array_that_is_written_unseen_is_noticed():
    def body(mem, x):
        y = mem.empty((3,), np.float32)
        np.add(x, 1, out=y)
        memoryview(np.asarray(y))[0] = 7.0
        return y

    with pytest.raises(NotBound, match="unseen"):
        bound(body, np.ones(3, np.float32), places=[(3,)])


def test_a_network_is_replayed_as_a_whole():
    step, *_ = training(lambda: nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4)))
    for _ in range(3):
        step(*batch(0))
    last = step.explain().splitlines()[-1]
    assert last.startswith("replayed as ") and last.endswith(" calls")  # no op through its body


def test_the_picture_of_the_documentation_shows_what_is_called():
    w = tg.Parameter(np.ones((8, 2), np.float32), name="w")
    b = tg.Parameter(np.zeros(8, np.float32), name="b")
    optimizer = tg.optim.SGD([w, b], lr=0.1)

    @tg.compile
    def step(x, y):
        loss = tg.mse_loss(tg.relu(tg.linear(x, w, b)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(2):
        step(np.ones((4, 2), np.float32), np.ones((4, 8), np.float32))
    page = (Path(__file__).parents[2] / "docs/plan.md").read_text(encoding="utf-8")
    assert "%3 = linear_relu(x, w, b)" in page and "linear_relu  argument 0, w, b" in step.explain()
    replay = step._found[0].plans[0].replay()
    last = {
        line.split()[0]: line.split()[1:] for line in page.split("5. taken")[1].split("\n")[2:4]
    }
    names = {
        phase: [
            getattr(call, "func", call).__name__.replace("reduce", "add.reduce") for call in calls
        ]
        for phase, calls in replay.replayed.items()
    }
    assert last["forward"] == names["forward"]
    *ufuncs, _, count, _, _, _ = last["backward"]  # "and 3 sums of gradients"
    assert ufuncs == [name for name in names["backward"] if name != "give"]
    assert int(count) == names["backward"].count("give")


# ---- arrays that are exchanged between calls ----------------------------------------------------


def batch(seed, n=5):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 3)).astype(np.float32), rng.integers(0, 4, n)


def training(make, compiled=True):
    tg.manual_seed(1)
    model = make()
    optimizer = tg.optim.SGD(model.parameters(), lr=0.1)
    step = step_of(model, optimizer)
    return tg.compile(step) if compiled else step, model, optimizer


def linear_layers():
    return nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 4))


def replace_arrays(turn, model, kept):
    for parameter in model.parameters():
        parameter.value = parameter.value.copy()


def load_a_state(turn, model, kept):
    model.load_state_dict(model.state_dict())


def keep_gradients(turn, model, kept):
    for parameter in model.parameters():
        kept.append((parameter.grad, parameter.grad.copy()))


def keep_some_gradients(turn, model, kept):
    if turn % 2:
        keep_gradients(turn, model, kept)


def nothing(turn, model, kept):
    pass


@pytest.mark.parametrize(
    "between", [replace_arrays, load_a_state, keep_gradients, keep_some_gradients, nothing]
)
@pytest.mark.parametrize("width", [6, 200])  # gradients that are copied out, and one that leaves
def test_a_training_in_which_arrays_change(between, width):
    def make():
        return nn.Sequential(
            nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 4)
        )

    assert (width * width * 4 > COPIED_BYTES) == (width == 200)
    ends = []
    for compiled in (False, True):
        step, model, _ = training(make, compiled)
        kept = []
        for turn in range(MOST_TIMES + 4):
            step(*batch(turn, n=5 if turn % 3 else 4))
            between(turn, model, kept)
        for gradient, copy in kept:
            np.testing.assert_array_equal(gradient, copy)
        ends.append([parameter.value for parameter in model.parameters()])
    for want, got in zip(*ends, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "function",
    [lambda x, w: tg.tanh(tg.linear(x, w)), lambda x, w: w * w],
    ids=["written there", "a sum of two"],
)
def test_a_large_gradient_comes_in_the_array_of_the_run_before(function):
    """Nothing in the plan holds it, so that it is taken up again once nobody else does."""
    width = 256
    assert width * width * 4 > COPIED_BYTES
    w = tg.Parameter(np.ones((width, width), np.float32))
    x = np.ones((2, width), np.float32)

    def step(x):
        loss = tg.sum(function(x, w))
        loss.backward()
        return loss

    run, places = tg.compile(step), []
    for _ in range(6):
        run(x)
        places.append(w.grad.ctypes.data)
        w.grad = None
    assert places[1:] == places[:1] * 5, places
    assert "replayed as" in run.explain()


def test_gradients_added_up_over_several_calls():
    """Without zero_grad inside, and called from outside at every third call."""
    ends = []
    for compiled in (False, True):
        tg.manual_seed(1)
        model = linear_layers()

        def step(x, y, model=model):
            loss = tg.softmax_cross_entropy(model(x), y)
            loss.backward()
            return loss

        run = tg.compile(step) if compiled else step
        found = []
        for turn in range(9):
            run(*batch(turn))
            if turn % 3 == 2:
                found.append([parameter.grad.copy() for parameter in model.parameters()])
                for parameter in model.parameters():
                    parameter.grad = None
        ends.append(found)
    for want, got in zip(*ends, strict=True):
        for a, b in zip(want, got, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-7)


# ---- users' ops: opaque, whatever they do -------------------------------------------------------


class SometimesNone(Op):
    """y = 2 x, whose gradient does not come at every other call."""

    calls = 0

    def infer(self, x):
        return x

    def forward(self, mem, x):
        return np.multiply(x, 2, out=mem.empty(x.shape, x.dtype)), None

    def backward(self, mem, grad, saved, needs):
        SometimesNone.calls += 1
        if SometimesNone.calls % 2:
            return (None,)
        return (np.multiply(grad, 2, out=mem.empty(grad.shape, grad.dtype)),)


def test_a_gradient_that_comes_at_times():
    ends = []
    for compiled in (False, True):
        SometimesNone.calls = 0
        w = tg.Parameter([1.0, -2.0, 3.0])

        def step(x, w=w):
            y = w * x
            loss = tg.sum(SometimesNone()(y) * x) + tg.sum(tg.exp(y)) + tg.sum(SometimesNone()(w))
            w.grad = None
            loss.backward()
            return loss

        run = tg.compile(step) if compiled else step
        found = []
        for turn in range(6):
            run(np.float32([0.5, 0.25, turn]))
            found.append(w.grad.copy())
        ends.append(found)
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-6)


@pytest.mark.parametrize("said", ["", "known"])
def test_an_op_that_says_that_it_is_known_is_one_like_ours(said):
    """Its calls are repeated without its body, in the place of a call of it at each turn."""
    runs = io.StringIO()  # what changes in it no trace sees

    class Twice(Op):
        if said:
            __plan__ = said

        def infer(self, x):
            return x

        def forward(self, mem, x):
            runs.write("x")
            return np.multiply(x, 2, out=mem.empty(x.shape, x.dtype)), None

    class Thrice(Twice):  # for which nobody speaks
        pass

    assert declared_of(Twice) == said and declared_of(Thrice) == ""
    step = tg.compile(lambda x: tg.sum(tg.exp(Twice()(x))))
    counts = []
    with tg.no_grad():
        for turn in range(6):
            x = np.float32([0.5, 0.25, turn])
            np.testing.assert_allclose(step(x).item(), np.exp(2 * x).sum(), rtol=1e-6)
            counts.append(len(runs.getvalue()))
    assert (counts[-1] - counts[-3] == 0) is bool(said)


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_bad_values_are_refused_in_a_replay_too(turn):
    step, model, _ = training(linear_layers)
    for _ in range(turn):
        step(*batch(0))
    x, y = batch(1)
    with pytest.raises(tg.errors.ArgumentError, match="class numbers from 0 to 3"):
        step(x, y + 4)
    want = training(linear_layers, compiled=False)
    for _ in range(turn):
        want[0](*batch(0))
    want[0](x, y)
    step(x, y)
    for a, b in zip(want[1].parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(b.value, a.value, rtol=1e-5, atol=1e-6)
