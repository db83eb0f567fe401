"""The pictures of an SRCNN run: how it came near to the originals, its filters, what it sees."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tinygraph import nn, show
from tinygraph.base import AnyPath, as_path
from tinygraph.engine import Array
from tinygraph.recipes.srcnn_network import LAYERS
from tinygraph.recipes.srcnn_quality import levels, psnr
from tinygraph.recipes.srcnn_samples import Pair
from tinygraph.recipes.srcnn_tiles import enhance
from tinygraph.show.curves import is_number
from tinygraph.show.figures import drawable, new_figure, save
from tinygraph.training import RunFolder

LEARNT, BICUBIC = "#2f66c4", "#c4512f"
DETAIL = 96  # pixels of a picture that the comparison and the feature maps show


def draw_run(
    run: RunFolder, network: nn.Sequential, pair: Pair | None, scale: int
) -> Iterator[Path]:
    """Draw the pictures of a run, and yield the path of each; without `pair` those of parameters.

    Of `pair`, a picture, the middle is shown.
    """
    rows = run.rows()
    if _measured(rows):
        yield draw_quality(rows, run.path / "quality.svg")
    weights = dict(network.named_parameters())
    for number, name in ((1, LAYERS[0]), (3, LAYERS[2])):
        yield show.filters(weights[f"{name}.weight"], run.path / f"filters_{number}.png")
    if pair is not None:
        maps = show.activations(network, _middle(pair.low)[None])
        for number, name in ((1, "1"), (2, "3")):
            path = run.path / f"feature_maps_{number}.png"
            yield show.feature_maps(maps[name], path, scale="each")
        yield draw_comparison(network, pair, scale, run.path / "comparison.png")


def _measured(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """What a picture can show of those rows of a log that have all of it; a log may be edited."""
    names = ("epoch", "psnr", "ssim", "bicubic_psnr", "bicubic_ssim")
    whole = [
        row
        for row in rows
        if all(is_number(row.get(name)) and math.isfinite(row[name]) for name in names)
    ]
    return [{name: float(drawable(row[name])) for name in names} for row in whole]


def draw_quality(rows: Sequence[Mapping[str, Any]], path: AnyPath) -> Path:
    """PSNR and SSIM on the validation pictures after each epoch, over bicubic's constant lines.

    Rows of the log that nothing was measured after are passed over.
    """
    measured = _measured(rows)
    epochs = [row["epoch"] for row in measured]
    figure = new_figure(10.4, 3.6)
    panels = ("psnr", "PSNR (dB)"), ("ssim", "SSIM")
    for axes, (name, label) in zip(figure.subplots(1, 2), panels, strict=True):
        learnt = [row[name] for row in measured]
        marker = "o" if len(learnt) <= 30 else None
        text = f"SRCNN, last {learnt[-1]:.4g}"
        axes.plot(epochs, learnt, color=LEARNT, marker=marker, markersize=4, label=text)
        known = measured[-1][f"bicubic_{name}"]
        axes.axhline(known, color=BICUBIC, linestyle="--", label=f"bicubic {known:.4g}")
        low = min(known, *learnt[len(learnt) // 10 :])  # the first epochs may lie far below
        high = max(known, *learnt)
        axes.set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low))
        axes.set(xlabel="epoch", ylabel=label, title=f"{label}, mean over pictures")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.3)
        axes.legend(loc="center right")
    return save(figure, as_path("show", "path", path))


def compared(network: nn.Sequential, pair: Pair, scale: int) -> dict[str, Array]:
    """The middle of a picture: bicubic, SRCNN, original; with the PSNR of the whole picture."""
    truth = levels(pair.high[0], scale)
    images = {}
    for word, luma in (("bicubic", pair.low), ("SRCNN", enhance(network, pair.low[0])[None])):
        images[f"{word}, {psnr(levels(luma[0], scale), truth):.2f} dB"] = _middle(luma)[0]
    return {**images, "original": _middle(pair.high)[0]}


def draw_comparison(network: nn.Sequential, pair: Pair, scale: int, path: AnyPath) -> Path:
    """The images of `compared` side by side."""
    figure = new_figure(9.6, 3.5)
    images = compared(network, pair, scale).items()
    for axes, (title, image) in zip(figure.subplots(1, 3), images, strict=True):
        axes.imshow(image, cmap="gray", vmin=16 / 255, vmax=235 / 255, interpolation="nearest")
        axes.set_axis_off()
        axes.set_title(title, fontsize=10)
    return save(figure, as_path("show", "path", path))


def _middle(plane: Array) -> Array:
    """The middle of (1, H, W), DETAIL pixels high and wide at most."""
    top, left = (max((n - DETAIL) // 2, 0) for n in plane.shape[1:])
    return plane[:, top : top + DETAIL, left : left + DETAIL]
