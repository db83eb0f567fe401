"""scikit-learn: a network and the Trainer as an estimator, for pipelines and grid searches.

    X (N, F) ---> module ---> logits (N, classes) ---> softmax, argmax           Classifier
                         '--> values (N, targets)                                Regressor

    fit           a new network and a new optimiser, and epochs of the Trainer
    partial_fit   one epoch more; as many of them as `epochs` on the same data equal one `fit`

The rules of scikit-learn hold: arguments are looked at in `fit`, which leaves them as they are;
what is learnt ends with an underscore; equal seeds give equal results.  A prediction has the same
bits whatever samples are asked for beside it: batches always have `batch_size` rows, the last one
filled up, so that products of matrices are always those of one size.

It needs scikit-learn 1.5, which the extra `data` installs.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, ShapeError, explain, install, number, unmasked, whole
from tinygraph.data import ArrayDataset, DataLoader
from tinygraph.engine import Array, Device, Tensor, as_tensor, default_generator, no_grad
from tinygraph.nn import Flatten, Linear, Module, ReLU, Sequential
from tinygraph.ops.losses.cross_entropy import cross_entropy
from tinygraph.ops.losses.mse_loss import mse_loss
from tinygraph.ops.reductions.softmax import softmax
from tinygraph.optim import Adam, Optimizer
from tinygraph.training.evaluation import device_of
from tinygraph.training.trainer import Trainer

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted
except ImportError as missing:
    raise ImportError(
        explain("tg.sklearn", "sklearn", "scikit-learn 1.5 or newer", missing, install("data"))
    ) from missing

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # before 1.6 it was a method

    def validate_data(estimator: Any, *data: Any, **options: Any) -> Any:
        return estimator._validate_data(*data, **options)


__all__ = ["Classifier", "Regressor"]

HIDDEN = 64  # units of the network that an estimator makes itself

_drawing = threading.RLock()  # all draw from one generator, and estimators may be fit in threads


class _Estimator(BaseEstimator):
    """What both have: the arguments, which `Classifier` describes, and the training."""

    def __init__(
        self,
        module: Module | Callable[[int, int], Module] | None = None,
        *,
        optimizer: Callable[..., Optimizer] | None = None,
        loss: Callable[[Tensor, Tensor], Tensor] | None = None,
        learning_rate: float = 0.01,
        epochs: int = 30,
        batch_size: int = 32,
        device: str | Device | None = None,
        random_state: Any = None,
        trainer_options: Mapping[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        self.module = module
        self.optimizer = optimizer
        self.loss = loss
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.device = device
        self.random_state = random_state
        self.trainer_options = trainer_options
        self.verbose = verbose

    # ---- a new network ----------------------------------------------------------------------

    def _begin(self, x: Array, outputs: int) -> None:
        """A network and an optimiser that have learnt nothing, for samples like these."""
        op = type(self).__name__
        lr = number(op, "learning_rate", self.learning_rate, above=0)
        whole(op, "epochs", self.epochs)
        rows = whole(op, "batch_size", self.batch_size)
        seed = int(check_random_state(self.random_state).randint(2**31))
        self._draws = {"seed": seed, "stream": 0}
        with self._randomness():
            module = self._network(x, outputs).to(self.device).eval()
            optimizer = (self.optimizer or Adam)(module.parameters(), lr=lr)
        got = _outputs(module, self._as_numbers("X", x[:1], module), rows).shape
        if got != (1, outputs):
            expected = f"a network whose output for a batch (N, ...) is (N, {outputs})"
            way_out = "a function module(n_inputs, n_outputs) is told both"
            raise ShapeError(op, "module", expected, f"{got} for N = 1", way_out)
        self.module_, self.optimizer_, self.batch_size_ = module, optimizer, rows
        self.history_: list[dict[str, Any]] = []

    def _network(self, x: Array, outputs: int) -> Module:
        if isinstance(self.module, Module):
            return copy.deepcopy(self.module)
        if self.module is None:
            inputs = int(np.prod(x.shape[1:]))
            return Sequential(Flatten(), Linear(inputs, HIDDEN), ReLU(), Linear(HIDDEN, outputs))
        made = self.module(x.shape[1], outputs) if callable(self.module) else self.module
        if not isinstance(made, Module):
            expected = "a Module, or a function of (n_inputs, n_outputs) that makes one"
            raise ArgumentError(type(self).__name__, "module", expected, repr(made))
        return made

    @contextmanager
    def _randomness(self) -> Iterator[None]:
        """Draw where this estimator's last draw ended; the program's own draws go on as before."""
        with _drawing:
            before = default_generator.state_dict()
            default_generator.load_state_dict(self._draws)
            try:
                yield
            finally:
                self._draws = default_generator.state_dict()
                default_generator.load_state_dict(before)

    # ---- learning and predicting ------------------------------------------------------------

    def _learn(self, x: Array, targets: Array, loss: Any, epochs: int) -> None:
        """Some epochs more."""
        data = ArrayDataset(self._as_numbers("X", x, self.module_), targets)
        loader = DataLoader(data, self.batch_size_, shuffle=True, seed=self._draws["seed"])
        options = dict(self.trainer_options or {})
        options.setdefault("progress", None if self.verbose else False)
        trainer = Trainer(self.module_, self.optimizer_, self.loss or loss, **options)
        trainer.epoch = loader.epoch = len(self.history_)
        with self._randomness():
            self.history_ += trainer.fit(loader, epochs=epochs)

    def _samples(self, x: Any, *y: Any, new: bool = False, **checks: Any) -> Any:
        """X, or X and y, as arrays that have passed scikit-learn's checks."""
        for name, given in zip(("X", "y"), (x, *y), strict=False):
            unmasked(type(self).__name__, name, given)
        dtypes = [np.float64, np.float32]
        return validate_data(self, x, *y, reset=new, dtype=dtypes, allow_nd=True, **checks)

    def _predicted(self, x: Any) -> Array:
        """The network's output for each sample, (N, outputs)."""
        check_is_fitted(self, "module_")
        inputs = self._as_numbers("X", self._samples(x), self.module_)
        return _outputs(self.module_, inputs, self.batch_size_)

    def _as_numbers(self, name: str, array: Array, module: Module) -> Array:
        """An argument in the dtype of the network's parameters."""
        dtype = next((p.dtype for p in module.parameters()), np.dtype(np.float32))
        with np.errstate(over="ignore"):
            made = array.astype(dtype, copy=False)
        if not np.isfinite(made).all():
            largest = f"{abs(array).max():g}"
            way_out = "scale the data, as by StandardScaler"
            expected = f"numbers that {dtype} can hold"
            raise ArgumentError(type(self).__name__, name, expected, largest, way_out)
        return made


