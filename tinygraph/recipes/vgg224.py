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

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tinygraph as tg
from tinygraph import nn, show
from tinygraph.data import ArrayDataset, DataLoader
from tinygraph.errors import ArgumentError, CheckpointError
from tinygraph.optim import Adadelta
from tinygraph.random import philox
from tinygraph.recipes.image_run import usable_device
from tinygraph.recipes.plain_run import require_compile
from tinygraph.recipes.recipe import Recipe
from tinygraph.recipes.vgg import shape_chain, vgg
from tinygraph.training import Progress, RunFolder, Trainer, first_batch_step
from tinygraph.training.sealed import reason

SHAPE = (3, 224, 224)
WIDTHS = (32, 64, 128, 256, 512)
CLASSES = 10


@dataclass
class Config:
    """Settings of the one step."""

    widths: tuple[int, ...] = WIDTHS
    convolutions: int = 1  # of each stage
    residual: bool = False
    dropout: float = 0.5
    batch_size: int = 16
    lr: float = 1.0  # the published ADADELTA
    seed: int = 0
    device: str = "cpu"  # or "emulator": the .cu kernels on the CPU; or "cuda"
    compile: bool = False  # forward and backward through a plan
    tune: bool = False  # with compile: measure tiles and threads, and keep the fastest

    def __post_init__(self) -> None:
        self.widths = tuple(self.widths)  # JSON has lists
        if self.batch_size < 1:
            raise ArgumentError("vgg224", "batch_size", "at least 1", self.batch_size)
        require_compile("vgg224", self)


def model(config: Config) -> nn.Sequential:
    """The network.

    >>> shape_chain(model(Config()), SHAPE)
    '3x224x224 -> 32x112x112 -> 64x56x56 -> 128x28x28 -> 256x14x14 -> 512x7x7 -> 10'
    """
    return vgg(SHAPE, config.widths, CLASSES, config.convolutions, config.dropout, config.residual)


def random_pictures(config: Config) -> ArrayDataset:
    """A batch of normal noise, (N, 3, 224, 224) float32, and labels that mean nothing."""
    draws = np.random.Generator(philox(config.seed, 0))
    images = draws.standard_normal((config.batch_size, *SHAPE), dtype=np.float32)
    return ArrayDataset(images, draws.integers(0, CLASSES, config.batch_size), "random pictures")


def set_up(config: Config, run: RunFolder | None = None) -> tuple[Trainer, DataLoader]:
    """The network with its optimiser, and the one batch."""
    device = usable_device(config.device)
    tg.manual_seed(config.seed)
    network = model(config).to(device)
    optimizer = Adadelta(network.named_parameters(), config.lr, rho=0.95)
    trainer = Trainer(
        network,
        optimizer,
        tg.softmax_cross_entropy,
        run=run,
        progress=False,
        compile=config.compile,
        tune=config.tune,
    )
    return trainer, DataLoader(random_pictures(config), config.batch_size, device=config.device)


def train(
    config: Config,
    run: RunFolder,
    data_dir: str | Path | None = None,
    download: bool = False,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Print the shapes, take one step on random pictures, and measure the same batch again.

    Returns
    -------
    dict
        `loss_before` and `loss` on the batch, both in training mode with the same dropout;
        `step_seconds`.
    """
    trainer, loader = set_up(config, run)
    print(f"{trainer.model.summary(SHAPE)}\n{_chain(trainer)}")
    images, labels = next(iter(loader))
    started = time.perf_counter()
    before, _ = trainer.step(images, labels)
    seconds = time.perf_counter() - started
    run.write_config({"recipe": "vgg224", "settings": asdict(config)})
    run.write_environment(tinygraph=tg.__version__, seeds={"all": config.seed}, command=sys.argv)
    run.save_parameters(trainer.model.state_dict())
    run.append({"epoch": 1, "loss": before, "seconds": seconds})
    result = {"loss_before": before, "step_seconds": seconds, **_measure(trainer.model, config)}
    run.write_result({"test": result})
    return result


def rehearse(
    config: Config, data_dir: str | Path | None = None, download: bool = False
) -> dict[str, Any]:
    """The batch forward and backward, timed; nothing is learnt and nothing written."""
    trainer, loader = set_up(config)
    summary = f"{trainer.model.summary(SHAPE)}\n{_chain(trainer)}"
    return {"summary": summary, **trainer.rehearse(loader)}


def training_step(
    config: Config, data_dir: str | Path | None = None, download: bool = False
) -> Callable[[], Any]:
    """Learn from one batch, again and again; nothing is written."""
    trainer, loader = set_up(config)
    return first_batch_step(trainer, loader)


def evaluate_run(
    run: RunFolder, data_dir: str | Path | None = None, best: bool = False, device: str = "cpu"
) -> dict[str, float]:
    """The loss of a run's parameters on its random pictures."""
    config = recipe.settings_of(run)
    network = model(config)
    network.load_state_dict(run.load_parameters(best))
    return _measure(network.to(usable_device(device)), config)


def draw(run: RunFolder) -> Iterator[Path]:
    """The graph of a step."""
    network = model(recipe.settings_of(run)).eval()
    images = tg.Tensor(tg.zeros((1, *SHAPE)), name="images")
    loss = tg.softmax_cross_entropy(network(images), tg.Tensor([0], name="labels"))
    try:
        yield show.graph(loss, run.path / "graph.svg")
    except OSError as error:
        raise CheckpointError(
            "show", str(run.path), "a folder that can be written", reason(error)
        ) from None


def _measure(network: nn.Module, config: Config) -> dict[str, float]:
    """The loss on the batch, by the batch's own statistics: one step moves the running ones by a
    tenth, too little for evaluation mode to mean something."""
    state, device = network.state_dict(), next(network.parameters()).device
    network.train()
    tg.manual_seed(config.seed)
    data = random_pictures(config)
    with tg.no_grad():
        images, labels = (tg.Tensor(part, device=device) for part in (data.inputs, data.labels))
        loss = tg.softmax_cross_entropy(network(images), labels).item()
    network.load_state_dict(state)
    return {"loss": float(loss)}


def _chain(trainer: Trainer) -> str:
    network = trainer.model
    return shape_chain(network, SHAPE) if isinstance(network, nn.Sequential) else ""


recipe = Recipe(
    name="vgg224",
    summary="a VGG for pictures of 224 x 224: its shapes, and one step on random pictures",
    config=Config,
    train=train,
    rehearse=rehearse,
    training_step=training_step,
    evaluate=evaluate_run,
    metric="loss",
    draw=draw,
    resumable=False,
    data_files=False,
)
