"""splice_mlp: a multi-layer perceptron of sigmoids finds splice junctions in DNA.

    x (N, 240)  60 bases of four inputs each  ->  H sigmoids  ->  3 sigmoids: EI, IE, neither
    E = half the squared error against 1 for the right class and 0 for the others
    after each sample: w -= lr dE/dw, with lr 0.5, and momentum where it is asked for

The network starts at random, or from a text file that an earlier run, or nnP, has left; a run
leaves its own as network.nn.

`parallel="model"`, for several ranks: each owns its part of the nodes of every layer, as each of
the 16 cores does in nnP, and sends their outputs to all.

    splice_mlp_network.py    create, randomize, alter the topology, train, test
    splice_mlp_text.py       save and load
    splice_mlp_picture.py    which bases speak for which class

Test accuracy with the defaults, seeds 0 to 4: 0.9656 0.9735 0.9577 0.9735 0.9656.

Source: the project nnP, a neural network for the 16 cores of the Parallella board, 2015
(github.com/nickoppen/nnP); Rumelhart, Hinton, Williams, "Learning representations by
back-propagating errors", Nature 323, 1986.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import tinygraph as tg
from tinygraph.base import ArgumentError, CheckpointError
from tinygraph.data import splice
from tinygraph.distributed import from_first
from tinygraph.engine import Tensor
from tinygraph.optim import SGD
from tinygraph.recipes.recipe import Recipe
from tinygraph.recipes.settings import Count, Share, TrainingSettings
from tinygraph.recipes.splice_mlp_network import (
    LEARNING_RATE,
    MOMENTUM,
    SigmoidMLP,
    half_squared_error,
)
from tinygraph.recipes.splice_mlp_picture import draw_influence
from tinygraph.recipes.splice_mlp_text import read_network, write_network
from tinygraph.recipes.task import TRAIN_SHARE, Data, Folder, Task
from tinygraph.training import RunFolder

INPUTS, CLASSES = 240, ("EI", "IE", "N")
INITIAL = "initial.nn"  # in the run folder: the network before it has learnt anything
HIDDEN = (20,)


@dataclass
class Config(TrainingSettings):
    """Settings.  With a network file, those that are None are taken from it."""

    network: str | None = None  # a text file to begin with
    hidden: tuple[Count, ...] | None = None  # nodes of each hidden layer
    randomize: bool = False  # draw the weights of the file anew
    lr: float | None = None  # learning rate; that of the file where there is one
    momentum: Share | None = None  # of gradient descent; that of the file where there is one
    parallel: Literal["data", "model"] = "data"  # model: ranks share the nodes of every layer

    usual_epochs: ClassVar[int] = 10

    def __post_init__(self) -> None:
        if self.network is None:
            self.hidden = HIDDEN if self.hidden is None else self.hidden
            self.lr = LEARNING_RATE if self.lr is None else self.lr
            self.momentum = MOMENTUM if self.momentum is None else self.momentum
        super().__post_init__()


def first_network(config: Config) -> SigmoidMLP:
    """The network before it has learnt anything here.

    Raises
    ------
    ArgumentError
        The file of the network is absent or malformed, or its network has not 240 inputs and 3
        outputs; widths, rate or momentum that cannot be.

    Examples
    --------
    >>> first_network(Config(hidden=(30, 10), momentum=0.5)).widths
    (240, 30, 10, 3)
    """
    tg.manual_seed(config.seed)
    split = config.parallel == "model"
    widths = [INPUTS, *(config.hidden or ()), len(CLASSES)]
    network = SigmoidMLP(widths, name="splice", split=split)
    if config.network is not None:
        network = _read(config.network).again(split)
        if config.hidden is not None:
            network = network.alter([INPUTS, *config.hidden, len(CLASSES)])
    lr = network.lr if config.lr is None else config.lr
    momentum = network.momentum if config.momentum is None else config.momentum
    network.learn_with(lr, momentum)
    if config.randomize:
        network.randomize()
    return network


def _read(path: str) -> SigmoidMLP:
    try:
        network = read_network(path)
    except CheckpointError as error:  # bad input, not a failure of the training
        raise ArgumentError(str(error)) from None
    ends = network.widths[0], network.widths[-1]
    if ends != (INPUTS, len(CLASSES)):
        expected = f"a network of {INPUTS} inputs and {len(CLASSES)} outputs"
        got = f"one of {ends[0]} and {ends[1]}"
        raise ArgumentError("splice_mlp", path, expected, got)
    return network


class SpliceMlp(Recipe):
    """A SigmoidMLP, one sample at a time; the run folder has its networks as text too."""

    name = "splice_mlp"
    summary = "sigmoid MLP, one sample at a time: splice junctions in DNA; networks as text"
    config = Config
    alone = "it learns from one sample at a time"

    def data(self, config: Config, data_dir: Folder = None, download: bool = False) -> Data:
        whole = splice("train", data_dir, download)
        test = splice("test", data_dir, download)  # a missing file shows now
        return Data(*whole.split(TRAIN_SHARE, config.seed), test, {"train_share": TRAIN_SHARE})

    def model(self, config: Config, facts: dict[str, Any]) -> SigmoidMLP:
        """The first network; that of a run has its topology, rate and momentum."""
        if "widths" not in facts:
            return first_network(config)
        lr, momentum = facts["learning"]
        split = config.parallel == "model"
        return SigmoidMLP(facts["widths"], lr, momentum, facts["name"], split=split)

    def optimizer(self, config: Config, network: Any) -> SGD:
        return SGD(network.named_parameters(), lr=network.lr, momentum=network.momentum)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        return half_squared_error(output, target)

    def test_data(self, config: Config, facts: dict[str, Any], data_dir: Folder) -> Any:
        return splice("test", data_dir)

    def remembered(self, task: Task) -> dict[str, Any]:
        network = task.network
        return {
            "widths": network.widths,
            "learning": [network.lr, network.momentum],
            "name": network.name,
            **task.data.facts,
        }

    def begin(self, task: Task, run: RunFolder) -> None:
        """Keep the first network: without a checkpoint the run begins there once more."""
        initial = run.path / INITIAL
        if not run.opened:
            network = task.network.again(split=False)
            from_first(lambda: str(write_network(network, initial)))  # first: an opened run has it
        elif initial.exists():
            task.network.load_state_dict(read_network(initial).state_dict())
        super().begin(task, run)

    def finish(self, task: Task, run: RunFolder, found: dict[str, Any]) -> dict[str, Any]:
        write_network(task.network, run.path / "network.nn")
        return super().finish(task, run, found)

    # ---- pictures ---------------------------------------------------------------------------

    def graph(self, config: Config, network: Any, facts: dict[str, Any]) -> Tensor:
        """The loss of one sequence."""
        bases = Tensor(tg.zeros((1, INPUTS)), name="bases")
        return self.loss(network(bases), tg.tensor([0], name="class"))

    def pictures(self, run: RunFolder, config: Config, network: Any) -> Iterator[Path]:
        """Curves, and which bases speak for which class."""
        yield from super().pictures(run, config, network)
        yield draw_influence(network, CLASSES, run.path / "influence.png")


recipe = SpliceMlp()
