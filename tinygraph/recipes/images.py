"""ImageRecipe and PictureRecipe: what recipes share that name the class of an image."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import tinygraph as tg
from tinygraph import nn, show
from tinygraph.base import ArgumentError, DatasetError, nearest
from tinygraph.data import (
    ArrayDataset,
    TransformedDataset,
    compose,
    datasets,
    horizontal_flip,
    random_crop,
)
from tinygraph.data.transforms import Transform
from tinygraph.engine import Tensor
from tinygraph.recipes.recipe import Recipe
from tinygraph.recipes.task import TRAIN_SHARE, Data, Folder
from tinygraph.training import RunFolder

Shape3 = tuple[int, int, int]


class ImageRecipe(Recipe):
    """Images of the dataset `config.data`, x = (value - mean) / std over the training part.

    The facts that a run remembers are `image_shape` (C, H, W), `train_share`, `mean`, `std`.
    """

    def data(self, config: Any, data_dir: Folder = None, download: bool = False) -> Data:
        """Load a dataset, hold a tenth of the training part out, and standardise everything.

        Raises
        ------
        ArgumentError
            No dataset of images has that name; the message lists those that there are.
        DatasetError
            Its files are missing or damaged.
        """
        if config.data not in datasets:
            known = ", ".join(datasets)
            expected = "a dataset of images with labels"
            way_out = (
                nearest(config.data, datasets)
                or f"known: {known}; other data have a recipe of their "
                "own, `tinygraph recipes` lists them"
            )
            raise ArgumentError(self.name, "data", expected, repr(config.data), way_out)
        whole = tg.data.load(config.data, "train", data_dir, download)
        test = tg.data.load(config.data, "test", data_dir, download)  # a missing file shows now
        training, held_out = whole.split(TRAIN_SHARE, config.seed)
        facts = {
            "image_shape": list(training.inputs.shape[1:]),
            "train_share": TRAIN_SHARE,
            "mean": float(training.inputs.mean()),
            "std": float(training.inputs.std()),
        }
        for part in (training, held_out, test):
            standardise(part, facts)
        return Data(training, held_out, test, facts)

    def test_data(self, config: Any, facts: dict[str, Any], data_dir: Folder) -> Any:
        test = tg.data.load(config.data, "test", data_dir)
        standardise(test, facts)
        return test

    def graph(self, config: Any, network: Any, facts: dict[str, Any]) -> Tensor:
        """The loss of one image."""
        images = Tensor(tg.zeros((1, *image_shape(facts))), name="images")
        return self.loss(network(images), tg.tensor([0], name="labels"))

    def pictures(self, run: RunFolder, config: Any, network: Any) -> Iterator[Path]:
        """The curves, and the filters that look at the pixels."""
        yield from super().pictures(run, config, network)
        weights = first_weights(network, image_shape(run.config))
        yield show.filters(weights, run.path / "filters.png")


class PictureRecipe(ImageRecipe):
    """CIFAR-10 where its files are found, otherwise digits; images are shifted and mirrored.

    Of the settings `data` and `augment` are read here.

    Attributes
    ----------
    shift : float
        How far an image is moved at most, each way, as a share of its size.
    """

    shift: ClassVar[float]

    def data(self, config: Any, data_dir: Folder = None, download: bool = False) -> Data:
        """As every ImageRecipe, augmented; the settings name the data where none were asked for."""
        found = self._found(config, data_dir, download)
        augment = self.augmentation(config, image_shape(found.facts))
        if augment is None:
            return found
        return replace(found, training=TransformedDataset(found.training, augment, config.seed))

    def augmentation(self, config: Any, shape: Shape3) -> Transform | None:
        """What is done with an image of the training part, if anything.

        Only pictures of CIFAR-10 are mirrored: a mirrored horse is a horse, a mirrored 2 is no 2.
        """
        shift = int(min(shape[1:]) * self.shift)
        transforms = [random_crop(shape[1:], padding=shift)] if shift else []
        transforms += [horizontal_flip()] if config.data == "cifar10" else []
        return compose(*transforms) if config.augment and transforms else None

    def summary_of(self, network: Any, batch: Any) -> str:
        return f"{super().summary_of(network, batch)}\n{shape_chain(network, batch.shape[1:])}"

    def _found(self, config: Any, data_dir: Folder, download: bool) -> Data:
        if config.data is None:
            config.data = "cifar10"
            try:
                return super().data(config, data_dir, download)
            except DatasetError as error:
                if data_dir is not None:  # a folder was named: what is wrong with it is the answer
                    raise
                text = f"{error}. Until then this trains on the digits that tinygraph brings along"
                warnings.warn(text, stacklevel=3)
            config.data = "digits"
        return super().data(config, data_dir, download)


def image_shape(facts: dict[str, Any]) -> Shape3:
    """(C, H, W) of the images of a run."""
    channels, height, width = facts["image_shape"]
    return int(channels), int(height), int(width)


def standardise(data: ArrayDataset, facts: dict[str, Any]) -> None:
    """Shift and scale the inputs in place."""
    mean, std = float(facts["mean"]), float(facts["std"])
    if not (math.isfinite(mean) and math.isfinite(std) and std > 0):
        raise ValueError(f"mean {mean} and std {std}, where finite numbers are, std above 0")
    data.inputs -= mean
    data.inputs /= std


def first_weights(network: nn.Module, shape: Shape3) -> Any:
    """The weights that look at the pixels, as images (O, C, KH, KW)."""
    first = next(p for _, p in network.named_parameters() if p.ndim in (2, 4))
    return first.value if first.ndim == 4 else first.value.reshape(-1, *shape)


def shape_chain(network: nn.Sequential, image_shape: Shape3) -> str:
    """The shape of an image on its way through the parts of the network.

    >>> network = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.Flatten())
    >>> shape_chain(network, (3, 32, 32))
    '3x32x32 -> 8x16x16 -> 2048'
    """
    device = next(network.parameters()).device
    x, shapes = tg.zeros((1, *image_shape), device=device), [image_shape]
    before = network.training
    network.eval()
    with tg.no_grad():
        for part in network:
            x = part(x)
            shapes.append(x.shape[1:])
    network.train(before)
    return " -> ".join("x".join(map(str, shape)) for shape in shapes)
