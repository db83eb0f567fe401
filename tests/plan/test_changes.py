"""Functions that do not do the same at every call: noticed, said once, and run as they stand."""

import warnings

import numpy as np
import pytest

import tinygraph as tg
from tests.plan.networks import F
from tests.plan.test_training_loops import data, network
from tinygraph import nn, optim
from tinygraph.base.errors import PlanWarning


class Loop:
    """A model, its rule, and things that change between the steps."""

    def __init__(self):
        tg.manual_seed(2)
        self.model = network(nn.BatchNorm1d(8), nn.Dropout(0.5))
        self.rules = [optim.SGD(self.model.parameters(), lr=0.1) for _ in range(2)]
        self.scale, self.seen, self.rng = 1.0, [], np.random.default_rng(0)

    @property
    def hidden(self):
        """`scale`, in a way that a look at what a function reads does not find."""
        return vars(self)["scale"]

    def update(self, loss, rule=0):
        self.rules[rule].zero_grad()
        loss.backward()
        self.rules[rule].step()
        return loss

    def loss(self, x, y):
        return tg.softmax_cross_entropy(self.model(x), y)


def attribute(self, x, y):
    return self.update(self.loss(x, y) * self.hidden)


def array(self, x, y):
    return self.update(self.loss(x * np.full(6, self.hidden, F), y))


def learning_rate(self, x, y):
    return self.update(self.loss(x, y) + dict(self.rules[0].groups[0])["lr"])


def hyper_parameter(self, x, y):
    self.model[2].p = 0.5 * self.hidden
    return self.update(self.loss(x, y))


def other_op(self, x, y):
    return self.update(tg.relu(self.loss(x, y)) if self.hidden == 1 else tg.exp(self.loss(x, y)))


def more_ops(self, x, y):
    loss = self.loss(x, y)
    return self.update(loss if self.hidden == 1 else loss * loss)


def other_rule(self, x, y):
    return self.update(self.loss(x, y), rule=int(self.hidden < 1))


def more_steps(self, x, y):
    loss = self.update(self.loss(x, y))
    if self.hidden < 1:
        self.rules[1].step()
    return loss


def parameter(self, x, y):
    return self.update(self.loss(x, y) * float(np.abs(self.model[0].weight.numpy()).max()))


def statistics(self, x, y):
    loss = self.update(self.loss(x, y))
    self.seen.append(self.model[1].running_mean.numpy().sum())
    return loss


def state(self, x, y):
    loss = self.update(self.loss(x, y))
    self.seen.append(self.model.state_dict()["0.bias"].sum())
    return loss


def noise(self, x, y):
    return self.update(self.loss(x + tg.randn(12, 6), y))


def mode(self, x, y):
    self.model.train()
    return self.update(self.loss(x, y))


def mode_and_back(self, x, y):
    self.model.train()
    loss = self.update(self.loss(x, y))
    self.model.eval()
    return loss


def freezing(self, x, y):
    for p in self.model[0].parameters():
        p.requires_grad = True
    return self.update(self.loss(x, y))


CHANGING = [
    (attribute, "mul took 1.0 at one call and 0.5 at the next"),
    (array, "mul took float32[6] at one call and float32[6] at the next"),
    (learning_rate, "add took 0.1 at one call and 0.05 at the next"),
    (hyper_parameter, "dropout(p=0.5) at one call and dropout(p=0.25) at the next"),
    (other_op, "it applied relu() at one call and exp"),
    (more_ops, "ops at one call and"),
    (other_rule, "zero_grad at one call and zero_grad, of another, at the next"),
    (more_steps, "backward, step at one call and"),
    (parameter, "it reads the value of 0.weight"),
    (statistics, "it reads the value of 1.running_mean"),
    (state, "it reads the value of 0.weight"),
    (noise, "it uses the result of randn"),
    (mode, "it changes requires_grad, the mode of a module"),
    (mode_and_back, "it changes requires_grad, the mode of a module"),
    (freezing, "it changes requires_grad, the mode of a module"),
]


def trained(step, compiled):
    """Four steps; rates and an attribute change after each, the mode after the third."""
    loop = Loop()
    run = tg.compile(lambda x, y: step(loop, x, y)) if compiled else lambda x, y: step(loop, x, y)
    losses = []
    for i in range(4):
        losses.append(run(*data(i)).item())
        loop.scale *= 0.5
        for rule in loop.rules:
            rule.groups[0]["lr"] *= 0.5
        if i == 2 and step is freezing:
            loop.model[0].weight.requires_grad = False
        elif i == 2:
            loop.model.eval()
    return losses, loop.seen, loop.model.state_dict()


