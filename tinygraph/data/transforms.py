"""Transforms of samples, whose random numbers are a pure function of (seed, epoch, sample).

    inputs   one sample, (..., H, W): an image, or the channels of one
    target   its label; or an image of the same height and width, which is cut and flipped likewise

A sample looks the same whichever batch it is in, whichever thread or process makes it, and whether
or not the run was stopped before.  Epochs differ from one another.

A transform is a function of (inputs, target, draws) that returns (inputs, target).  Those of images
work on the last two axes; one call takes one decision, be its input a sample or a whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, ShapeError, number, whole
from tinygraph.data.draws import Draws
from tinygraph.data.image_folder import height_and_width
from tinygraph.data.images import pillow
from tinygraph.engine import Array


@dataclass(frozen=True)
class Transform:
    """A function of (inputs, target, draws) that can be printed, and sent to a worker."""

    text: str
    function: Callable[[Any, Any, Draws], tuple[Any, Any]]

    def __call__(self, inputs: Any, *rest: Any) -> tuple[Any, Any]:
        """What becomes of the inputs, a target and draws; `rest` is these two."""
        if len(rest) != 2:
            way_out = "tg.data.TransformedDataset(dataset, transform) gives each sample its own"
            name = self.text.partition("(")[0]
            raise ArgumentError(
                name, "draws", "a sample, its target and Draws", "no Draws", way_out
            )
        return self.function(inputs, *rest)

    def __repr__(self) -> str:
        return self.text


def random_crop(size: int | tuple[int, int], padding: int = 0) -> Transform:
    """Cut a window out of each image, at a random place.

    Parameters
    ----------
    size : int or (int, int)
        Height and width of the window.
    padding : int
        Rows and columns of zeros that are put around the image first.

    Returns
    -------
    Transform
        For `TransformedDataset` and `compose`.  A target that is an image is cut at the same place.

    Raises
    ------
    ArgumentError
        A bad size or padding.
    ShapeError
        When it is applied: the image is smaller than the window.

    References
    ----------
    Krizhevsky, Sutskever, Hinton, "ImageNet classification with deep convolutional neural
    networks", 2012, section 4.1.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> data = tg.data.ArrayDataset(np.zeros((2, 3, 9, 9)), [0, 1])
    >>> cropped = tg.data.TransformedDataset(data, tg.data.random_crop(4), seed=0)
    >>> cropped[:][0].shape
    (2, 3, 4, 4)
    """
    height, width = height_and_width("random_crop", "size", size)
    whole("random_crop", "padding", padding, 0)

    settings = partial(_crop, height, width, padding)
    return Transform(f"random_crop({(height, width)}, padding={padding})", settings)


def _crop(
    height: int, width: int, padding: int, inputs: Any, target: Any, draws: Draws
) -> tuple[Any, Any]:
    rows, columns = (n + 2 * padding for n in _plane("random_crop", inputs))
    if rows < height or columns < width:
        raise ShapeError(
            "random_crop",
            "inputs",
            f"at least {height} by {width} pixels",
            f"{rows} by {columns}",
            "use a smaller window, or padding",
        )
    top, left = draws.integer(rows - height + 1), draws.integer(columns - width + 1)

    def window(image: Array) -> Array:
        if padding:
            edges = [(0, 0)] * (image.ndim - 2) + [(padding, padding)] * 2
            image = np.pad(image, edges)
        return image[..., top : top + height, left : left + width]

    return _both("random_crop", window, inputs, target)


def horizontal_flip(probability: float = 0.5) -> Transform:
    """Mirror each image, left to right, with a probability.

    Parameters
    ----------
    probability : float
        From 0 to 1.

    Returns
    -------
    Transform
        A target that is an image is mirrored with its input.

    Raises
    ------
    ArgumentError
        A probability outside 0 to 1.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> data = tg.data.ArrayDataset([[[[1, 2, 3]]]], [0])
    >>> tg.data.TransformedDataset(data, tg.data.horizontal_flip(1.0), seed=0)[0]
    (array([[[3, 2, 1]]]), np.int64(0))
    """
    number("horizontal_flip", "probability", probability, 0, 1)

    return Transform(f"horizontal_flip({probability})", partial(_flip, probability))


def _flip(probability: float, inputs: Any, target: Any, draws: Draws) -> tuple[Any, Any]:
    _plane("horizontal_flip", inputs)
    if draws.uniform() >= probability:
        return inputs, target
    return _both("horizontal_flip", lambda image: image[..., ::-1], inputs, target)


def degrade(scale: int) -> Transform:
    """Make pairs for super-resolution: the image without its details, and the image.

    The input becomes the image shrunk by `scale` and enlarged again, bicubic, in float32; the
    target, whatever it was, becomes the image.  Rows and columns beyond a multiple of the scale are
    cut off both.  Nothing is rounded or clipped.

    Before `random_crop`, whole images are degraded and then pairs cut out; after it, windows are
    degraded, which costs less and differs near their edges.

    Parameters
    ----------
    scale : int
        At least 2.

    Returns
    -------
    Transform
        Needs Pillow.

    Raises
    ------
    ArgumentError
        A bad scale.
    ShapeError
        When it is applied: an image smaller than the scale.
    DatasetError
        Pillow is not installed.

    References
    ----------
    Dong, Loy, He, Tang, "Image super-resolution using deep convolutional networks", 2014; the
    kernel is that of Keys, "Cubic convolution interpolation for digital image processing", 1981,
    with a = -1/2, widened when it shrinks.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> data = tg.data.ArrayDataset(np.ones((1, 1, 7, 9), np.float32), [0])
    >>> low, high = tg.data.TransformedDataset(data, tg.data.degrade(3), seed=0)[0]
    >>> low.shape, high.shape
    ((1, 6, 9), (1, 6, 9))
    """
    whole("degrade", "scale", scale, 2)
    pillow("degrade")  # an error now, rather than at the first sample
    return Transform(f"degrade({scale})", partial(_degrade, scale))


def _degrade(scale: int, inputs: Any, target: Any, draws: Draws) -> tuple[Any, Any]:
    library = pillow("degrade")

    def resize(plane: Array, height: int, width: int) -> Array:
        image = library.fromarray(plane)
        return np.asarray(image.resize((width, height), library.Resampling.BICUBIC))

    rows, columns = (n // scale for n in _plane("degrade", inputs))
    if not rows or not columns:
        raise ShapeError(
            "degrade",
            "inputs",
            f"at least {scale} by {scale} pixels",
            " by ".join(map(str, inputs.shape[-2:])),
        )
    high = np.ascontiguousarray(inputs[..., : rows * scale, : columns * scale], np.float32)
    low = np.empty_like(high)
    planes = zip(high.reshape(-1, *high.shape[-2:]), low.reshape(-1, *low.shape[-2:]), strict=True)
    for before, after in planes:
        after[...] = resize(resize(before, rows, columns), *after.shape)
    return low, high


def compose(*transforms: Callable[[Any, Any, Draws], tuple[Any, Any]]) -> Transform:
    """One transform after the other, on the numbers of one sample.

    Parameters
    ----------
    *transforms : Transform
        Or functions of (inputs, target, draws) that return (inputs, target).

    Returns
    -------
    Transform

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.data.compose(tg.data.degrade(3), tg.data.random_crop(33))
    compose(degrade(3), random_crop((33, 33), padding=0))
    """

    return Transform(f"compose({', '.join(map(repr, transforms))})", partial(_chain, transforms))


def _chain(transforms: Any, inputs: Any, target: Any, draws: Draws) -> tuple[Any, Any]:
    for transform in transforms:
        inputs, target = transform(inputs, target, draws)
    return inputs, target


class Compose:
    """Functions of one thing, one after the other: for the `__getitem__` of a dataset of one's own.

    Where numbers are to be drawn, use `TransformedDataset`, with `compose` for several transforms.

    Parameters
    ----------
    transforms : sequence of callable
        Each takes what the one before has returned.

    Raises
    ------
    ArgumentError
        A `Transform`, which takes a target and random numbers as well; or something not callable.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> prepare = tg.data.Compose([np.float32, lambda x: x / 2, lambda x: x - 1])
    >>> prepare([4, 8])
    array([1., 3.], dtype=float32)
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = list(transforms)
        for place, transform in enumerate(self.transforms):
            if isinstance(transform, Transform) or not callable(transform):
                raise ArgumentError(
                    "Compose",
                    f"transforms[{place}]",
                    "a function of one argument",
                    repr(transform),
                    "TransformedDataset(data, compose(...)) for transforms of pairs",
                )

    def __call__(self, sample: Any) -> Any:
        for transform in self.transforms:
            sample = transform(sample)
        return sample

    def __repr__(self) -> str:
        return f"Compose({self.transforms!r})"


def _plane(op: str, inputs: Any) -> tuple[int, int]:
    """Height and width of a sample."""
    if np.ndim(inputs) < 2:
        raise ShapeError(op, "inputs", "images (..., H, W)", f"samples of shape {np.shape(inputs)}")
    height, width = inputs.shape[-2:]
    return height, width


def _both(
    op: str, change: Callable[[Array], Array], inputs: Array, target: Any
) -> tuple[Array, Any]:
    """Change the input, and the target too if it is an image."""
    if np.ndim(target) < 2:
        return change(inputs), target
    if target.shape[-2:] != inputs.shape[-2:]:
        raise ShapeError(
            op,
            "target",
            f"{inputs.shape[-2]} by {inputs.shape[-1]} pixels, as the input has",
            f"shape {target.shape}",
            "change the input before it is paired",
        )
    return change(inputs), change(target)
