"""srcnn: three convolutions that put details into an enlarged picture.

    low  ->  conv 9x9, 64 filters, ReLU  ->  conv 1x1, 32 filters, ReLU  ->  conv 5x5  ->  luma
    loss = half the squared error against the original, summed over a crop, mean over the batch

A picture's luma is shrunk by the scale and enlarged again by bicubic interpolation; the network
learns to undo it, from 33-pixel crops of T91.  After each epoch PSNR and SSIM on Set5 stand beside
those of bicubic interpolation, as in the paper: Set5 is validation data here.  Set14 is the test,
looked at once, at the end.

    srcnn_config.py     the JSON config            srcnn_samples.py    pictures, pairs, crops
    srcnn_network.py    the network and its files  srcnn_tiles.py      whole pictures, in tiles
    srcnn_colour.py     luma and chroma            srcnn_quality.py    PSNR, SSIM
    srcnn_pictures.py   what is drawn

Source: Dong, Loy, He, Tang, "Image super-resolution using deep convolutional networks", TPAMI 2016
(arXiv:1501.00092); "Neural networks: implementation tips", 2015, for JSON config and rule.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import tinygraph as tg
from tinygraph import nn
from tinygraph.base import ArgumentError, CheckpointError, DatasetError, one_blas_thread
from tinygraph.base.build_cache import folder as cache_folder
from tinygraph.data import DataLoader
from tinygraph.engine import Tensor
from tinygraph.optim import Optimizer
from tinygraph.recipes.recipe import Recipe
from tinygraph.recipes.settings import (
    Count,
    NotNegative,
    Positive,
    Several,
    Share,
    TrainingSettings,
)
from tinygraph.recipes.srcnn_config import (
    DISTRIBUTIONS,
    REQUIRED,
    Filters,
    FilterSize,
    Normal,
    read_config,
)
from tinygraph.recipes.srcnn_network import (
    initialise,
    margin,
    model,
    optimizer,
    read_network,
    write_json_parameters,
)
from tinygraph.recipes.srcnn_pictures import compared, draw_run
from tinygraph.recipes.srcnn_quality import means, measure
from tinygraph.recipes.srcnn_samples import (
    Collections,
    Crops,
    Pair,
    Portions,
    at_hand,
    pairs,
    prepared,
    t91,
)
from tinygraph.recipes.task import Data, Folder, Task
from tinygraph.training import Log, Progress, RunFolder, save_arrays


@dataclass
class Config(TrainingSettings):
    """Settings.  What is None comes from the JSON file, where there is one, or is as usual."""

    config: str | None = None  # a JSON file; see srcnn_config.py
    n1: Filters | None = None  # filters of the first layer; 64
    n2: Filters | None = None  # of the second; 32
    f1: FilterSize | None = None  # size of the first filters; 9
    f2: FilterSize | None = None  # of the second; 1
    f3: FilterSize | None = None  # of the third; 5
    rule: Literal["adam", "sgd", "srcnn"] = "adam"  # how it learns
    momentum: Share | None = None  # of the rules sgd and srcnn; 0.9
    weight_decay_parameter: NotNegative | None = None  # pull to 0; of weights, not of biases
    learning_rates: tuple[Positive, Positive, Positive] | None = None  # of the three layers
    parameters_file: str | None = None  # to begin with; .safetensors or .json
    parameters_distribution_1: Normal | None = None  # of the first layer at the start; He's
    parameters_distribution_2: Normal | None = None  # of the second
    parameters_distribution_3: Normal | None = None  # of the third
    scale: Several = 3  # how many times as wide and high
    crop: Count = 33  # pixels of a side
    stride: Count = 14  # pixels of the grid of crops
    places: Literal["grid", "random"] = "grid"  # of the crops
    crops: Count = 1600  # in an epoch
    batch_size: int = 16  # crops of a step
    pictures: Literal["t91", "at hand"] | None = None  # t91 where its folder is found

    usual_epochs: ClassVar[int] = 20

    def __post_init__(self) -> None:
        if self.config is not None and any(getattr(self, name) is None for name in REQUIRED):
            self._fill(read_config(self.config, Config))
        self._fill(
            {"n1": 64, "n2": 32, "f1": 9, "f2": 1, "f3": 5}
            | {"momentum": 0.9, "weight_decay_parameter": 0.0}
            | {"learning_rates": (1e-3, 1e-3, 1e-4) if self.rule == "adam" else (1e-4, 1e-4, 1e-5)}
        )
        self._fill(dict(zip(DISTRIBUTIONS, map(_normal, self.fan_in()), strict=True)))
        super().__post_init__()
        self._check()

    def _fill(self, values: Mapping[str, Any]) -> None:
        """Give settings that are None a value."""
        for name, value in values.items():
            if getattr(self, name) is None:
                setattr(self, name, value)

    def _check(self) -> None:
        lost = sum(self.sizes()[2:]) - 3
        if self.crop <= lost:
            expected = f"more than the {lost} pixels that the filters take away"
            way_out = "larger crops, or smaller filters"
            raise ArgumentError("srcnn", "crop", expected, self.crop, way_out)
        if self.crops % self.batch_size:
            expected = f"a multiple of the batch size {self.batch_size}"
            way_out = "all batches are full, for the rule srcnn divides by their size"
            raise ArgumentError("srcnn", "crops", expected, self.crops, way_out)

    def sizes(self) -> tuple[int, int, int, int, int]:
        """n1, n2, f1, f2, f3."""
        return self.n1 or 0, self.n2 or 0, self.f1 or 0, self.f2 or 0, self.f3 or 0

    def fan_in(self) -> tuple[int, int, int]:
        """How many inputs one output of each layer sums over."""
        n1, n2, f1, f2, f3 = self.sizes()
        return f1 * f1, f2 * f2 * n1, f3 * f3 * n2

    def network(self) -> nn.Sequential:
        """The network before it has learnt anything here."""
        tg.manual_seed(self.seed)
        if self.parameters_file is None:
            network = model(*self.sizes())
            initialise(network, asdict(self))
            return network
        try:
            network = read_network(self.parameters_file)
        except CheckpointError as error:  # bad input, not a failure of the training
            raise ArgumentError(str(error)) from None
        shapes = [[p.shape for p in net.parameters()] for net in (network, model(*self.sizes()))]
        if shapes[0] != shapes[1]:
            expected = f"parameters of {shapes[1]}"
            way_out = "set n1, n2, f1, f2, f3 as the file has them"
            raise ArgumentError("srcnn", self.parameters_file, expected, shapes[0], way_out)
        return network


def _normal(fan_in: int) -> Normal:
    """He's normal distribution: the variance 2 / fan_in keeps the signal's size under ReLU."""
    return Normal(mean_w=0.0, mean_b=0.0, std_deviation_w=(2 / fan_in) ** 0.5, std_deviation_b=0.0)


def crop_loss(output: Tensor, target: Tensor) -> Tensor:
    """Half the squared error, summed over a crop; its mean over the batch.

    >>> crop_loss(tg.zeros((2, 1, 3, 3)), tg.ones((2, 1, 3, 3))).item()
    4.5
    """
    return tg.half_squared_error(output, target) / output.shape[0]


@dataclass(frozen=True)
class SrcnnData(Data):
    """Crops to learn from; whole pictures to look at, which no DataLoader takes."""

    validation: list[Pair] = field(default_factory=list)


def collect(config: Config, data_dir: Folder) -> Collections:
    """The pictures; where neither T91 nor other pictures were asked for, what there is.

    `config.pictures` says afterwards which they are.
    """
    if config.pictures == "at hand":
        return at_hand()
    try:
        found = t91(data_dir)
    except DatasetError as error:
        if config.pictures == "t91" or data_dir is not None:
            raise
        found = at_hand()
        warnings.warn(f"{error}. Until then: {found.notes}", stacklevel=2)
        config.pictures = "at hand"
        return found
    config.pictures = "t91"
    return found


class Measuring(Log):
    """After each epoch PSNR and SSIM go into its row of the log, before another log is told of it.

    The parameters of the best PSNR so far are kept as the run's best.  `rows` are those of the run
    that goes on.
    """

    def __init__(self, task: Task, run: RunFolder, rows: list[dict[str, Any]]) -> None:
        self.task, self.run, self.rows = task, run, rows
        self.told = task.log or Log()
        self.best = 0.0

    def begin(self, trainer: Any, loader: Any) -> None:
        past = [row for row in self.rows if row["epoch"] <= trainer.epoch]
        self.best = max([row.get("psnr", 0.0) for row in past], default=0.0)
        self.told.begin(trainer, loader)

    def batch(self, trainer: Any, loss: float) -> None:
        self.told.batch(trainer, loss)

    def epoch(self, trainer: Any, row: dict[str, Any]) -> None:
        network, pictures = self.task.network, self.task.data.validation
        scale = self.task.config.scale
        with one_blas_thread() if self.task.config.shards else nullcontext():
            row |= means(measure(network, pictures, scale))
        if row["psnr"] > self.best:
            self.best = row["psnr"]
            save_arrays(self.run.best, network.state_dict())
        self.told.epoch(trainer, row)

    def close(self) -> None:
        self.told.close()


class Srcnn(Recipe):
    """SRCNN with a JSON config, from T91 or from the pictures at hand."""

    name = "srcnn"
    summary = "three convolutions that put details into an enlarged picture: T91, Set5, Set14"
    config = Config
    metric = "psnr"

    def data(self, config: Config, data_dir: Folder = None, download: bool = False) -> Data:
        """Load the pictures; cut crops, or take them from the cache.

        `download` is refused: the pictures have no licence that would allow to hand them on.
        """
        if download:
            way_out = (
                "the pictures have no explicit "
                "licence; fetch T91, Set5 and Set14 yourself and name their folder"
            )
            raise ArgumentError(self.name, "--download", "no such option", "it", way_out)
        inner = margin(config.network())  # a bad file shows before anything is loaded
        found = collect(config, data_dir)
        crops = Crops(config.places, config.crop, config.stride, inner, config.seed)
        samples = prepared(found, config.scale, crops, cache_folder() / "data")
        held_out, test = (pairs(part, config.scale) for part in (found.validation, found.test))
        return SrcnnData(Portions(samples, config.crops, config.seed), None, test, {}, held_out)

    def model(self, config: Config, facts: dict[str, Any]) -> nn.Sequential:
        return config.network()

    def blank(self, config: Config, facts: dict[str, Any]) -> nn.Sequential:
        """Without the file that it began with."""
        return model(*config.sizes())

    def optimizer(self, config: Config, network: Any) -> Optimizer:
        return optimizer(
            network,
            config.rule,
            config.learning_rates,
            config.momentum or 0.0,
            config.weight_decay_parameter or 0.0,
            config.batch_size,
        )

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        return crop_loss(output, target)

    def loader(self, config: Config, training: Any) -> DataLoader:
        """Portions come shuffled: their order spans the epochs of a pass."""
        return DataLoader(training, config.batch_size, device=config.device)

    def test_data(self, config: Config, facts: dict[str, Any], data_dir: Folder) -> list[Pair]:
        return pairs(collect(config, data_dir).test, config.scale)

    def measure(self, config: Config, network: Any, test: list[Pair]) -> dict[str, float]:
        """`psnr`, `ssim`, `bicubic_psnr`, `bicubic_ssim`: means over the pictures."""
        return means(measure(network, test, config.scale))

    def fit(self, task: Task, run: RunFolder, progress: Progress) -> dict[str, Any]:
        rows = run.rows() if run.epochs_done else []
        return super().fit(replace(task, log=Measuring(task, run, rows)), run, progress)

    def finish(self, task: Task, run: RunFolder, found: dict[str, Any]) -> dict[str, Any]:
        write_json_parameters(task.network, run.path / "parameters.json")
        parts = {"validation": task.data.validation, "test": task.data.test}
        pictures = {
            name: measure(task.network, part, task.config.scale) for name, part in parts.items()
        }
        return {**{name: means(rows) for name, rows in pictures.items()}, "pictures": pictures}

    # ---- pictures ---------------------------------------------------------------------------

    def graph(self, config: Config, network: Any, facts: dict[str, Any]) -> Tensor:
        """The loss of a crop."""
        crop = Tensor(tg.zeros((1, 1, config.crop, config.crop)), name="low")
        inner = config.crop - 2 * margin(network)
        return self.loss(network(crop), Tensor(tg.zeros((1, 1, inner, inner)), name="high"))

    def answers(self, config: Config, network: Any, facts: dict[str, Any]) -> dict[str, Any]:
        shown = self.shown(config, facts)
        return {"comparison": compared(network, shown, config.scale)}

    def verdict(self, result: dict[str, Any]) -> str | None:
        """Whether it beats bicubic interpolation on the test pictures."""
        test = result["test"]
        gain = test["psnr"] - test["bicubic_psnr"]
        word = "better than" if gain > 0 else "no better than"
        return (
            f"On the test pictures SRCNN is {word} bicubic interpolation: {test['psnr']:.2f} dB "
            f"where that has {test['bicubic_psnr']:.2f} dB ({gain:+.2f} dB)."
        )

    def shown(self, config: Config, facts: dict[str, Any]) -> Pair:
        """The picture that is looked at; DatasetError where it is not at hand."""
        found = collect(config, facts.get("data_dir"))
        return pairs(found.validation[-3:][:1], config.scale)[0]

    def pictures(self, run: RunFolder, config: Config, network: Any) -> Iterator[Path]:
        """Quality, filters; where the pictures are at hand feature maps and a comparison."""
        try:
            shown: Pair | None = self.shown(config, run.config)
        except DatasetError:
            shown = None
        yield from draw_run(run, network, shown, config.scale)


recipe = Srcnn()
