"""splice_mlp: a multi-layer perceptron of sigmoids finds splice junctions in DNA.

    x (N, 240)  60 bases of four inputs each  ->  H sigmoids  ->  3 sigmoids: EI, IE, neither
    E = half the squared error against 1 for the right class and 0 for the others
    after each sample: w -= lr dE/dw, with lr 0.5, and momentum where it is asked for

The network starts at random, or from a text file that an earlier run, or nnP, has left; a run
leaves its own as network.nn.

    splice_mlp_network.py    create, randomize, alter the topology, train, test
    splice_mlp_text.py       save and load
    splice_mlp_picture.py    which bases speak for which class

Test accuracy with the defaults, seeds 0 to 4: 0.9656 0.9735 0.9577 0.9735 0.9656.

Source: the project nnP, a neural network for the 16 cores of the Parallella board, 2015
(github.com/nickoppen/nnP); Rumelhart, Hinton, Williams, "Learning representations by
back-propagating errors", Nature 323, 1986.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import tinygraph as tg
from tinygraph import show
from tinygraph.cuda.emulator.compiler import find_compiler
from tinygraph.data import ArrayDataset, DataLoader, splice
from tinygraph.device import Device, get_device
from tinygraph.errors import ArgumentError, CheckpointError, DatasetError
from tinygraph.recipes.plain_run import require_compile
from tinygraph.recipes.recipe import Recipe
from tinygraph.recipes.splice_mlp_network import (
    EVALUATION_BATCH,
    LEARNING_RATE,
    MOMENTUM,
    SigmoidMLP,
    half_squared_error,
    online,
)
from tinygraph.recipes.splice_mlp_picture import draw_influence
from tinygraph.recipes.splice_mlp_text import read_network, write_network
from tinygraph.training import Progress, RunFolder, first_batch_step
from tinygraph.training.sealed import reason

INPUTS, CLASSES = 240, ("EI", "IE", "N")
INITIAL = "initial.nn"  # in the run folder: the network before it has learnt anything
HIDDEN = (20,)
TRAIN_SHARE = 0.9  # of the training data; the rest is for validation


@dataclass
class Config:
    """Settings.  With a network file, those that are None are taken from it."""

    network: str | None = None  # a text file to begin with
    hidden: tuple[int, ...] | None = None  # nodes of each hidden layer
    randomize: bool = False  # draw the weights of the file anew
    lr: float | None = None
    momentum: float | None = None
    epochs: int | None = None
    seed: int = 0
    duration: float | None = None  # seconds, in the place of epochs
    backup_every: float | None = None  # seconds
    device: str = "cpu"  # or "emulator": the .cu kernels on the CPU; or "cuda"
    compile: bool = False  # forward and backward through a plan
    tune: bool = False  # with compile: measure tiles and threads, and keep the fastest

    def __post_init__(self) -> None:
        if self.network is None:
            self.hidden = HIDDEN if self.hidden is None else self.hidden
            self.lr = LEARNING_RATE if self.lr is None else self.lr
            self.momentum = MOMENTUM if self.momentum is None else self.momentum
        if self.hidden is not None:
            self.hidden = tuple(self.hidden)  # JSON has lists
        if self.epochs is None and self.duration is None:
            self.epochs = 10
        require_compile("splice_mlp", self)


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
    network = SigmoidMLP([INPUTS, *(config.hidden or ()), len(CLASSES)], name="splice")
    if config.network is not None:
        network = _read(config.network)
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
        raise ArgumentError(
            "splice_mlp",
            path,
            f"a network of {INPUTS} inputs and {len(CLASSES)} outputs",
            f"one of {ends[0]} and {ends[1]}",
        )
    return network


class Setting(NamedTuple):
    """Everything that a training works on, before the first sample."""

    network: SigmoidMLP
    training: ArrayDataset
    held_out: ArrayDataset
    test: ArrayDataset


def set_up(
    config: Config,
    data_dir: str | Path | None = None,
    download: bool = False,
    run: RunFolder | None = None,
) -> Setting:
    """Make the network, or take that of a run that goes on; load and split the data."""
    device = _usable_device(config.device)  # an absent one shows before anything is loaded
    goes_on = run is not None and run.opened
    network = _initial(run) if run is not None and goes_on else first_network(config)
    whole = splice("train", data_dir, download)
    test = splice("test", data_dir, download)  # a missing file shows now
    training, held_out = whole.split(TRAIN_SHARE, config.seed)
    return Setting(network.to(device), training, held_out, test)


def train(
    config: Config,
    run: RunFolder,
    data_dir: str | Path | None = None,
    download: bool = False,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Train, look at the test data once, and leave everything in the run folder.

    A run that was opened goes on where it stopped.

    Returns
    -------
    dict
        `loss` and `accuracy` on the test data.
    """
    setting = set_up(config, data_dir, download, run)
    network = setting.network
    if not run.opened:
        write_network(network, run.path / INITIAL)  # first: whoever opens the run finds it
        run.write_config(
            {
                "recipe": "splice_mlp",
                "settings": asdict(config),
                "widths": network.widths,
                "learning": [network.lr, network.momentum],
                "name": network.name,
                "train_share": TRAIN_SHARE,
                "data_dir": None if data_dir is None else str(Path(data_dir).resolve()),
            }
        )
    trainer = network.trainer(
        run=run,
        progress=progress,
        backup_every=config.backup_every,
        compile=config.compile,
        tune=config.tune,
    )
    if run.opened:
        trainer.resume()
    run.write_environment(tinygraph=tg.__version__, seeds={"all": config.seed}, command=sys.argv)
    left = None if config.epochs is None else config.epochs - trainer.epoch
    if left is None or left > 0:
        held_out = DataLoader(setting.held_out, EVALUATION_BATCH)
        trainer.fit(online(setting.training, config.seed), held_out, left, config.duration)
    write_network(network, run.path / "network.nn")
    result = network.test(setting.test)
    run.write_result({"test": result})
    return result


