"""The estimators of tinygraph.sklearn: scikit-learn's own checks, seeds, pipelines, pickles."""

import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, DivergenceError, ShapeError
from tinygraph.engine.random import default_generator

pytest.importorskip("sklearn", reason="needs scikit-learn")
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from tinygraph.sklearn import Classifier, Regressor

RNG = np.random.default_rng(3)
X = RNG.normal(size=(50, 3))
Y = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")
IMAGES = RNG.normal(size=(8, 1, 6, 6)).astype(np.float32)


def linear(n_inputs, n_outputs):
    return nn.Linear(n_inputs, n_outputs)


def with_dropout(n_inputs, n_outputs):
    return nn.Sequential(nn.Linear(n_inputs, 8), nn.Dropout(0.5), nn.Linear(8, n_outputs))


def weights(estimator):
    return [p.numpy() for p in estimator.module_.parameters()]


def same(first, second):
    return all(map(np.array_equal, weights(first), weights(second)))


@parametrize_with_checks([Classifier(), Regressor()])
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


# ---- what is computed -----------------------------------------------------------------------


def test_a_step_of_the_regressor_is_that_of_the_formula():
    layer = nn.Linear(3, 2).double()
    targets = X @ RNG.normal(size=(3, 2)) + 1
    w, b = layer.weight.numpy().copy(), layer.bias.numpy().copy()
    model = Regressor(
        layer, optimizer=tg.optim.SGD, learning_rate=0.25, epochs=1, batch_size=len(X)
    ).fit(X, targets)
    error = X @ w.T + b - targets  # (N, 2), of whose squares the mean is taken
    w2, b2 = w - 0.25 * error.T @ X / len(X), b - 0.25 * error.mean(0)
    np.testing.assert_allclose(model.module_.weight.numpy(), w2, rtol=1e-12)
    np.testing.assert_allclose(model.predict(X), X @ w2.T + b2, rtol=1e-9)
    np.testing.assert_array_equal(layer.weight.numpy(), w)  # the argument is as it was


def test_probabilities_are_the_softmax_of_the_logits():
    model = Classifier(linear, epochs=2, random_state=0).fit(X, Y)
    weight, bias = weights(model)
    logits = X @ weight.T.astype(float) + bias
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    found = model.predict_proba(X)
    assert found.dtype == np.float64 and model.classes_.tolist() == ["down", "up"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert (model.predict(X) == model.classes_[expected.argmax(1)]).all()


def test_a_prediction_does_not_depend_on_those_beside_it():
    model = Classifier(epochs=1, batch_size=16, random_state=0).fit(X, Y)
    whole = model.predict_proba(X)
    order = RNG.permutation(len(X))
    assert np.array_equal(model.predict_proba(X[order]), whole[order])
    for rows in (1, 7, 17):
        assert np.array_equal(model.predict_proba(X[:rows]), whole[:rows])


def test_y_of_one_column_stays_one():
    y = X[:, :1]
    assert Regressor(linear, epochs=1).fit(X, y).predict(X).shape == (50, 1)
    assert Regressor(linear, epochs=1).fit(X, y[:, 0]).predict(X).shape == (50,)


def test_images():
    def network(channels, classes):
        return nn.Sequential(nn.Conv2d(channels, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 2))

    labels = np.arange(8) % 2
    for module in (network, None):
        model = Classifier(module, epochs=40, random_state=0).fit(IMAGES, labels)
        assert model.n_features_in_ == 1 and model.score(IMAGES, labels) == 1


@pytest.mark.second
def test_on_the_emulator():
    settings = {"epochs": 2, "random_state": 0}
    here = Classifier(linear, **settings).fit(X, Y)
    there = Classifier(linear, device="emulator", **settings).fit(X, Y)
    assert there.module_.weight.device == "emulator"
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), rtol=1e-5)


# ---- seeds ----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [7, np.random.RandomState(7)], ids=["int", "RandomState"])
def test_equal_seeds_give_equal_bits(state):
    first = Classifier(with_dropout, epochs=2, random_state=7).fit(X, Y)
    assert same(first, Classifier(with_dropout, epochs=2, random_state=state).fit(X, Y))
    assert not same(first, Classifier(with_dropout, epochs=2, random_state=8).fit(X, Y))
    assert same(first, clone(first).fit(X, Y)) and same(first, pickle.loads(pickle.dumps(first)))


def test_partial_fits_equal_one_fit():
    whole = Classifier(with_dropout, epochs=3, random_state=1).fit(X, Y)
    parts = Classifier(with_dropout, random_state=1)
    for _ in range(3):
        tg.rand(2)  # what the program draws beside it changes nothing
        parts.partial_fit(X, Y, classes=["up", "down"])
        parts = pickle.loads(pickle.dumps(parts))
    assert same(whole, parts)
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in parts.history_]
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    assert rows == [{k: v for k, v in row.items() if k != "seconds"} for row in whole.history_]
    numbers = Regressor(linear, epochs=2, random_state=1).fit(X, X[:, 0])
    again = Regressor(linear, random_state=1).partial_fit(X, X[:, 0]).partial_fit(X, X[:, 0])
    assert same(numbers, again)


def test_the_draws_of_the_program_go_on():
    tg.manual_seed(5)
    tg.rand(1)
    before = default_generator.state_dict()
    Classifier(with_dropout, epochs=1).fit(X, Y)
    assert default_generator.state_dict() == before


