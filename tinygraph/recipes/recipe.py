"""Recipe: a known system that can be trained by name.

A recipe is a class that says what a training is made of:

    data                   what is learnt from, what is held out, what is tested on
    model                  the network before it has learnt anything
    loss, optimizer        how it learns; schedule, how its learning rate changes
    measure, metric        how good it is
    graph, pictures        what is drawn

Training, trying a batch, profiling, going on with a run, measuring it again and drawing it are
written here, once.  Of a recipe's settings these have a meaning here too, where it has them: seed,
batch_size, epochs, duration, backup_every, device, capture, compile, tune, clip_norm, shards.

Under a launcher all ranks train; then the first one goes on alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import tinygraph as tg
from tinygraph import show
from tinygraph.base import ArgumentError, CheckpointError, DatasetError, GraphError, as_path
from tinygraph.data import DataLoader
from tinygraph.distributed import finalize, init, leads, usual_shards, world
from tinygraph.engine import Tensor
from tinygraph.files.sealed import reason
from tinygraph.optim import Optimizer, Schedule
from tinygraph.recipes.first_step import draw_first_step
from tinygraph.recipes.settings import fit, require_settings, type_of
from tinygraph.recipes.task import Data, Folder, Task, usable_device
from tinygraph.training import Log, Progress, RunFolder, Trainer, evaluate, first_batch_step
from tinygraph.training.evaluation import first_batch

EVALUATION_BATCH = 250  # only a matter of memory


class Recipe:
    """What a known system is made of, and what can be done with it.

    A subclass gives `name`, `summary` and `config`, and overrides `data`, `model` and `optimizer`;
    the rest where it differs.  See docs/recipes/write_a_recipe.md.

    Attributes
    ----------
    name, summary : str
        The name on the command line, and one line about it.
    config : type
        A dataclass of settings with their defaults; each can be made from plain JSON values.
    metric : str
        Which of the metrics is named on the last line of a training.
    resumable : bool
        Whether a run that was stopped can go on.
    schedule_each : {"epoch", "batch"}
        After what its schedule takes a step, where it has one.
    data_files : bool
        Whether it reads data, from a folder or a library; others make their own.
    alone : str
        Why its trainings have nothing that ranks could share; empty where they have batches.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    config: ClassVar[type[Any]]
    metric: ClassVar[str] = "accuracy"
    resumable: ClassVar[bool] = True
    schedule_each: ClassVar[str] = "epoch"
    data_files: ClassVar[bool] = True
    alone: ClassVar[str] = ""
    file: str | None = None  # where it was read from, if not from the package

    # ---- what a recipe says -----------------------------------------------------------------

    def data(self, config: Any, data_dir: Folder = None, download: bool = False) -> Data:
        """Load or make the data; DatasetError where they are not to be had."""
        raise NotImplementedError(f"{type(self).__name__}.data")

    def model(self, config: Any, facts: dict[str, Any]) -> Any:
        """The network on the cpu, before it has learnt anything; `facts` are those of the data.

        Random numbers come from the settings' seed.
        """
        raise NotImplementedError(f"{type(self).__name__}.model")

    def optimizer(self, config: Any, network: Any) -> Optimizer:
        """The rule by which the network learns."""
        raise NotImplementedError(f"{type(self).__name__}.optimizer")

    def schedule(self, config: Any, optimizer: Optimizer) -> Schedule | None:
        """How its learning rate changes, after each `schedule_each`; by default not at all."""
        return None

    def loss(self, output: Tensor, target: Tensor, /) -> Tensor:
        """The mean over a batch; by default softmax cross-entropy."""
        return tg.cross_entropy(output, target)

    def loader(self, config: Any, training: Any) -> DataLoader:
        """Batches to learn from, in an order that the seed fixes."""
        size = getattr(config, "batch_size", None) or 1
        seed = getattr(config, "seed", 0)
        device = getattr(config, "device", "cpu")
        return DataLoader(training, size, shuffle=True, seed=seed, device=device)

    def test_data(self, config: Any, facts: dict[str, Any], data_dir: Folder) -> Any:
        """The test data of a run, whose config.json holds the facts."""
        return self.data(config, data_dir).test

    def measure(self, config: Any, network: Any, test: Any) -> dict[str, float]:
        """The metrics on the test data: by default the loss, and the accuracy of classes."""
        return evaluate(network, DataLoader(test, EVALUATION_BATCH), self.loss)

    def remembered(self, task: Task) -> dict[str, Any]:
        """What config.json remembers beside the settings."""
        return task.data.facts

    def blank(self, config: Any, facts: dict[str, Any]) -> Any:
        """A network that parameters are loaded into: by default one that is about to learn."""
        return self.model(config, facts)

    def title(self, config: Any) -> str:
        """What the report is called."""
        about = getattr(config, "data", None) or getattr(config, "function", None)
        return f"{self.name} on {about}" if about else self.name

    def graph(self, config: Any, network: Any, facts: dict[str, Any]) -> Tensor:
        """What is drawn as a graph: by default the loss of the first sample of the test data."""
        inputs, labels = self.test_data(config, facts, facts.get("data_dir"))[:1]
        return self.loss(network(Tensor(inputs, name="inputs")), Tensor(labels, name="targets"))

    def answers(self, config: Any, network: Any, facts: dict[str, Any]) -> dict[str, Any]:
        """What the report compares; of a classification labels, predictions, images."""
        test = self.test_data(config, facts, facts.get("data_dir"))
        if getattr(test, "labels", np.zeros(0)).dtype.kind not in "iu":
            return {}
        with tg.no_grad():
            parts = [network(part).numpy() for part, _ in DataLoader(test, EVALUATION_BATCH)]
        images = {"images": test.inputs} if test.inputs.ndim == 4 else {}
        predictions = np.concatenate(parts).argmax(axis=1)
        return {
            **images,
            "labels": test.labels,
            "predictions": predictions,
            "classes": test.classes,
        }

    def verdict(self, result: dict[str, Any]) -> str | None:
        """A sentence of the report on what result.json holds: whether it worked."""
        return None

    def pictures(self, run: RunFolder, config: Any, network: Any) -> Iterator[Path]:
        """Draw what comes after graph and report, and yield the path of each."""
        yield show.curves(run.rows(), run.path / "curves.svg")

    # ---- settings ---------------------------------------------------------------------------

    def settings(self, given: dict[str, Any]) -> Any:
        """The config with some settings given; ArgumentError for one that this recipe lacks."""
        require_settings(self.name, self.config, given)
        kinds = {name: type_of(self.config, name) for name in given}
        config = self.config(
            **{n: fit(self.name, n, kinds[n], value) for n, value in given.items()}
        )
        if getattr(config, "tune", None) and getattr(config, "compile", None) is False:
            expected = "False where no plan is made"
            way_out = "--set compile=true too: what is tuned is a plan"
            raise ArgumentError(self.name, "tune", expected, True, way_out)
        shards, samples = (getattr(config, name, None) for name in ("shards", "batch_size"))
        if shards and samples and shards > samples:
            expected = f"at most {samples}, the samples of a batch"
            raise ArgumentError(self.name, "shards", expected, shards, "fewer shards")
        return config

    def settings_of(self, run: RunFolder) -> Any:
        """The config that a run was trained with."""
        with self._reading(run):
            return self.settings(dict(run.config.get("settings") or {}))

    # ---- what can be done with it -----------------------------------------------------------

    def train(
        self,
        config: Any,
        run: RunFolder,
        data_dir: Folder = None,
        download: bool = False,
        progress: Progress | None = None,
        log: Log | None = None,
    ) -> dict[str, float]:
        """Train, look at the test data once, and leave everything in the run folder.

        A run that was opened goes on where it stopped.  The log is told `answers` too.

        Returns
        -------
        dict
            The metrics on the test data; nothing on other ranks than the first.

        Raises
        ------
        DatasetError
            The data are missing, or not those that the run began with.
        ArgumentError
            Several ranks, where there is nothing that they could share; a log, and no Trainer;
            another process that trains in the folder.
        """
        if log is not None and not self.resumable:
            expected, got = "none: it trains in a moment, without a Trainer", f"{log!r:.60}"
            raise ArgumentError(self.name, "log", expected, got, "leave it out")
        with run.alone():
            return self._train(config, run, data_dir, download, progress, log)

    def _train(
        self,
        config: Any,
        run: RunFolder,
        data_dir: Folder,
        download: bool,
        progress: Progress | None,
        log: Log | None,
    ) -> dict[str, float]:
        self.deal(config, run)
        task = self.prepare(config, data_dir, download, run)
        task.log = log
        found = self.fit(task, run, progress or Progress())
        if not self.goes_on_alone(task, run):
            return {}
        result = self.finish(task, run, found)
        run.write_result(result)
        if log is not None:
            log.answers(self.answers(config, self.trained(run).eval(), run.config))
        return dict(result["test"])

    def rehearse(
        self, config: Any, data_dir: Folder = None, download: bool = False
    ) -> dict[str, Any]:
        """Try one batch and time it; nothing is learnt, and nothing written but caches.

        Returns
        -------
        dict
            What `Trainer.rehearse` found, and a `summary` of the network.
        """
        task = self.prepare(config, data_dir, download)
        loader = self.loader(config, task.data.training)
        summary = self.summary_of(task.network, first_batch(loader)[0])
        return {"summary": summary, **self.trainer(task, progress=False).rehearse(loader)}

    def training_step(
        self, config: Any, data_dir: Folder = None, download: bool = False
    ) -> Callable[[], Any]:
        """A function that learns from one batch, again and again, and writes nothing."""
        return self.step(self.prepare(config, data_dir, download))

    def evaluate(
        self, run: RunFolder, data_dir: Folder = None, best: bool = False, device: str = "cpu"
    ) -> dict[str, float]:
        """The metrics of a run's last or best parameters on the test data, on any device."""
        target = usable_device(device)
        config, network = self.settings_of(run), self.trained(run, best).to(target)
        with self._reading(run):
            test = self.test_data(config, run.config, data_dir or run.config.get("data_dir"))
        return self.measure(config, network, test)

    def draw(self, run: RunFolder) -> Iterator[Path]:
        """Draw the pictures of a run, and yield the path of each; most need matplotlib."""
        config = self.settings_of(run)
        network = self.trained(run).eval()
        with self._reading(run):
            loss = self.graph(config, network, run.config)
        answers: dict[str, Any] = {}
        with suppress(DatasetError), self._reading(run):
            answers = self.answers(config, network, run.config)
        result = run.result()
        contents = show.ReportContents(
            title=self.title(config),
            verdict=self.verdict(result) if result else None,
            result=result,
            rows=run.rows(),
            config=run.config,
            environment=run.environment(),
            state=network.state_dict(),
            graph=loss,
            **answers,
        )
        try:
            yield show.graph(loss, run.path / "graph.svg")
            yield show.report(contents, run.path / "report.html")
            with suppress(DatasetError, GraphError, NotImplementedError):
                yield self.steps(run)
            yield from self.pictures(run, config, network)
        except OSError as error:
            raise CheckpointError(
                "show", str(run.path), "a folder that can be written", reason(error)
            ) from None

    def steps(self, run: RunFolder, data_dir: Folder = None) -> Path:
        """Draw the first step of a run as a page to go through; its data have to be at hand."""
        return draw_first_step(self, run, data_dir)

    def trained(self, run: RunFolder, best: bool = False) -> Any:
        """The network of a run with its last or its best parameters, on the cpu."""
        if best and not self.resumable:
            expected = "a run with validation data"
            got = f"{run.path}, which has none"
            way_out = "leave it out: the last parameters are taken"
            raise ArgumentError("evaluate", "--best", expected, got, way_out)
        config = self.settings_of(run)
        with self._reading(run):
            network = self.blank(config, run.config)
        network.load_state_dict(run.load_parameters(best))
        return network

    # ---- the parts of a training ------------------------------------------------------------

    def prepare(
        self,
        config: Any,
        data_dir: Folder = None,
        download: bool = False,
        run: RunFolder | None = None,
    ) -> Task:
        """Load the data and make the network, as it was where a run goes on."""
        # An absent device shows before anything is loaded.  A rank gets the GPU that is its own.
        place = getattr(config, "device", "cpu")
        if place.startswith("cuda"):
            init("nccl")
        device = usable_device(place)
        data = self._loaded(config, data_dir, download)
        tg.manual_seed(getattr(config, "seed", 0))
        if run is None or not run.opened:
            return Task(config, data, self.model(config, data.facts).to(device), data_dir)
        for name, fact in data.facts.items():
            if fact != run.config.get(name):
                expected = f"that of the run, {run.config.get(name)}"
                way_out = "resume with the files that the run began with"
                raise DatasetError(self.name, name, expected, fact, way_out)
        with self._reading(run):
            return Task(config, data, self.model(config, run.config).to(device), data_dir)

    def _loaded(self, config: Any, data_dir: Folder, download: bool) -> Data:
        """The data; what has to be fetched is fetched by the first rank, for all of them."""
        if not download:
            return self.data(config, data_dir)
        found = self.data(config, data_dir, download) if leads() else None
        world().barrier()
        return self.data(config, data_dir) if found is None else found

    def deal(self, config: Any, run: RunFolder) -> None:
        """Settle how the ranks of a launch share a training: the shards of a new run.

        The run keeps them: they fix its bits, whatever the number of ranks that go on with it.  A
        network whose layers span the ranks has none but as many as there are ranks.
        """
        size = world().size
        if self.spans_ranks(config):
            if config.shards is not None:
                expected = f"none with parallel={config.parallel}: as many as ranks"
                raise ArgumentError(self.name, "shards", expected, config.shards, "leave it out")
            return
        if size == 1:
            return
        if self.alone or not hasattr(config, "shards"):
            why = self.alone or "its config has no `shards`, as that of a TrainingSettings has"
            way_out = "start it without mpiexec"
            raise ArgumentError(self.name, "ranks", f"one process: {why}", f"{size} ranks", way_out)
        if config.shards is None and not run.opened:
            config.shards = usual_shards(size)
        if config.shards is None:
            expected, got = "one process, for the run has no shards", f"{size} ranks"
            way_out = "resume it without mpiexec, or begin a run with --shards"
            raise ArgumentError(self.name, "ranks", expected, got, way_out)

    def spans_ranks(self, config: Any) -> bool:
        """Whether layers of its network need all ranks for each batch: the setting `parallel`."""
        return getattr(config, "parallel", "data") != "data"

    def goes_on_alone(self, task: Task, run: RunFolder) -> bool:
        """Of several ranks the first one goes on as one process: whether it is this one."""
        if world().size == 1:
            return True
        state = task.network.state_dict()  # layers that are split among the ranks are put together
        leading = leads()
        finalize()
        if leading:
            task.network = self.blank(task.config, run.config).to(
                getattr(task.config, "device", "cpu")
            )
            task.network.load_state_dict(state)
        return leading

    def trainer(self, task: Task, **options: Any) -> Trainer:
        """A Trainer with a fresh optimiser."""
        optimizer = self.optimizer(task.config, task.network)
        return Trainer(
            task.network,
            optimizer,
            self.loss,
            schedule=self.schedule(task.config, optimizer),
            schedule_each=self.schedule_each,
            clip_norm=getattr(task.config, "clip_norm", None),
            capture=None if getattr(task.config, "capture", True) else False,
            compile=getattr(task.config, "compile", None),
            tune=getattr(task.config, "tune", False),
            shards=getattr(task.config, "shards", None),
            **options,
        )

    def step(self, task: Task) -> Callable[[], Any]:
        """The step of the Trainer, on the first batch."""
        loader = self.loader(task.config, task.data.training)
        return first_batch_step(self.trainer(task, progress=False), loader)

    def begin(self, task: Task, run: RunFolder) -> None:
        """Leave in the folder of a new run what it is, so that it can go on."""
        if run.opened:
            return
        given = task.data_dir
        folder = None if given is None else str(as_path("train", "data_dir", given).resolve())
        run.write_config(
            {
                "recipe": self.name,
                **({"file": self.file} if self.file else {}),
                "settings": asdict(task.config),
                **self.remembered(task),
                **({"data_dir": folder} if self.data_files else {}),
            }
        )

    def fit(self, task: Task, run: RunFolder, progress: Progress) -> dict[str, Any]:
        """Train into the run folder; what result.json holds beside the metrics."""
        config = task.config
        self.begin(task, run)
        world().advise(f"go on with `{run.resume_command}`")
        backups = getattr(config, "backup_every", None)
        options = {"run": run, "progress": progress, "log": task.log}
        trainer = self.trainer(task, **options, backup_every=backups)
        if run.opened:
            trainer.resume()
        self.write_environment(config, run)
        epochs = getattr(config, "epochs", None)
        left = None if epochs is None else epochs - trainer.epoch
        if left is None or left > 0:
            held_out = task.data.held_out
            validation = None if held_out is None else DataLoader(held_out, EVALUATION_BATCH)
            loader = self.loader(config, task.data.training)
            trainer.fit(loader, validation, left, getattr(config, "duration", None))
        return {}

    def finish(self, task: Task, run: RunFolder, found: dict[str, Any]) -> dict[str, Any]:
        """What result.json holds: the metrics on the `test` data, and what `fit` found."""
        return {"test": self.measure(task.config, task.network, task.data.test), **found}

    def summary_of(self, network: Any, batch: Any) -> str:
        """The network as a table, for a batch of inputs."""
        return str(network.summary(batch.shape[1:], batch.dtype))

    def write_environment(self, config: Any, run: RunFolder) -> None:
        """Versions, machine, seeds and command line."""
        seeds = {"all": config.seed} if hasattr(config, "seed") else {}
        size = world().size
        ranks = {"ranks": size} if size > 1 else {}
        run.write_environment(tinygraph=tg.__version__, seeds=seeds, command=sys.argv, **ranks)

    @contextmanager
    def _reading(self, run: RunFolder) -> Iterator[None]:
        """CheckpointError where config.json does not hold what a run of this recipe needs."""
        try:
            yield
        except (KeyError, TypeError, ValueError) as error:
            got = f"no {error}" if isinstance(error, KeyError) else error
            raise CheckpointError(
                "run folder", str(run.path / "config.json"), f"a run of {self.name}", got
            ) from error
