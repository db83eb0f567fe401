"""What a compiled function changes of Python's objects is what it changes as it stands."""

import gc
import warnings
from collections import Counter, deque
from types import SimpleNamespace

import numpy as np
import pytest

import tinygraph as tg
from tests.plan.networks import F
from tinygraph import nn, optim
from tinygraph.base.errors import PlanWarning
from tinygraph.training import Trainer

ONES = np.ones(3, F)
STEPS = 23
total, table = 0, {"calls": 0}  # what models below change


class Model(nn.Module):
    """What a `forward` below computes with, and may change."""

    def __init__(self, rule):
        self.linear, self.rule = nn.Linear(3, 2), rule
        self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(2))
        self.calls, self.flag, self.beta, self.word = 0, False, 1.0, "a"
        self.seen, self.last = [], deque(maxlen=2)
        self.array, self.counter, self.held = np.zeros(2), Counter(), SimpleNamespace(calls=0)
        self.optimizer = self.schedule = None
        for layer in self.layers:
            layer.calls = 0

    def forward(self, x):
        return self.rule(self, x)

    def state(self):
        numbers = self.calls, self.flag, self.beta, self.word, len(self.seen), self.last
        more = self.array.tolist(), self.counter, self.held, [x.calls for x in self.layers]
        rate = self.optimizer.groups[0]["lr"], self.schedule.steps
        return repr((numbers, more, rate, total, table, self.training))


def count(self, x):
    self.calls += 1
    return self.linear(x) * (2.0 if self.calls > 9 else 1.0)


def count_alone(self, x):
    self.calls += 1
    return self.linear(x)


def count_elsewhere(self, x):
    global total
    total, table["calls"] = total + 1, table["calls"] + 1
    self.held.calls += 1
    return self.linear(x) * (2.0 if total > 9 else 1.0)


def by_setattr(self, x):
    setattr(self.held, "calls", getattr(self.held, "calls") + 1)  # noqa: B009, B010
    vars(self).update(calls=self.held.calls)
    return self.linear(x) * (2.0 if self.calls > 9 else 1.0)


def in_a_loop(self, x):
    x = self.linear(x)
    for layer in self.layers:
        layer.calls += 1
        x = layer(x) * (2.0 if layer.calls > 9 else 1.0)
    return x


def containers(self, x):
    self.seen.append(0)
    self.array[0] += 1
    self.counter["a"] += 1
    return self.linear(x) * (2.0 if len(self.seen) > 9 else 1.0)


def anneal(self, x):
    self.beta *= 0.9
    return self.linear(x) * self.beta


def every_tenth(self, x):
    self.calls += 1
    if self.calls % 10 == 0:
        self.beta /= 2
    return self.linear(x) * self.beta


def keeps_an_output(self, x):
    self.output = self.linear(x)
    return self.output


def changes_a_rate(self, x):
    for group in self.optimizer.groups:
        group["lr"] *= 0.9
    return self.linear(x)


def reads_after_a_step(self, x):
    self.schedule.step()
    return self.linear(x) * (1.0 + self.optimizer.groups[0]["lr"])


def draws_on(self, x):
    self.steps = getattr(self, "steps", None) or iter(range(99))
    return self.linear(x) * float(next(self.steps))


def counts_and_reads(self, x):
    self.calls += 1
    y = self.linear(x)
    return y * float(y.sum().item() > 0)


def counts_and_freezes(self, x):
    self.calls += 1
    self.layers[0].weight.requires_grad = self.calls < 9
    return self.layers[0](self.linear(x))


def mode(self, x):
    self.train(not self.training)
    return self.linear(x) * (2.0 if self.training else 1.0)


def writes_into_a_weight(self, x):
    np.clip(self.linear.weight.value, -0.3, 0.3, out=self.linear.weight.value)
    return self.linear(x)


def toggle(self, x):
    self.flag = not self.flag
    return self.linear(x) * (2.0 if self.flag else 1.0)


def words(self, x):
    self.word = "b" if self.word == "a" else "a"
    return self.linear(x) * (2.0 if self.word == "a" else 1.0)


def round_and_round(self, x):
    self.calls = (self.calls + 1) % 3
    return self.linear(x) * float(self.calls)


def comes_to_rest(self, x):
    self.calls = min(self.calls + 1, 3)
    self.last.append(self.calls)
    return self.linear(x) * float(self.calls)


def toggles_a_rate(self, x):
    group = self.optimizer.groups[0]
    group["lr"] = 0.2 if group["lr"] == 0.1 else 0.1
    return self.linear(x)


def notes_a_shape(self, x):
    self.shape = x.shape
    return self.linear(x)


def of_its_own(self, x):
    """Objects that a call makes, and leaves to nobody."""
    seen, own, n = [], SimpleNamespace(calls=0), 0

    def add(y):
        nonlocal n
        n += 1
        own.calls += 1
        seen.append(y)

    for layer in (self.linear, *self.layers):
        x = layer(x)
        add(x)
    return seen[-1] * float(n + own.calls)