def test_fits_in_threads_are_those_of_one_thread():
    made = [Classifier(with_dropout, epochs=3, random_state=i) for i in range(4)]
    threads = [threading.Thread(target=model.fit, args=(X, Y)) for model in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(same(model, clone(model).fit(X, Y)) for model in made)


# ---- among the others -----------------------------------------------------------------------


def test_pipelines_and_grid_searches():
    pipeline = make_pipeline(StandardScaler(), Classifier(linear, epochs=5, random_state=0))
    grid = {"classifier__learning_rate": [1e-6, 0.1], "classifier__module": [linear, None]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, Y)
    assert search.best_params_["classifier__learning_rate"] == 0.1 and search.best_score_ > 0.8
    scores = cross_val_score(Regressor(epochs=20, random_state=0), X, X[:, 0], cv=2)
    assert (scores > 0.8).all()


@pytest.mark.second
def test_a_grid_search_in_processes_finds_what_one_process_finds():
    model = Classifier(nn.Linear(3, 2), epochs=2, random_state=0)  # a Module goes there too
    grid = {"learning_rate": [0.001, 0.1]}
    one, two = (GridSearchCV(model, grid, cv=2, n_jobs=n).fit(X, Y) for n in (1, 2))
    name = "mean_test_score"
    assert one.cv_results_[name].tolist() == two.cv_results_[name].tolist()
    assert same(one.best_estimator_, two.best_estimator_)


@pytest.mark.second
def test_another_process_goes_on_with_it(tmp_path):
    """There nothing was written yet, and here much."""
    model = Classifier(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)), epochs=3)
    model.fit(X, Y)
    (tmp_path / "model").write_bytes(pickle.dumps((model, X, Y)))
    program = f"""
import pickle
model, X, Y = pickle.load(open({str(tmp_path / "model")!r}, "rb"))
assert model.module_[0].weight.device.type == "cpu"
model.partial_fit(X, Y)
print(repr(model.predict_proba(X).tolist()))
"""
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert eval(found.stdout) == model.partial_fit(X, Y).predict_proba(X).tolist()


def test_what_the_trainer_is_told(capsys):
    options = {"compile": True, "clip_norm": 1e-3}
    plain = Classifier(linear, epochs=1, random_state=0, optimizer=tg.optim.SGD)
    clipped = clone(plain).set_params(trainer_options=options, verbose=True).fit(X, Y)
    start = clone(plain).set_params(learning_rate=1e-9).fit(X, Y)
    moved = [np.abs(a - b).max() for a, b in zip(weights(clipped), weights(start), strict=True)]
    assert 0 < max(moved) <= 1e-3 * 0.01 * 2 * 1.01 and capsys.readouterr().out


# ---- errors ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"epochs": 0}, ArgumentError, "Classifier: epochs: expected an int of at least 1"),
        ({"batch_size": 2.5}, ArgumentError, "batch_size: .*got 2.5"),
        ({"learning_rate": 0}, ArgumentError, "learning_rate: expected a number above 0"),
        ({"module": "mlp"}, ArgumentError, "module: expected a Module, or a function.*got 'mlp'"),
        ({"module": lambda n, m: n}, ArgumentError, "module: expected a Module.*got 3"),
        ({"module": nn.Linear(3, 5)}, ShapeError, r"is \(N, 2\), got \(1, 5\) for N = 1.*told"),
        ({"module": nn.Linear(4, 2)}, ShapeError, "linear"),
        ({"device": "tpu"}, ArgumentError, "got 'tpu'"),
        ({"random_state": "seed"}, ValueError, "'seed' cannot be used to seed"),
        ({"trainer_options": {"speed": 9}}, TypeError, "speed"),
    ],
)
def test_arguments_are_looked_at_before_anything_is_learnt(settings, error, words):
    model = Classifier(**settings)
    with pytest.raises(error, match=words):
        model.fit(X, Y)
    with pytest.raises(error, match=words):
        clone(model).partial_fit(X, Y, classes=["up", "down"])


def test_a_failed_fit_leaves_nothing_that_predicts():
    model = Classifier(nn.Linear(3, 5))
    with pytest.raises(ShapeError):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_errors_of_partial_fit():
    with pytest.raises(ArgumentError, match="classes: expected the labels of all data, got None"):
        Classifier().partial_fit(X, Y)
    with pytest.raises(ArgumentError, match=r"y: expected labels among \['up'\], got others"):
        Classifier().partial_fit(X, Y, classes=["up"])
    model = Classifier(epochs=1).fit(X, Y)
    with pytest.raises(ArgumentError, match="classes: expected those of the first call"):
        model.partial_fit(X, Y, classes=["up", "down", "left"])


def test_numbers_that_are_too_large():
    with pytest.raises(ArgumentError, match=r"X: expected numbers that float32 can hold, got 1e\+"):
        Classifier(epochs=1).fit(np.full((4, 2), 1e300), [0, 1, 0, 1])
    with pytest.raises(ArgumentError, match="y: expected numbers that float32"):
        Regressor(epochs=1).fit(X, X[:, 0] * 1e300)
    with pytest.raises(DivergenceError):
        Regressor(linear, optimizer=tg.optim.SGD, learning_rate=1e30).fit(X, X[:, 0])
