"""Draw the pictures of the documentation with tinygraph itself: python docs/draw_pictures.py"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import numpy as np

import tinygraph as tg
from tinygraph import recipes

IMAGES = Path(__file__).parent / "images"


def digits(folder: Path) -> Path:
    """The picture that the code of the first page draws."""
    page = (IMAGES.parent / "index.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    with contextlib.chdir(folder):
        exec(code, {})
    return (folder / "graph.svg").rename(folder / "digits.svg")


def fan_out(folder: Path) -> Path:
    """One node with two uses, for the explanation of the graph."""
    x = tg.Tensor(np.array([1.0, -2.0, 3.0]), name="x")
    w = tg.Parameter(np.array([0.5, 0.5, -0.5]), name="w")
    h = x * w
    loss = (h * tg.relu(h)).sum()
    return tg.show.graph(loss, folder / "fan_out.svg")


def resnet_cifar(folder: Path) -> Path:
    """The network of the recipe, folded by module."""
    recipe = recipes.get("resnet_cifar")
    facts = {"image_shape": (3, 32, 32)}
    tg.manual_seed(0)
    network = recipe.model(recipe.config(), facts).eval()
    loss = recipe.graph(recipe.config(), network, facts)
    return tg.show.graph(loss, folder / "resnet_cifar.svg")


def draw_all(folder: Path = IMAGES) -> list[Path]:
    folder.mkdir(exist_ok=True)
    return [digits(folder), fan_out(folder), resnet_cifar(folder)]


if __name__ == "__main__":
    for picture in draw_all():
        print(picture)