def steps_a_schedule(self, x):
    self.schedule.step()
    return self.linear(x)


AS_THEY_STAND = [
    *(count, count_alone, count_elsewhere, by_setattr, in_a_loop, containers, anneal, every_tenth),
    *(keeps_an_output, changes_a_rate, reads_after_a_step, draws_on, counts_and_reads),
    *(counts_and_freezes, mode, writes_into_a_weight),
]
COMPILED = [
    *(toggle, words, round_and_round, comes_to_rest, toggles_a_rate, notes_a_shape, of_its_own),
    steps_a_schedule,
]


def trained(rule, compile, loss=tg.cross_entropy):
    """Steps with batches of two sizes: parameters, Python's objects, and what was told."""
    global total
    total, table["calls"] = 0, 0
    tg.manual_seed(0)
    model, rng = Model(rule), np.random.default_rng(0)
    model.optimizer = optim.SGD(model.parameters(), lr=0.1)
    model.schedule = optim.StepLR(model.optimizer, 3, 0.5)
    trainer = Trainer(model, model.optimizer, loss, compile=compile, progress=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PlanWarning)
        for i in range(STEPS):
            n = 8 if i % 5 else 4
            trainer.step(rng.standard_normal((n, 3)).astype(F), rng.integers(0, 2, n))
    said = [str(each.message) for each in caught]
    return [p.value for p in model.parameters()], model.state(), said, trainer._step.plan


def same_as_eager(rule, loss=lambda: tg.cross_entropy):
    """What a default Trainer tells, and its plan."""
    wanted, want, _, _ = trained(rule, False, loss())
    found, got, said, plan = trained(rule, None, loss())
    assert got == want
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    return said, plan


@pytest.mark.parametrize("rule", AS_THEY_STAND, ids=lambda rule: rule.__name__)
def test_what_differs_at_each_call_runs_as_it_stands_with_one_warning(rule):
    said, _ = same_as_eager(rule)
    (one,) = said
    assert one.startswith("compile: the step of the Trainer") and "Way out: " in one


@pytest.mark.parametrize("rule", COMPILED, ids=lambda rule: rule.__name__)
def test_what_takes_few_values_has_a_plan_for_each(rule):
    said, plan = same_as_eager(rule)
    assert said == [] and plan.reasons == []
    assert max(recorded.calls for recorded in plan._found) > 4


def test_of_a_hundred_calls_a_hundred_are_counted():
    class Counting(nn.Module):
        def __init__(self):
            self.linear, self.calls = nn.Linear(3, 1), 0

        def forward(self, x):
            self.calls += 1
            return self.linear(x)

    model = Counting()
    rule = optim.SGD(model.parameters(), lr=0.0)
    trainer = Trainer(model, rule, tg.mse_loss, progress=False)
    with pytest.warns(PlanWarning, match=r"\(self.calls is another one in each\)"):
        for _ in range(100):
            trainer.step(np.ones((2, 3), F), np.ones((2, 1), F))
    assert model.calls == 100


# ---- losses ----------------------------------------------------------------------------------


def counting_loss():
    calls = 0

    def loss(output, target):
        nonlocal calls
        calls += 1
        return tg.cross_entropy(output, target) * (2.0 if calls > 9 else 1.0)

    return loss


def loss_with_an_attribute():
    def loss(output, target):
        loss.calls += 1
        return tg.cross_entropy(output, target) * (2.0 if loss.calls > 9 else 1.0)

    loss.calls = 0
    return loss


def loss_with_a_default():
    def loss(output, target, seen=[]):  # noqa: B006
        seen.append(0)
        return tg.cross_entropy(output, target) * float(len(seen))

    return loss


class SmoothLoss:
    calls = 0

    def __init__(self):
        type(self).calls, self.mean = 0, 1.0

    def __call__(self, output, target):
        type(self).calls += 1
        self.mean = 0.9 * self.mean + 0.01
        return tg.cross_entropy(output, target) * (self.mean if self.calls > 3 else 1.0)


def decorated_loss():
    count, weights = counting_loss(), iter(np.linspace(1, 2, 99).tolist())
    return lambda output, target: count(output, target) * next(weights)


LOSSES = [counting_loss, loss_with_an_attribute, loss_with_a_default, SmoothLoss, decorated_loss]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_losses_too(loss):
    said, _ = same_as_eager(lambda self, x: self.linear(x), loss)
    assert len(said) == 1


def test_a_loss_that_turns_a_flag_over_has_two_plans():
    def make():
        side = False

        def loss(output, target):
            nonlocal side
            side = not side
            return tg.cross_entropy(output, target) * (2.0 if side else 1.0)

        return loss

    said, plan = same_as_eager(lambda self, x: self.linear(x), make)
    assert said == [] and len(plan._found) == 4  # of two sizes of a batch


