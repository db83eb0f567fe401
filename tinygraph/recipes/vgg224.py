"""vgg224: a VGG for pictures of 224 x 224 pixels: its shapes, and one step of ADADELTA.

    3x224x224                        a picture
      conv 3x3 - norm - ReLU - pool  -> 32x112x112
      conv 3x3 - norm - ReLU - pool  -> 64x56x56
      conv 3x3 - norm - ReLU - pool  -> 128x28x28
      conv 3x3 - norm - ReLU - pool  -> 256x14x14
      conv 3x3 - norm - ReLU - pool  -> 512x7x7
      dropout - conv 1x1 - mean      -> 10

There are no data of this size here.  The recipe makes a batch of random pictures with random
labels, takes one step, and tells the loss on that batch before and after: it shows that the
network builds, and what a step costs, and nothing about what it could learn.

Source: "Neural network implementation tips and tricks", 2016; the papers are named in vgg.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tinygraph as tg
from tinygraph import nn
from tinygraph.data import ArrayDataset
from tinygraph.engine import Tensor, philox
from tinygraph.optim import Adadelta
from tinygraph.recipes.images import shape_chain
from tinygraph.recipes.quick import QuickRecipe, Row
from tinygraph.recipes.settings import Count, Layers, TrainerSettings
from tinygraph.recipes.task import Data, Folder, Task
from tinygraph.recipes.vgg import vgg
from tinygraph.training import RunFolder
from tinygraph.training.evaluation import forward, mode

SHAPE = (3, 224, 224)
WIDTHS = (32, 64, 128, 256, 512)
CLASSES = 10


@dataclass
class Config(TrainerSettings):
    """Settings of the one step."""

    widths: tuple[Count, ...] = WIDTHS  # channels of each stage
    convolutions: Layers = 1  # of each stage
    residual: bool = False  # skips around the stages
    dropout: float = 0.5  # share of activations that is dropped
    batch_size: int = 16  # images of a step
    lr: float = 1.0  # learning rate; 1 is the published ADADELTA


class Vgg224(QuickRecipe):
    """One step on a batch, and the loss on it before and after."""

    name = "vgg224"
    summary = "a VGG for pictures of 224 x 224: its shapes, and one step on random pictures"
    config = Config
    metric = "loss"

    def data(self, config: Config, data_dir: Folder = None, download: bool = False) -> Data:
        """Normal noise (N, 3, 224, 224), float32, and labels that mean nothing."""
        draws = np.random.Generator(philox(config.seed, 0))
        images = draws.standard_normal((config.batch_size, *SHAPE), dtype=np.float32)
        labels = draws.integers(0, CLASSES, config.batch_size)
        pictures = ArrayDataset(images, labels, "random pictures")
        return Data(pictures, test=pictures)

    def model(self, config: Config, facts: dict[str, Any]) -> nn.Sequential:
        """The network of the listing above.

        >>> shape_chain(recipe.model(Config(), {}), SHAPE)
        '3x224x224 -> 32x112x112 -> 64x56x56 -> 128x28x28 -> 256x14x14 -> 512x7x7 -> 10'
        """
        settings = config.convolutions, config.dropout, config.residual
        return vgg(SHAPE, config.widths, CLASSES, *settings)

    def optimizer(self, config: Config, network: Any) -> Adadelta:
        return Adadelta(network.named_parameters(), config.lr, rho=0.95)

    def epochs(self, task: Task) -> Iterator[Row]:
        """One step, and the loss before it."""
        yield {"loss": float(self.step(task)().item())}

    def ending(self, task: Task, rows: list[Row]) -> tuple[dict[str, Any], str]:
        """The loss before the step and its time, and the shapes."""
        ending = {"loss_before": rows[0]["loss"], "step_seconds": rows[0]["seconds"]}
        return ending, self.summary_of(task.network, task.data.training.inputs)

    def finish(self, task: Task, run: RunFolder, found: dict[str, Any]) -> dict[str, Any]:
        """`loss_before` and `loss` on the batch, `step_seconds`."""
        result = super().finish(task, run, {})["test"]
        return {"test": {**found["training"], **result}}

    def measure(self, config: Config, network: Any, test: ArrayDataset) -> dict[str, float]:
        """The loss in training mode, with the same dropout: one step moves the running statistics
        by a tenth, too little for evaluation mode to mean something."""
        state = network.state_dict()
        tg.manual_seed(config.seed)
        with mode(network, training=True), tg.no_grad():
            loss = self.loss(*forward(network, test.inputs, test.labels)).item()
        network.load_state_dict(state)
        return {"loss": float(loss)}

    def summary_of(self, network: Any, batch: Any) -> str:
        return f"{super().summary_of(network, batch)}\n{shape_chain(network, SHAPE)}"

    def graph(self, config: Config, network: Any, facts: dict[str, Any]) -> Tensor:
        """The loss of one picture."""
        images = Tensor(tg.zeros((1, *SHAPE)), name="images")
        return self.loss(network(images), tg.tensor([0], name="labels"))

    def answers(self, config: Config, network: Any, facts: dict[str, Any]) -> dict[str, Any]:
        return {}  # labels of noise

    def pictures(self, run: RunFolder, config: Config, network: Any) -> Iterator[Path]:
        return iter(())  # one step has no curve


recipe = Vgg224()