def _outputs(module: Module, inputs: Array, rows: int) -> Array:
    """The network's output for each sample, from batches of so many rows."""
    parts, device = [], device_of(module)
    with no_grad():
        for first in range(0, len(inputs), rows):
            places = np.arange(first, first + rows).clip(max=len(inputs) - 1)
            out = module(as_tensor(inputs[places], device=device)).numpy()
            parts.append(out[: len(inputs) - first])
    return np.concatenate(parts)


class Classifier(ClassifierMixin, _Estimator):
    """A network that tells classes apart, as an estimator of scikit-learn.

    Parameters
    ----------
    module : Module or function of (n_inputs, n_outputs), optional
        The network, from X (N, F) to logits (N, classes).  Of a Module each `fit` trains a copy,
        from the weights that it has; a function makes a new one, of as many inputs as X has on axis
        1, so that weights depend on `random_state`.  By default one hidden layer of 64 units.
    optimizer : function of (parameters, lr), optional
        By default `tg.optim.Adam`.
    loss : function of (logits, labels), optional
        By default `tg.cross_entropy`.
    learning_rate : float
        What the optimiser gets as `lr`.
    epochs : int
        How often `fit` goes through the data.
    batch_size : int
        Samples that are learnt from, or predicted, at a time.
    device : str, optional
        Where the network lies: "cpu" by default, "emulator" or "cuda".
    random_state : int, RandomState or None
        Fixes weights, order of the samples and dropout.
    trainer_options : dict, optional
        Further arguments of the Trainer, such as `{"compile": True, "clip_norm": 1.0}`.
    verbose : bool
        Whether epochs are shown.

    Attributes
    ----------
    classes_ : array
        The labels of y, sorted: logit i is that of `classes_[i]`.
    module_ : Module
        The network that was trained.
    optimizer_ : Optimizer
        What has trained it, with which `partial_fit` goes on.
    history_ : list of dict
        A row for each epoch, as `Trainer.fit` returns it.

    Raises
    ------
    ArgumentError
        In `fit`, of an argument; a ValueError, as all that scikit-learn raises about X and y.
    ShapeError
        In `fit`, before anything is learnt: the network gives another number of logits.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from tinygraph import nn
    >>> from tinygraph.interop.sklearn import Classifier
    >>> def network(n_inputs, n_outputs):
    ...     return nn.Sequential(nn.Linear(n_inputs, 16), nn.Tanh(), nn.Linear(16, n_outputs))
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), Classifier(network, epochs=10, random_state=0))
    >>> model.fit(X, y).score(X, y) > 0.9
    True

    References
    ----------
    https://scikit-learn.org/stable/developers/develop.html
    """

    def fit(self, X: Any, y: Any) -> Classifier:
        """Train a new network on samples X (N, F) and their labels y (N,), of any kind."""
        x, labels = self._samples(X, y, new=True)
        self._begin_classes(x, labels, np.unique(labels))
        self._learn(x, np.searchsorted(self.classes_, labels), cross_entropy, self.epochs)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Classifier:
        """One epoch more; the first call needs `classes`, all labels that may ever come."""
        first = not hasattr(self, "module_")
        if first and classes is None:
            way_out = "classes=numpy.unique(all labels)"
            raise ArgumentError("partial_fit", "classes", "the labels of all data", None, way_out)
        x, labels = self._samples(X, y, new=first)
        if first:
            self._begin_classes(x, labels, np.unique(classes))
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            expected = f"those of the first call, {self.classes_}"
            raise ArgumentError("partial_fit", "classes", expected, classes)
        if not np.isin(labels, self.classes_).all():
            raise ArgumentError("partial_fit", "y", f"labels among {self.classes_}", "others")
        self._learn(x, np.searchsorted(self.classes_, labels), cross_entropy, 1)
        return self

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, float64 (N, classes): the softmax of the logits."""
        logits = self._predicted(X).astype(np.float64)
        return softmax(as_tensor(logits), -1).numpy()

    def predict(self, X: Any) -> Array:
        """The most probable class of each sample, (N,), as y has it."""
        places = self._predicted(X).argmax(1)
        found: Array = self.classes_[places]
        return found

    def _begin_classes(self, x: Array, labels: Array, classes: Array) -> None:
        check_classification_targets(labels)
        self._begin(x, len(classes))
        self.classes_ = classes


class Regressor(RegressorMixin, _Estimator):
    """A network that predicts numbers, as an estimator of scikit-learn.

    Parameters
    ----------
    module : Module or function of (n_inputs, n_outputs), optional
        The network, from X (N, F) to (N, targets); as in `Classifier`.
    optimizer, learning_rate, epochs, batch_size, device, random_state, trainer_options, verbose
        As in `Classifier`.
    loss : function of (output, y), optional
        Both (N, targets); by default `tg.mse_loss`.

    Attributes
    ----------
    module_, optimizer_, history_
        As in `Classifier`.

    Raises
    ------
    ArgumentError, ShapeError
        As in `Classifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from tinygraph.interop.sklearn import Regressor
    >>> X = np.linspace(-1, 1, 64)[:, None]
    >>> model = Regressor(epochs=60, random_state=0).fit(X, X[:, 0] ** 2)
    >>> model.score(X, X[:, 0] ** 2) > 0.9
    True

    References
    ----------
    https://scikit-learn.org/stable/developers/develop.html
    """

    def fit(self, X: Any, y: Any) -> Regressor:
        """Train a new network on samples X (N, F) and numbers y, (N,) or (N, targets)."""
        return self._fit(X, y, new=True)

    def partial_fit(self, X: Any, y: Any) -> Regressor:
        """One epoch more."""
        return self._fit(X, y, new=not hasattr(self, "module_"), epochs=1)

    def predict(self, X: Any) -> Array:
        """The predicted numbers, float64 and shaped as y was: (N,) or (N, targets)."""
        found = self._predicted(X).astype(np.float64)
        return found[:, 0] if self._flat else found

    def _fit(self, X: Any, y: Any, new: bool, epochs: int | None = None) -> Regressor:
        x, values = self._samples(X, y, new=new, multi_output=True, y_numeric=True)
        targets = values.reshape(len(values), -1)  # (N, targets)
        if new:
            self._begin(x, targets.shape[1])
            self._flat = values.ndim == 1
        self._learn(
            x, self._as_numbers("y", targets, self.module_), mse_loss, epochs or self.epochs
        )
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _more_tags(self) -> dict[str, Any]:
        """The same, for scikit-learn 1.5."""
        return {"multioutput": True}
