"""What an exercise is good for: a network that computes with what the learner wrote, and trains.

It stands in network.py of the exercise, a class `Network` of DigitNetwork:

    class Network(DigitNetwork):
        "A convolution, ReLU, your MaxPool2d, and a linear layer."

        def __init__(self, own):
            super().__init__(own)
            self.conv, self.linear = nn.Conv2d(1, 8, 3, padding=1), nn.Linear(128, 10)
            self.pool = own.op("MaxPool2d", 2, 2)

        def forward(self, x):  # digits, (N, 1, 8, 8)
            return self.linear(tg.flatten(self.pool(tg.relu(self.conv(x))), 1))
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import tinygraph as tg
from tinygraph.data import DataLoader, digits
from tinygraph.nn import Module
from tinygraph.optim import SGD, Optimizer
from tinygraph.show import ReportContents, report
from tinygraph_course.checking.own import Own

GUESSING = math.log(10)  # the loss of a network that knows nothing
_BAR = 22  # characters for that loss: a line has 60 of them at most


class DigitNetwork(Module):
    """The base of networks; `forward` takes digits (N, 1, 8, 8) and gives logits (N, 10).

    Attributes
    ----------
    epochs, batch_size, lr
        How it is trained.
    """

    epochs: ClassVar[int] = 6
    batch_size: ClassVar[int] = 32
    lr: ClassVar[float] = 0.1

    def __init__(self, own: Own) -> None:
        super().__init__()

    def before(self) -> Iterator[str]:
        """What there is to say before the training, line by line."""
        return iter(())

    def loss(self, logits: tg.Tensor, labels: Any) -> tg.Tensor:
        """The mean over the samples."""
        return tg.cross_entropy(logits, labels)

    def step(self, x: Any, labels: Any, optimizer: Optimizer) -> float:
        """Learn from a batch; its loss before that.  By backward, unless the learner has a way."""
        optimizer.zero_grad()
        loss = self.loss(self(x), labels)
        loss.backward()
        optimizer.step()
        return loss.item()


def trained(
    network: Callable[[Own], DigitNetwork], own: Own, say: Callable[[str], None]
) -> tuple[DigitNetwork, list[dict[str, float]]]:
    """Train a network on digits, an epoch a line; the network, and a row for each epoch.

    Raises
    ------
    Stumbled, Died
        The learner's code does not answer.
    """
    tg.manual_seed(0)
    model, rows = network(own), []
    for line in model.before():
        say(line)
    optimizer = SGD(model.parameters(), lr=model.lr, momentum=0.9)
    batches = DataLoader(digits("train"), batch_size=model.batch_size, shuffle=True)
    images, labels = digits("test")[:]
    for epoch in range(1, model.epochs + 1):
        begun, total = time.perf_counter(), 0.0
        for x, y in batches:
            total += model.step(x, y, optimizer) / len(batches)
        with tg.no_grad():
            accuracy = float((model(images).numpy().argmax(1) == labels).mean())
        row = {"epoch": epoch, "loss": total, "accuracy": accuracy}
        rows.append({**row, "seconds": time.perf_counter() - begun})
        bar = "#" * min(_BAR, max(1, round(_BAR * total / GUESSING)))
        say(f"  epoch {epoch}  right {accuracy:6.1%}  loss {total:6.4f}  {bar}")
    return model, rows


def draw(model: DigitNetwork, rows: list[dict[str, float]], title: str, path: Path) -> None:
    """A page with the curves, digits with what they were taken for, and the graph."""
    images, labels = digits("test")[:]
    with tg.no_grad():
        predictions = model(images).numpy().argmax(1)
    loss = model.loss(model(images[:4]), labels[:4])
    contents = ReportContents(
        title=title,
        verdict=type(model).__doc__,
        result={"loss": rows[-1]["loss"], "accuracy": rows[-1]["accuracy"]},
        rows=rows,
        images=images,
        labels=labels,
        predictions=predictions,
        state=model.state_dict(),
        graph=loss,
    )
    report(contents, path)
