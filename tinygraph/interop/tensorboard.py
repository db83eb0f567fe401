"""TensorBoard: how a training goes, in files that TensorBoard shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tinygraph.base import AnyPath, as_path, whole
from tinygraph.engine import Array
from tinygraph.interop.event_file import EventFile, require_library
from tinygraph.show.filters import filter_pixels
from tinygraph.show.labels import checked_pair, in_turn
from tinygraph.show.samples import as_bytes, checked_images
from tinygraph.training.evaluation import first_batch, forward
from tinygraph.training.log import Log
from tinygraph.training.rehearsal import unlearnt
from tinygraph.training.run import RunFolder

MOST_MISTAKES = 16  # images
TILE = 24  # pixels across, that a filter has at least


class TensorBoard(Log):
    """Write what `tensorboard --logdir FOLDER` shows: `Trainer(..., log=TensorBoard(run))`.

    ================  ==========================================================================
    scalars           after each epoch its row of the log and the learning rates; the loss of
                      every so many batches
    histograms        after each epoch the parameters, and their gradients in its last batch
    graph             ops and parameters of the first batch, each module a scope
    images            after each epoch the filters of the first layer, where it looks at images;
                      with a recipe test images that were taken for another class
    ================  ==========================================================================

    The step of everything is the number of batches that are done.  A training that goes on with its
    run goes on there; what a killed process wrote beyond its last checkpoint is no longer shown.

    Parameters
    ----------
    place : RunFolder, str or os.PathLike
        A folder; of a run its `tensorboard`.
    every : int
        After how many batches the loss of one is written.
    histograms : bool
        Whether to write histograms.

    Raises
    ------
    MissingLibraryError
        There is no tensorboardX: it is the extra `tensorboard`.
    ArgumentError
        `every` is no number above 0.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> model = tg.nn.Linear(64, 10)
    >>> sgd = tg.optim.SGD(model.parameters(), lr=0.1)
    >>> loader = tg.data.DataLoader(tg.data.digits("train"), batch_size=100)
    >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +SKIP
    ...     board = tg.training.TensorBoard(folder)
    ...     trainer = tg.training.Trainer(model, sgd, tg.cross_entropy, log=board)
    ...     rows = trainer.fit(loader, epochs=3)
    """

    def __init__(
        self, place: RunFolder | AnyPath, *, every: int = 50, histograms: bool = True
    ) -> None:
        require_library()
        inside = place.path / "tensorboard" if isinstance(place, RunFolder) else place
        self.folder = as_path("TensorBoard", "place", inside)
        self.every = whole("TensorBoard", "every", every)
        self.histograms = histograms
        self._file: Any = None  # while a training is under way
        self._steps: int | None = None  # done so far
        self._shape: tuple[int, ...] = ()  # of a batch of inputs

    def begin(self, trainer: Any, loader: Any) -> None:
        inputs, labels = first_batch(loader)
        self._shape, self._steps = inputs.shape, trainer.steps
        new = not self._steps or not any(self.folder.glob("events.*"))
        self._file = EventFile(self.folder, trainer.steps, f"{trainer.steps:09}")
        if new and not any(getattr(p, "parted", None) for p in trainer.model.parameters()):
            with unlearnt(trainer.model, trainer.optimizer):
                self._file.graph(trainer.loss(*forward(trainer.model, inputs, labels)))
        self._file.flush()

    def batch(self, trainer: Any, loss: float) -> None:
        self._steps = trainer.steps
        if trainer.steps % self.every == 0:
            self._file.scalar("loss/batch", loss, trainer.steps)
            self._file.flush()

    def epoch(self, trainer: Any, row: dict[str, Any]) -> None:
        step = trainer.steps
        for name, value in row.items():
            self._file.scalar(_tag(name), value, step)
        for number, group in enumerate(trainer.optimizer.groups):
            tag = f"learning_rate/{number}" if number else "learning_rate"
            self._file.scalar(tag, float(group["lr"]), step)
        parameters = dict(trainer.model.named_parameters())
        for name, parameter in parameters.items() if self.histograms else ():
            self._file.histogram(f"parameters/{name}", parameter.numpy(), step)
            if parameter.grad is not None:
                gradient = parameter.device.to_numpy(parameter.grad)
                self._file.histogram(f"gradients/{name}", gradient, step)
        weights = _first_weights([p.numpy() for p in parameters.values()], self._shape)
        if weights is not None:
            pixels, _, _ = filter_pixels(weights)
            times = -(-TILE // max(weights.shape[2:]))
            large = pixels.repeat(times, axis=0).repeat(times, axis=1)
            self._file.image("filters/first layer", large, step)
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def answers(self, answers: Mapping[str, Any]) -> None:
        """Up to 16 images that were taken for another class, evenly of all classes."""
        if self._steps is None or "images" not in answers:
            return
        given = [answers.get(name) for name in ("labels", "predictions", "classes")]
        truth, predicted, classes = checked_pair("TensorBoard", *given)
        images = checked_images("TensorBoard", answers["images"], truth.size)
        chosen = in_turn(truth, truth != predicted, MOST_MISTAKES)
        if not chosen.size:
            return
        file = EventFile(self.folder, self._steps, f"{self._steps:09}.answers")
        for k, pixels in zip(chosen, as_bytes(images, chosen), strict=True):
            words = f"{k}, {classes[truth[k]]} taken for {classes[predicted[k]]}"
            file.image(f"mistakes/test image {words}", pixels, self._steps)
        file.close()


def _tag(name: str) -> str:
    """The tag of a column of the log: what was measured, then on what.

    >>> _tag("validation_loss"), _tag("accuracy"), _tag("seconds")
    ('loss/validation', 'accuracy/training', 'seconds')
    """
    if name in ("loss", "accuracy"):
        return f"{name}/training"
    what = name.removeprefix("validation_")
    return name if what == name else f"{what}/validation"


def _first_weights(arrays: list[Array], shape: tuple[int, ...]) -> Array | None:
    """The weights that look at images of a batch (N, C, H, W), as (O, C, KH, KW)."""
    first = next((array for array in arrays if array.ndim in (2, 4)), np.zeros(0))
    if len(shape) != 4 or not first.size:
        return None
    if first.ndim == 4:
        return first if first.shape[1] == shape[1] and max(first.shape[2:]) > 1 else None
    return first.reshape(-1, *shape[1:]) if first.shape[1] == np.prod(shape[1:]) else None