@pytest.mark.parametrize("how", ["last", "groups", "loop"])
def test_a_rate_that_a_loss_reads_is_that_of_the_step(how):
    """Closed form: a loss of lr * sum(w) moves w by lr * lr."""
    w = tg.Parameter(np.zeros(1))
    rule = optim.SGD([w], lr=1.0)
    schedule = optim.StepLR(rule, 4, 0.5)

    @tg.compile
    def step():
        if how == "last":
            (rate,) = schedule.get_last_lr()
        elif how == "groups":
            rate = rule.groups[0]["lr"]
        else:
            rate = sum(group["lr"] for group in rule.groups)
        rule.zero_grad()
        loss = tg.sum(w * rate)
        loss.backward()
        rule.step()
        return loss

    want = 0.0
    for i in range(12):
        want -= 0.25 ** (i // 4)
        step()
        schedule.step()
        assert w.item() == want
    assert step.reasons == []


def test_a_hook_that_counts():
    tg.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 2))
    calls = []
    model[0].register_forward_hook(lambda *_: calls.append(0))
    trainer = Trainer(model, optim.SGD(model.parameters(), lr=0.1), tg.mse_loss, progress=False)
    with pytest.warns(PlanWarning, match="calls a hook of a module"):
        for _ in range(9):
            trainer.step(np.ones((2, 3), F), np.ones((2, 2), F))
    assert len(calls) == 9


# ---- compiled functions ----------------------------------------------------------------------


def test_a_mask_that_the_first_call_makes_is_no_reason_for_ever():
    """What is made ready once: the first call runs as it stands, the others through a plan."""
    held = {}

    @tg.compile
    def run(x):
        if "mask" not in held:
            held["mask"] = tg.Tensor(np.array([1, 0, 2], F))
        return x * held["mask"]

    for _ in range(9):
        assert run(ONES * 2).numpy().tolist() == [2, 0, 4]
    assert run.reasons == [] and run._found[0].calls == 8 and "as it stands" not in run.explain()


def test_what_was_changed_by_a_trace_that_is_given_up_is_taken_back():
    """As it stands it runs once more: nothing is to be counted twice."""
    seen, held = [], SimpleNamespace(calls=0, items={"a": 1}, array=np.zeros(2), inside={1})

    @tg.compile
    def run(x):
        held.calls += 1
        held.items["b"] = held.calls
        del held.items["a"]
        held.items["a"] = 1
        held.array += 1
        held.inside.add(held.calls)
        seen.append(held.calls)
        held.new = 0
        return x * x.sum().item()

    with pytest.warns(PlanWarning, match="it reads a value"):
        assert [run(tg.Tensor(ONES)).numpy()[0] for _ in range(3)] == [3.0] * 3
    assert seen == [1, 2, 3] and held.array.tolist() == [3, 3] and held.inside == {1, 2, 3}
    assert (held.calls, held.items, held.new) == (3, {"a": 1, "b": 3}, 0)


def test_an_argument_that_is_changed():
    @tg.compile
    def run(x, notes):
        notes["calls"] += 1
        return x * 2.0

    notes = {"calls": 0}
    with pytest.warns(PlanWarning):
        for _ in range(9):
            run(ONES, notes)
    assert notes == {"calls": 9}


def test_what_the_function_leaves_is_that_of_the_plan_that_ran():
    """A shape that is noted and never read tells no plans apart, and is always the last one."""
    held = SimpleNamespace()

    @tg.compile
    def run(x):
        held.size = x.size
        return x * 2.0

    for size in (3, 4, 3, 3, 4, 5, 3, 5, 4):
        run(np.ones(size, F))
        assert held.size == size
    assert run.reasons == [] and len(run._found) == 3


def test_an_end_that_differs_is_noticed():
    """What decides over it is not seen by its name."""
    held, settings = SimpleNamespace(side=0), {"side": 1}

    @tg.compile
    def run(x):
        held.side = settings.get("side")
        return x * 2.0

    for _ in range(3):
        run(ONES)
    settings["side"] = 2
    with pytest.warns(PlanWarning, match="it left held.side as 1 at one call and as 2 at the next"):
        run(ONES)
    assert held.side == 2


def test_arrays_may_be_written_after_a_trace_whatever_became_of_it():
    big, w = np.zeros(1 << 20), tg.Parameter(np.ones(3, F))
    view = w.value[:2]

    @tg.compile
    def run(x):
        big[0] += 1
        return x * w

    with pytest.warns(PlanWarning, match="it writes into an array"):
        run(ONES)
    run(ONES)
    assert big[0] == 2 and big.flags.writeable and w.value.flags.writeable and view.flags.writeable
    assert gc.isenabled()


def test_closures_of_one_function_are_told_apart():
    def make(scale):
        def times(x):
            return x * scale

        def change(other):
            nonlocal scale
            scale = other

        return times, change

    (one, _), (two, change) = make(1.0), make(2.0)
    run = tg.compile(lambda x: one(x) + two(x))
    assert [run(ONES).numpy()[0] for _ in range(3)] == [3.0] * 3
    change(5.0)
    assert run(ONES).numpy()[0] == 6.0 and run.reasons == []