def rehearse(
    config: Config, data_dir: str | Path | None = None, download: bool = False
) -> dict[str, Any]:
    """One sample forward and backward, timed; nothing is learnt and nothing written."""
    setting = set_up(config, data_dir, download)
    summary = setting.network.summary((INPUTS,))
    found = setting.network.trainer(progress=False).rehearse(online(setting.training))
    return {"summary": summary, **found}


def training_step(
    config: Config, data_dir: str | Path | None = None, download: bool = False
) -> Callable[[], Any]:
    """Learn from one batch, again and again; nothing is written."""
    setting = set_up(config, data_dir, download)
    trainer = setting.network.trainer(progress=False, compile=config.compile, tune=config.tune)
    return first_batch_step(trainer, online(setting.training))


def evaluate_run(
    run: RunFolder, data_dir: str | Path | None = None, best: bool = False, device: str = "cpu"
) -> dict[str, float]:
    """`loss` and `accuracy` of a run's last or best parameters on the test data.

    The device may be another one than that of the training.
    """
    target = _usable_device(device)
    return _load(run, best).to(target).test(_test_data(run, data_dir))


def draw(run: RunFolder) -> Iterator[Path]:
    """The graph of a step and the report; curves and the influence of bases need matplotlib."""
    network = _load(run)
    bases = tg.Tensor(tg.zeros((1, INPUTS)), name="bases")
    loss = half_squared_error(network(bases), tg.Tensor([0], name="class"))
    try:
        yield show.graph(loss, run.path / "graph.svg")
        yield show.report(_report(run, network, loss), run.path / "report.html")
        yield show.curves(run.rows(), run.path / "curves.svg")
        yield draw_influence(network, CLASSES, run.path / "influence.png")
    except OSError as error:
        raise CheckpointError(
            "show", str(run.path), "a folder that can be written", reason(error)
        ) from None


def _report(run: RunFolder, network: SigmoidMLP, loss: tg.Tensor) -> show.ReportContents:
    """What report.html shows; without predictions where the test data is not at hand."""
    answers: dict[str, Any] = {}
    with suppress(DatasetError):
        test = _test_data(run)
        with tg.no_grad():
            predictions = network(test.inputs).numpy().argmax(axis=1)
        answers = {"labels": test.labels, "predictions": predictions, "classes": test.classes}
    return show.ReportContents(
        title="splice_mlp",
        result=run.result(),
        rows=run.rows(),
        config=run.config,
        environment=run.environment(),
        state=network.state_dict(),
        graph=loss,
        **answers,
    )


def _test_data(run: RunFolder, data_dir: str | Path | None = None) -> ArrayDataset:
    return splice("test", data_dir or run.config.get("data_dir"))


def _load(run: RunFolder, best: bool = False) -> SigmoidMLP:
    """The network of a run with its last or its best parameters."""
    network = _network_of(run)
    network.load_state_dict(run.load_parameters(best))
    return network


def _initial(run: RunFolder) -> SigmoidMLP:
    """The network that a run began with: without a checkpoint it begins there once more."""
    network = _network_of(run)
    if (run.path / INITIAL).exists():
        network.load_state_dict(read_network(run.path / INITIAL).state_dict())
    return network


def _network_of(run: RunFolder) -> SigmoidMLP:
    """A network of the topology of a run, with its learning rate and momentum."""
    names = ("widths", "learning", "name")
    saved: dict[str, Any] = {name: run.config.get(name) for name in names}
    try:
        lr, momentum = saved["learning"]
        return SigmoidMLP(saved["widths"], lr, momentum, saved["name"])
    except (TypeError, ValueError):
        raise CheckpointError(
            "run folder", str(run.path / "config.json"), f"{', '.join(names)} of a network", saved
        ) from None


def _usable_device(name: str) -> Device:
    """The device of that name; an error now where its first kernel could not be compiled."""
    device = get_device(name)
    if device == "emulator":
        find_compiler()
    return device


recipe = Recipe(
    name="splice_mlp",
    summary="sigmoid MLP, one sample at a time: splice junctions in DNA; networks as text",
    config=Config,
    train=train,
    rehearse=rehearse,
    training_step=training_step,
    evaluate=evaluate_run,
    metric="accuracy",
    draw=draw,
)
