"""TransformedDataset: samples that are changed (transforms.py) when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinygraph.base import ShapeError, unmasked, whole
from tinygraph.base.checks import MAX_WORD
from tinygraph.data.combine import each_sample
from tinygraph.data.dataset import BatchedDataset, at_epoch, chosen
from tinygraph.data.draws import Draws
from tinygraph.engine import Array


class TransformedDataset(BatchedDataset):
    """A dataset whose samples go through a transform when they are asked for.

    Parameters
    ----------
    dataset : ArrayDataset, ImageFolder
        Or anything with a length that gives (inputs, target) at an int.
    transform : Transform
        What is done to each sample.
    seed : int
        Of the random numbers.  To apply several transforms, compose them: two wrappers with one
        seed would draw the same numbers.
    epoch : int
        The epoch that the samples are for.  A DataLoader asks for each epoch itself.

    Raises
    ------
    ArgumentError
        A bad seed or epoch.
    ShapeError
        When a batch is asked for: samples of several shapes.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> data = tg.data.ArrayDataset(np.arange(400).reshape(4, 1, 10, 10), [0, 1, 2, 3])
    >>> cropped = tg.data.TransformedDataset(data, tg.data.random_crop(1), seed=0)
    >>> cropped[:][0].ravel(), cropped.for_epoch(1)[:][0].ravel()
    (array([ 72, 103, 219, 330]), array([ 50, 137, 239, 350]))
    """

    def __init__(
        self,
        dataset: Any,
        transform: Callable[[Any, Any, Draws], tuple[Any, Any]],
        seed: int = 0,
        epoch: int = 0,
    ) -> None:
        self.dataset = dataset
        self.transform = transform
        self.seed = whole("TransformedDataset", "seed", seed, 0, MAX_WORD)
        self.epoch = whole("TransformedDataset", "epoch", epoch, 0, MAX_WORD)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        """(inputs, target) at an int; both stacked, at a slice or an array of ints."""
        places = chosen(index, len(self))
        if not places.ndim:
            return self._changed(int(places), self.dataset[int(places)])
        read = each_sample(self.dataset, places)
        samples = [self._changed(i, pair) for i, pair in zip(places.tolist(), read, strict=True)]
        if not samples:
            return self.dataset[places]
        inputs, targets = zip(*samples, strict=True)
        return _stack("inputs", inputs), _stack("target", targets)

    def _changed(self, i: int, pair: Any) -> tuple[Any, Any]:
        """Sample i, changed; an error says which one it is of."""
        try:
            inputs, target = pair
            return self.transform(inputs, target, Draws(self.seed, self.epoch, i))
        except Exception as error:
            error.add_note(f"at sample {i}, TransformedDataset")
            raise

    def for_epoch(self, epoch: int) -> TransformedDataset:
        """The same samples as they are in another epoch; this dataset stays as it is."""
        dataset = at_epoch(self.dataset, epoch)
        return TransformedDataset(dataset, self.transform, self.seed, epoch)

    def __repr__(self) -> str:
        return f"TransformedDataset({self.dataset!r}, {self.transform!r}, seed={self.seed})"


def _stack(what: str, arrays: Any) -> Array:
    shapes = sorted({np.shape(array) for array in arrays})
    if len(shapes) > 1:
        raise ShapeError(
            "TransformedDataset",
            what,
            "one shape in a batch",
            " and ".join(map(str, shapes[:2])),
            "add random_crop, or use batches of 1",
        )
    return np.stack(unmasked("TransformedDataset", what, arrays))
