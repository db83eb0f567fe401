"""Images with what they are and what they were taken for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.base import AnyPath, DtypeError, ShapeError, whole, writable
from tinygraph.base.page_text import clip, for_matplotlib
from tinygraph.engine import Array
from tinygraph.ops.common import documented
from tinygraph.show.figures import CLASSES, PICTURE, new_figure, save
from tinygraph.show.labels import as_array, checked_pair, in_turn

RIGHT, WRONG = "#808890", "#c4281b"


@documented(CLASSES)
@documented(PICTURE)
def samples(
    images: Any,
    labels: Any,
    predictions: Any,
    classes: Sequence[Any] | None = None,
    path: AnyPath = "samples.png",
    *,
    limit: int = 48,
    wrong_first: bool = False,
) -> Path:
    """Draw images in a grid, each with its class; a wrong prediction is framed and named too.

    Above an image stands its class, or "truth → prediction ✗" where they differ.

    Parameters
    ----------
    images : Tensor or array (N, H, W), (N, 1, H, W) or (N, 3, H, W)
        Grey, or red, green, blue.  Bytes are taken as they are, floats too if all lie in [0, 1];
        other numbers are brought there by one scale for all images.
    limit : int
        How many images at most; the title says of how many.
    wrong_first : bool
        Draw the wrong ones before the others, both by class; where there are more than `limit`, as
        many of each class as can be.

    Raises
    ------
    ShapeError
        ... The images have other axes, or there are not as many of them.
    DtypeError
        ... The images are no numbers.
    ArgumentError
        ... A bad limit; a negative class, one without a name, more than 1000 of them.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> images = tg.randn(4, 1, 8, 8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/samples.png"
    ...     tg.show.samples(images, [0, 1, 1, 0], [0, 1, 0, 0], ["cat", "dog"], path).name
    'samples.png'
    """
    target = writable("show.samples", path, (".svg", ".png", ".pdf"))
    whole("show.samples", "limit", limit, most=400)
    truth, predicted, names = checked_pair("show.samples", labels, predictions, classes)
    checked = checked_images("show.samples", images, truth.size)
    wrong = truth != predicted
    chosen = np.arange(truth.size)[:limit]
    if wrong_first:
        chosen = in_turn(truth, wrong, limit)
        chosen = np.concatenate([chosen, in_turn(truth, ~wrong, limit - chosen.size)])
    drawn = as_bytes(checked, chosen)
    columns = min(len(chosen), max(2, round(math.sqrt(1.5 * len(chosen)))))
    rows = math.ceil(len(chosen) / columns)
    figure = new_figure(max(1.15 * columns, 3.5), 1.3 * rows + 0.4)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, k, image in zip(grid, chosen, drawn, strict=False):
        axes.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        text, style = names[truth[k]], {"color": "black"}
        if wrong[k]:
            text = f"{clip(text, 8)} → {clip(names[predicted[k]], 8)} ✗"
            style = {"color": WRONG, "fontweight": "bold"}
        size = 8 if len(text) < 14 else 6
        axes.set_title(for_matplotlib(text, 22), fontsize=size, pad=3, **style)
        axes.set(xticks=[], yticks=[])
        for side in axes.spines.values():
            side.set(color=WRONG if wrong[k] else RIGHT, linewidth=2.5 if wrong[k] else 0.5)
    for axes in grid[len(chosen) :]:
        axes.set_axis_off()
    title = f"{truth.size} samples, {int(wrong.sum())} wrong"
    if len(chosen) < truth.size:
        title = f"{len(chosen)} of {title} in all"
    figure.suptitle(title, fontsize=9)
    return save(figure, target)


def checked_images(op: str, images: Any, number: int) -> Array:
    """Images with the channels last, (N, H, W, 1 or 3); or an error."""
    array = as_array(images)
    if array.dtype.kind not in "fiu":
        raise DtypeError(op, "images", "numbers", array.dtype)
    if array.ndim == 3:
        array = array[:, None]
    if array.ndim != 4 or array.shape[1] not in (1, 3) or 0 in array.shape:
        raise ShapeError(
            op,
            "images",
            "axes (N, H, W), (N, 1, H, W) or (N, 3, H, W), none empty",
            f"shape {as_array(images).shape}",
        )
    if len(array) != number:
        raise ShapeError(op, "images", f"as many as labels, {number}", len(array))
    return array.transpose(0, 2, 3, 1)


def as_bytes(images: Array, chosen: Array) -> Array:
    """Some of the images (N, H, W, 1 or 3) as bytes; what is not finite is black."""
    part = images[chosen]
    if images.dtype == np.uint8:
        return part
    finite = images[np.isfinite(images)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if images.dtype.kind == "f" and low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    part = np.where(np.isfinite(part), part.astype(np.float64), low)
    return np.rint((part - low) / ((high - low) or 1.0) * 255).astype(np.uint8)
