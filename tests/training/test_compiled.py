"""A Trainer's plans: the numbers of ordinary steps, their own bits when resumed, the default."""

import random

import numpy as np
import pytest

import tinygraph as tg
from tests.training.networks import EPOCHS, fingerprint, loaders, trainer
from tests.training.test_resume import stop_after
from tinygraph.base.errors import PlanWarning
from tinygraph.training import DivergenceError, RunFolder, Stopped, Trainer

pytestmark = pytest.mark.filterwarnings("ignore:batch norm is training on:UserWarning")


def worker(run=None, compile=True):
    return trainer(run, "adam", compile=compile)


def test_a_training_is_that_of_the_graph():
    ours = worker()
    rows = ours.fit(*loaders(), epochs=EPOCHS)
    theirs = worker(compile=False)
    for a, b in zip(rows, theirs.fit(*loaders(), epochs=EPOCHS), strict=True):
        for name in a.keys() - {"seconds"}:
            assert a[name] == pytest.approx(b[name], rel=1e-4, abs=1e-6), name
    for name, array in theirs.model.state_dict().items():
        np.testing.assert_allclose(ours.model.state_dict()[name], array, rtol=1e-4, atol=1e-6)
    assert "batch_norm" in ours._step.plan.explain()
    assert "as it stands" not in ours._step.plan.explain()


def test_a_stopped_training_goes_on_with_the_same_bits(tmp_path):
    whole = worker(RunFolder(tmp_path / "whole"))
    whole.run.write_config({})
    whole.fit(*loaders(), epochs=EPOCHS)
    run = RunFolder(tmp_path / "run")
    run.write_config({})
    first = worker(run)
    stop_after(first, 2)
    with pytest.raises(Stopped):
        first.fit(*loaders(), epochs=EPOCHS)
    second = worker(run)
    second.resume()
    second.fit(*loaders(), epochs=EPOCHS - second.epoch)
    assert fingerprint(second) == fingerprint(whole)


def test_nothing_is_learnt_from_a_loss_that_is_not_finite():
    diverging = worker()
    diverging.loss = lambda y, t: tg.softmax_cross_entropy(y, t) * np.float32(np.inf)
    before = {name: p.value.copy() for name, p in diverging.model.named_parameters()}
    with pytest.raises(DivergenceError):
        diverging.fit(*loaders(), epochs=1)
    for name, p in diverging.model.named_parameters():
        np.testing.assert_array_equal(p.value, before[name])


def test_on_the_emulator_a_training_is_that_of_its_graph():
    """Dropout, batch norm, Adam, a schedule, a smaller last batch; and validation."""

    def rows(compile):
        tg.manual_seed(3)
        model = tg.nn.Sequential(
            tg.nn.Linear(6, 8),
            tg.nn.BatchNorm1d(8),
            tg.nn.ReLU(),
            tg.nn.Dropout(0.3),
            tg.nn.Linear(8, 2),
        ).to("emulator")
        rule = tg.optim.Adam(model.named_parameters(), lr=0.01)
        ours = Trainer(
            model,
            rule,
            tg.softmax_cross_entropy,
            progress=False,
            compile=compile,
            schedule=tg.optim.StepLR(rule, step_size=1, gamma=0.5),
        )
        return ours.fit(*loaders(), epochs=EPOCHS), ours

    (ours, compiled), (theirs, graph) = rows(True), rows(False)
    for a, b in zip(ours, theirs, strict=True):
        for name in a.keys() - {"seconds"}:
            assert a[name] == pytest.approx(b[name], rel=1e-4, abs=1e-6), name
    for name, array in graph.model.state_dict().items():
        np.testing.assert_allclose(compiled.model.state_dict()[name], array, rtol=1e-4, atol=1e-6)
    text = compiled._step.plan.explain()
    assert "kernels on emulator" in text and "as it stands" not in text


def test_by_default_a_plan_runs_on_the_cpu_alone():
    ours = worker(compile=None)
    ours.fit(*loaders(), epochs=1)
    assert "as it stands" not in ours._step.plan.explain()
    assert worker(compile=False)._step.plan is None
    model = tg.nn.Linear(6, 2).to("emulator")
    rule = tg.optim.SGD(model.parameters(), lr=0.1)
    assert Trainer(model, rule, tg.cross_entropy, progress=False)._step.plan is None


class Scaled(tg.nn.Module):
    """A network that does what no plan can repeat, or sees."""

    def __init__(self, scale):
        tg.manual_seed(2)
        self.layer, self.scale, self.factors = tg.nn.Linear(6, 2), scale, [1.0]

    def forward(self, x):
        y = self.layer(x)
        for factor in self.factors:
            y = y * factor
        return y * self.scale(y)


dice = random.Random(1)
REFUSED = {
    "reads a value": lambda y: 2.0 if float(tg.max(y)) > 0 else 1.0,
    "draws from a generator (dice.random)": lambda y: 2.0 if dice.random() < 0.1 else 1.0,
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_no_plan_can_repeat_is_said_once_and_trains_as_it_stands(words):
    def trained(**options):
        dice.seed(1)
        model = Scaled(REFUSED[words])
        rule = tg.optim.SGD(model.parameters(), lr=0.1)
        ours = Trainer(model, rule, tg.cross_entropy, progress=False, **options)
        ours.fit(*loaders(), epochs=2)
        return {name: array.tobytes() for name, array in model.state_dict().items()}

    with pytest.warns(PlanWarning) as caught:
        found = trained()
    (said,) = [str(each.message) for each in caught]
    assert said.startswith("compile: the step of the Trainer runs as it stands, without a plan: ")
    assert words in said and "Way out: " in said
    assert trained(compile=False) == found  # and nothing is said


def test_what_has_changed_between_epochs_is_seen_at_the_next_step():
    """Steps 7 and 8 are the first two of the third epoch; without it the 8th would be the one."""
    model = Scaled(lambda y: 1.0)
    theirs = Scaled(lambda y: 1.0)
    both = [
        Trainer(
            m, tg.optim.SGD(m.parameters(), lr=0.1), tg.cross_entropy, progress=False, **options
        )
        for m, options in ((model, {}), (theirs, {"compile": False}))
    ]
    for epochs, factor in ((2, 1.0), (1, 3.0)):
        model.factors[:] = theirs.factors[:] = [factor]
        if factor != 1.0:
            with pytest.warns(PlanWarning, match="mul took 1.0 at one call and 3.0 at the next"):
                both[0].fit(*loaders(), epochs=epochs)
        else:
            both[0].fit(*loaders(), epochs=epochs)
        both[1].fit(*loaders(), epochs=epochs)
    for name, array in theirs.state_dict().items():
        np.testing.assert_allclose(model.state_dict()[name], array, rtol=1e-4, atol=1e-6)