@pytest.mark.filterwarnings("ignore:batch norm is training on:UserWarning")
@pytest.mark.parametrize("step, words", CHANGING, ids=[step.__name__ for step, _ in CHANGING])
def test_a_function_that_changes_runs_as_it_stands(step, words):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PlanWarning)
        found = trained(step, compiled=True)
    said = [str(w.message) for w in caught if w.category is PlanWarning]
    assert len(said) == 1 and words in said[0] and "Way out: " in said[0], said
    assert caught[0].filename == __file__
    expected = trained(step, compiled=False)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4, atol=1e-6)
    for name, value in expected[2].items():
        np.testing.assert_allclose(found[2][name], value, rtol=1e-4, atol=1e-6)


def test_numbers_that_are_made_anew_but_equal_are_no_change():
    class Scale(tg.Op):
        """Its hyper-parameters are made anew at every call, and it keeps something when it runs."""

        def __init__(self, factors, name):
            self.factors, self.names = factors, (name, [float("nan")])

        def forward(self, mem, x):
            self.kept = np.random.default_rng().random()
            return x * self.factors, None

        def backward(self, mem, grad, saved, needs):
            return (grad * self.factors,)

    class Counts(tg.Op):
        def __init__(self):
            self.runs, self.sizes = 0, None

        def forward(self, mem, x):
            self.runs, self.sizes = self.runs + 1, np.array(x.shape)
            return x + F(0), None

        def backward(self, mem, grad, saved, needs):
            return (grad,)

    w, counts = tg.Parameter(np.ones(6, F)), Counts()

    @tg.compile
    def step(x):
        y = Scale(np.arange(6, dtype=F), "a")(counts(x) * w) * 0.5 + np.eye(6, dtype=F)[0]
        return tg.sum(y.detach() * y)

    losses = [step(data(i)[0]).item() for i in range(4)]
    assert "as it stands" not in step.explain() and counts.runs == 4
    np.testing.assert_allclose(losses, [step.fn(data(i)[0]).item() for i in range(4)], rtol=1e-5)


@pytest.mark.filterwarnings("ignore::tinygraph.errors.PlanWarning")
def test_arrays_stay_tensors_where_a_plan_has_run():
    """`x * 2.0` of an array is an array; the first call has given the function a Tensor."""
    model, scale = nn.Linear(6, 1), {0: 1.0}
    step = tg.compile(lambda x, more: (tg.sum(model(x * 2.0) * scale.get(0)), more[0] * 2))
    for device in ("cpu", "cpu", "emulator"):
        model.to(device)
        loss, other = step(np.ones((2, 6), F), [np.ones(3, F)])
        assert other.device.name == loss.device.name == device
        scale[0] *= 0.5
    assert len(step.reasons) == 1


def test_many_kinds_of_arguments_are_told_once():
    step = tg.compile(lambda x, t: x * t)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PlanWarning)
        found = [step(np.ones(2, F), float(t)).numpy()[0] for t in range(20)]
    assert found == list(range(20))
    (said,) = caught
    assert "needs more than 16 plans" in str(said.message) and said.filename == __file__
    step = tg.compile(lambda x, t: x * t)
    assert [step(np.ones(2, F), np.array(t, F)).numpy()[0] for t in range(20)] == found


@pytest.mark.parametrize("at, words", [(1, ""), (2, "Call 3 of this"), (5, "Calls 5 to 7 of this")])
def test_a_change_that_no_key_shows_is_noticed_when_the_function_is_traced_again(at, words):
    """At calls 2, 4, 8, ...; and which calls were made without it is said."""
    scale = {"now": 1.0}
    step = tg.compile(lambda x: x * scale.get("now"))
    found = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PlanWarning)
        for call in range(12):
            scale["now"] = 1.0 if call < at else 3.0
            found.append(step(np.ones(1, F)).item())
    (said,) = [str(w.message) for w in caught]
    assert "mul took 1.0 at one call and 3.0 at the next" in said and words in said
    noticed = {1: 1, 2: 3, 5: 7}[at]
    assert found == [1.0] * noticed + [3.0] * (12 - noticed)
    assert (words == "") == ("ran through the plan" not in said)


def test_a_leaf_that_is_made_and_detached_anew_is_told_by_its_numbers():
    """By its address it could be taken for the one of the call before, whose memory is free."""
    scale = {"now": 1.0}
    step = tg.compile(lambda x: x * tg.Tensor([scale.get("now")]).detach().detach())
    assert [step(np.ones(1, F)).item() for _ in range(3)] == [1.0] * 3 and step.reasons == []
    for other in (2.0, 3.0):
        again = tg.compile(step.fn)
        again(np.ones(1, F))
        scale["now"] = other
        with pytest.warns(PlanWarning, match="mul took"):
            assert again(np.ones(1, F)).item() == other
