"""The picture of what a network looks for: how each base at each position speaks for each class.

    influence = w_L ... w_2 w_1   (classes, 240)

The weights of all layers multiplied, as if every sigmoid were a line: signs and sizes, not exact
effects.  The mean over the four bases of a position is taken off, for exactly one of them is there.
"""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import numpy as np

from tinygraph.base import AnyPath, writable
from tinygraph.data.splice import BASES
from tinygraph.engine import Array
from tinygraph.recipes.splice_mlp_network import SigmoidMLP
from tinygraph.show.figures import new_figure, save


def influence(network: SigmoidMLP) -> Array:
    """How bases speak for classes: (classes, 4, positions), float64.

    >>> influence(SigmoidMLP([240, 20, 3])).shape
    (3, 4, 60)
    """
    weights = [weight.numpy().astype(np.float64) for weight, _ in network.by_layer()]
    product = reduce(lambda below, above: above @ below, weights)  # (classes, 4 * positions)
    bases = product.reshape(len(product), -1, len(BASES)).swapaxes(1, 2)
    return bases - bases.mean(axis=1, keepdims=True)


def draw_influence(
    network: SigmoidMLP, classes: tuple[str, ...], path: AnyPath = "influence.png"
) -> Path:
    """Draw a strip for each class: a row for each base, a column for each position.

    Red speaks for the class, blue against it; the line marks where the junction would be.  The
    network has four inputs for each of an even number of positions, and an output for each class.
    """
    target = writable("draw_influence", path, (".svg", ".png", ".pdf"))
    strips = influence(network)
    half = strips.shape[2] // 2
    scale = float(np.abs(strips).max()) or 1.0
    figure = new_figure(10, 1.5 * len(strips) + 0.6)
    panels = np.atleast_1d(figure.subplots(len(strips), 1, sharex=True))
    for panel, strip, name in zip(panels, strips, classes, strict=True):
        image = panel.imshow(strip, cmap="RdBu_r", vmin=-scale, vmax=scale, aspect="auto")
        panel.set_yticks(range(len(BASES)), BASES)
        panel.set_ylabel(name)
        panel.axvline(half - 0.5, color="black", linewidth=0.8)
    places = [sign * half * third // 3 for sign in (-1, 1) for third in (1, 2, 3)]
    panels[-1].set_xticks([p + half - (p > 0) for p in places], [f"{p:+d}" for p in places])
    panels[-1].set_xlabel("base before (-) and behind (+) the junction")
    figure.colorbar(image, ax=list(panels), label="speaks for the class")
    return save(figure, target)
