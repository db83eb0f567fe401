"""Make the pages that the documentation shows live, in frames: python docs/live_pages.py FOLDER

The build of the documentation does that by itself.  docs/images/steps.png is a picture of
digits.html#step=1 in a browser of 1280 x 900, with the pointer over the first map of the output.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import tinygraph as tg


def digits(folder: Path) -> Path:
    """A training step of a small convolutional network on four handwritten digits."""
    tg.manual_seed(0)
    model = tg.nn.Sequential(
        tg.nn.Conv2d(1, 4, 3),
        tg.nn.ReLU(),
        tg.nn.MaxPool2d(2),
        tg.nn.Flatten(),
        tg.nn.Linear(36, 10),
    )
    optimizer = tg.optim.SGD(model.named_parameters(), lr=0.1, momentum=0.9)
    images, labels = tg.data.digits("train")[:4]
    inputs, targets = tg.Tensor(images, name="images"), tg.Tensor(labels, name="labels")

    def step() -> None:
        optimizer.zero_grad()
        tg.softmax_cross_entropy(model(inputs), targets).backward()
        optimizer.step()

    return tg.show.steps(step, folder / "digits.html", title="A network learns from four digits")


def fan_out(folder: Path) -> Path:
    """One node with two uses, as in the explanation of the graph."""
    x = tg.Tensor(np.array([1.0, -2.0, 3.0]), name="x")
    w = tg.Parameter(np.array([0.5, 0.5, -0.5]), name="w")
    h = x * w
    loss = (h * tg.relu(h)).sum()
    return tg.show.steps(loss, folder / "fan_out.html", title="A node with two uses")


def make_all(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    return [digits(folder), fan_out(folder)]


if __name__ == "__main__":
    for page in make_all(Path(sys.argv[1])):
        print(page)
