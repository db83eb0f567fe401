"""Trainer: epochs of forward, backward and update, which can be stopped and resumed at any batch.

    for each epoch:  for each batch:  loss = L(model(x), t);  gradients;  one step of the optimiser
                     mean loss and accuracy over the samples; the same on the validation data

With a run folder, the log, the parameters and checkpoints are kept.  A checkpoint holds everything
that the next batch depends on, so that a training that was stopped ends with the same bits as one
that was not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from tinygraph.base import ArgumentError, number, one_of
from tinygraph.data import DataLoader
from tinygraph.distributed import arrays_from_first, from_first, world
from tinygraph.engine import Array, Tensor, default_generator
from tinygraph.nn import Module
from tinygraph.optim import Optimizer, ReduceLROnPlateau, Schedule
from tinygraph.training.checkpoints import Checkpoints
from tinygraph.training.evaluation import Loss, Means, forward, mode
from tinygraph.training.log import Log, checked_log
from tinygraph.training.make_step import make_step
from tinygraph.training.metrics import best_of
from tinygraph.training.progress import Progress, shown
from tinygraph.training.rehearsal import rehearse
from tinygraph.training.run import RunFolder
from tinygraph.training.state import pack, require_order, restore
from tinygraph.training.step import require_finite
from tinygraph.training.stopping import Asked, Clock, Stopped, StopSignal, require_training


class Trainer:
    """Train a model with an optimiser.

    Parameters
    ----------
    model : Module
    optimizer : Optimizer
        Over the model's parameters.
    loss : function of (output, labels)
        The mean over the batch as a Tensor of one element, such as `tg.cross_entropy`.
    run : RunFolder, optional
        Where the log, the parameters and the checkpoints go.
    progress : Progress or bool, optional
        What is shown on the way; by default lines, and a bar on a terminal.  False: nothing.
    log : Log, optional
        What is told on the way, such as a `TensorBoard`.
    schedule : Schedule, optional
        Of the learning rate; after an epoch it sees the validation loss.
    schedule_each : {"epoch", "batch"}
        After what it takes a step.
    clip_norm : float, optional
        Before each update the gradients are scaled so that their common norm is at most this; see
        `tg.optim.clip_grad_norm`.
    checkpoint_every : float
        Seconds between checkpoints inside an epoch.  There is one after each epoch in any case.
    backup_every : float, optional
        Seconds between copies of the parameters with a date for a name.
    capture : bool, optional
        On a GPU: run each step as one CUDA graph, with the same bits; see `tg.cuda.capture`.  By
        default wherever a graph can repeat the step, else with a CaptureWarning that says why not;
        True: an error says so; False: never.  Steps of a smaller batch, as the last one of an
        epoch, and those that a runner watches (`detect_anomaly`, `recording`), run without it.  A
        captured step updates even where the loss is not finite, which ends the training in any
        case.
    compile : bool, optional
        Run forward and backward through a plan, to the same numbers up to rounding; see
        `tg.compile`.  By default on the cpu, and where no plan can repeat them they run as they
        stand, with a PlanWarning that says why: so where `forward` or the loss counts its calls.
        What they print is printed at steps 1, 2, 4, 8, ... and at the first of an epoch alone.
        False: no plan, and all of that at every step.  With `capture` the plan is what becomes a
        graph.
    tune : bool
        Of a plan, on the cpu: measure tiles and threads at the first step with a batch of some
        size, and keep the fastest.  The run folder records the choice; a resumed run takes it.
    shards : int, optional
        Compute each batch in so many parts, whose gradients are added in a fixed order: the results
        have the same bits on any number of ranks, see `tg.distributed.data_parallel`.  By default
        none in one process; under a launcher as many as ranks, rounded up to a power of two.

    Raises
    ------
    DeviceError
        `capture` is set, and the model is not on a GPU.
    ArgumentError
        `tune` is set where no plan is made.

    Attributes
    ----------
    epoch, steps : int
        Epochs and batches done so far.
    seconds : float
        Time spent in `fit`, that of a resumed run's earlier parts included.
    best : dict or None
        The epoch with the best validation accuracy (or loss, where there is no accuracy).

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> x = np.array([[0.0], [1.0], [2.0]], np.float32)
    >>> data = tg.data.DataLoader(tg.data.ArrayDataset(x, 3 * x), batch_size=3)
    >>> model = tg.nn.Linear(1, 1)
    >>> sgd = tg.optim.SGD(model.parameters(), lr=0.2)
    >>> trainer = tg.training.Trainer(model, sgd, tg.mse_loss, progress=False)
    >>> rows = trainer.fit(data, epochs=200)
    >>> round(model.weight.item(), 3)
    3.0
    """

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        loss: Loss,
        *,
        run: RunFolder | None = None,
        progress: Progress | bool | None = None,
        log: Log | None = None,
        schedule: Schedule | ReduceLROnPlateau | None = None,
        schedule_each: str = "epoch",
        clip_norm: float | None = None,
        checkpoint_every: float = 60.0,
        backup_every: float | None = None,
        capture: bool | None = None,
        compile: bool | None = None,
        tune: bool = False,
        shards: int | None = None,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.loss = loss
        self.run = run
        self.schedule = schedule
        self.schedule_each = one_of("Trainer", "schedule_each", schedule_each, ("epoch", "batch"))
        self.checkpoint_every = checkpoint_every
        self.backup_every = backup_every
        self.progress = shown(progress)
        self.log = checked_log(log)
        self.epoch = self.steps = 0
        self.seconds = self._epoch_seconds = 0.0
        self.best: dict[str, Any] | None = None
        if clip_norm is not None:
            number("Trainer", "clip_norm", clip_norm, above=0)
        self._step = make_step(
            model,
            optimizer,
            self._differentiate,
            run,
            clip_norm=clip_norm,
            capture=capture,
            compile=compile,
            tune=tune,
            shards=shards,
        )
        self._means = Means()  # of the epoch under way
        self._resumed: tuple[dict[str, Any], Array] | None = None  # loader state, order of samples
        self._saved_at = self._backed_up_at = 0.0  # on the clock of `seconds`

    # ---- training ---------------------------------------------------------------------------

    def fit(
        self,
        train_loader: DataLoader,
        validation_loader: DataLoader | None = None,
        epochs: int | None = 1,
        duration: float | None = None,
    ) -> list[dict[str, Any]]:
        """Train for some epochs, more if called again.

        Parameters
        ----------
        train_loader : DataLoader
        validation_loader : DataLoader, optional
            Looked at after each epoch, never learnt from.
        epochs : int or None
            At least 1, the one under way after `resume` included; None where a duration ends it.
        duration : float, optional
            Seconds after which the training ends with the batch under way, counted from the first
            `fit` of the run; the epoch that it cuts off is logged like any other.

        Returns
        -------
        list of dict
            One for each epoch: `epoch` (from 1), `loss` and `accuracy` while training,
            `validation_loss` and `validation_accuracy` with a validation loader, and `seconds`, the
            time of the training part.  Accuracies are there where labels are integers.

        Raises
        ------
        DivergenceError
            The loss is not finite.  In the run folder are the parameters of the epoch before.
        Stopped
            SIGINT, SIGTERM or SIGHUP came, and there is a run folder: a checkpoint was saved.
        ArgumentError
            No batch to train on, a bad number of epochs, a run folder in which another process
            trains, or one with newer checkpoints: `resume` takes them up.
        CheckpointError
            The run folder cannot be written, or the loader is not that of the resumed run.
        """
        require_training(train_loader, epochs, duration)
        with self._alone():
            self._take_up(train_loader)
            return self._epochs(train_loader, validation_loader, epochs, duration)

    def _epochs(
        self,
        loader: DataLoader,
        held_out: DataLoader | None,
        epochs: int | None,
        limit: float | None,
    ) -> list[dict[str, Any]]:
        """Train for some epochs, or as long as that."""
        last = math.inf if epochs is None else self.epoch + epochs
        rows = []
        self.progress.start(None if epochs is None else epochs * len(loader))
        clock = Clock(self.seconds, limit)
        try:
            with StopSignal() as signal:
                self._step.begin(loader)
                self.log.begin(self, loader)
                asked = self._ask(clock, signal)
                while self.epoch < last and not asked.over:
                    rows.append(self._one_epoch(loader, held_out, clock, signal))
                    self.progress.epoch(rows[-1], epochs and int(last))
                    asked = self._ask(clock, signal)
                    self._stop_if_asked(loader, asked)  # it came while validating
        finally:
            self.seconds = clock.now()
            self.progress.close()
            self.log.close()
        return rows

    def step(self, inputs: Array, labels: Array) -> tuple[float, int | None]:
        """Learn from one batch: its mean loss and its number of right answers, None for no classes.

        Nothing is learnt from a loss that is not finite, but where the step is captured.

        Raises
        ------
        DeviceError
            Memory does not suffice.  The step is taken back whole: parameters, running statistics,
            the optimiser's state and the random numbers are as before, whatever it was that failed.
        """
        return self._step(inputs, labels)

    def _differentiate(self, inputs: Array, labels: Array) -> tuple[Tensor, Tensor, Tensor]:
        """Loss, output and labels of a batch, and the gradients in the parameters."""
        output, target = forward(self.model, inputs, labels)
        loss = self.loss(output, target)
        self.optimizer.zero_grad()
        loss.backward()
        return loss, output, target

    def rehearse(self, loader: DataLoader) -> dict[str, Any]:
        """Try one batch forward and backward, learn nothing from it, and say how long it took.

        Returns
        -------
        dict
            `batch` (shapes and dtypes), `loss`, `step_seconds` (the median of three), `batches` in
            an epoch.
        """
        return rehearse(self.model, self.optimizer, self._differentiate, loader)

    def _one_epoch(
        self, loader: DataLoader, held_out: DataLoader | None, clock: Clock, signal: StopSignal
    ) -> dict[str, Any]:
        """What is left of the epoch under way; its row of the log."""
        started = clock.now() - self._epoch_seconds
        self._step.begin_epoch()
        with mode(self.model, training=True):
            for inputs, labels in self._batches(loader, clock, signal):
                loss, right = self.step(inputs, labels)
                require_finite(loss, self.epoch + 1, loader.position)
                self._means.add(loss, right, self._step.samples)
                self.steps += 1
                self.log.batch(self, loss)
                if self.schedule is not None and self.schedule_each == "batch":
                    self.schedule.step()
                self.progress.advance()
                self.seconds, self._epoch_seconds = clock.now(), clock.now() - started
                asked = self._ask(clock, signal)
                self._between_batches(loader, asked)
                if asked.over:
                    break
        return self._close_epoch(loader, held_out)

    def _batches(self, loader: DataLoader, clock: Clock, signal: StopSignal) -> Iterator[Any]:
        """What is left of the epoch.  Where a signal has reached what makes batches, it is a stop.

        Of several ranks the others wait for this one's step: there the error is all that is left.
        """
        try:
            yield from self._step.batches(loader)
        except Exception:
            if signal.received and world().size == 1:
                self._stop_if_asked(loader, self._ask(clock, signal))
            raise

    def _close_epoch(self, loader: DataLoader, held_out: DataLoader | None) -> dict[str, Any]:
        """Validate, log and save; then the next epoch may begin."""
        self.epoch += 1
        row: dict[str, Any] = {"epoch": self.epoch}
        row |= self._means.result() if self._means.samples else {}
        if held_out is not None:
            validation = self._step.evaluate(held_out, self.loss)
            row |= {f"validation_{name}": value for name, value in validation.items()}
        row["seconds"] = self._epoch_seconds
        before, self.best = self.best, best_of(self.best, row)
        self.log.epoch(self, row)
        self._means, self._epoch_seconds = Means(), 0.0
        if self.schedule is not None and self.schedule_each == "epoch":
            self.schedule.step(row.get("validation_loss", row.get("loss")))
        if self.run is not None:
            self.run.append(row)
            self.run.save_parameters(self.model.state_dict())
            if self.best is not before:
                self.run.save_best(self.model.state_dict())
            self._save(loader)
        return row

    # ---- stop and resume --------------------------------------------------------------------

    def resume(self) -> int:
        """Take up the newest whole checkpoint of the run folder, for the next `fit`.

        Returns
        -------
        int
            The steps done until then: 0 where the run was stopped before its first checkpoint.

        Raises
        ------
        CheckpointError
            All checkpoints are damaged, or they belong to another model or optimiser.
        ArgumentError
            Another process trains in the run folder.
        """
        if self.run is None:
            raise ArgumentError("resume", "run", "a run folder", "none", "run=...")
        with self.run.alone(keep=True):  # until the next `fit` ends
            return self._resume(self.run)

    def _resume(self, run: RunFolder) -> int:
        found = arrays_from_first(Checkpoints(run.checkpoints).newest)
        if found is None:
            run.keep_rows(0)
            return 0
        document, order = restore(found, self.model, self.optimizer, self.schedule)
        default_generator.load_state_dict(document["generator"])
        self.epoch, self.steps = document["epoch"], document["steps"]
        self.seconds, self._epoch_seconds = document["seconds"], document["epoch_seconds"]
        self.best, self._means = document["best"], Means(**document["means"])
        self._saved_at = self._backed_up_at = self.seconds
        self._resumed = document["loader"], order
        run.keep_rows(self.epoch)
        self.back_up()
        return self.steps

    def back_up(self) -> Path:
        """Copy the parameters into the run folder's `backups`, with date and time for a name."""
        if self.run is None:
            raise ArgumentError("back_up", "run", "a run folder", "none", "run=...")
        return self.run.back_up(self.model.state_dict())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """In the run folder, if there is one, nobody else trains; and nothing newer is there."""
        with nullcontext() if self.run is None else self.run.training():
            if self.run is not None:
                kept = Checkpoints(self.run.checkpoints)
                from_first(lambda: kept.require_not_ahead(self.epoch, self.steps))
            yield

    def _take_up(self, loader: DataLoader) -> None:
        """Put the loader where the resumed run stood."""
        if self._resumed is None:
            return
        state, order = self._resumed
        loader.load_state_dict(state)
        require_order(order, loader.order(loader.epoch))
        self._resumed = None

    def _ask(self, clock: Clock, signal: StopSignal) -> Asked:
        """What is to be done between two batches: one decision of all ranks."""
        kept, now = self.run is not None, clock.now()
        return Asked.together(
            signal.received or 0,
            clock.over(),
            kept and now - self._saved_at >= self.checkpoint_every,
            kept and bool(self.backup_every and now - self._backed_up_at >= self.backup_every),
        )

    def _between_batches(self, loader: DataLoader, asked: Asked) -> None:
        """Save where it is time to, and stop where a signal came."""
        self._stop_if_asked(loader, asked)
        if asked.back_up:
            self.back_up()
            self._backed_up_at = self.seconds
        if asked.save:
            self._save(loader)

    def _stop_if_asked(self, loader: DataLoader, asked: Asked) -> None:
        """Save and stop where a signal came."""
        if not asked.signal:
            return
        if self.run is None:
            raise KeyboardInterrupt
        self._save(loader)
        raise Stopped(
            f"stopped in epoch {self.epoch + 1} after batch {loader.position}; resume with "
            f"`{self.run.resume_command}`",
            asked.signal,
        )

    def _save(self, loader: DataLoader) -> None:
        """A checkpoint of this moment."""
        if self.run is None:
            return
        document = {
            "epoch": self.epoch,
            "steps": self.steps,
            "seconds": self.seconds,
            "epoch_seconds": self._epoch_seconds,
            "best": self.best,
            "means": vars(self._means),
            "loader": loader.state_dict(),
            "schedule": None if self.schedule is None else self.schedule.state_dict(),
            "generator": default_generator.state_dict(),
        }
        states = self.model.state_dict(), self.optimizer.state_dict()
        state = pack(document, *states, loader.order(loader.epoch))
        folder = Checkpoints(self.run.checkpoints)
        from_first(lambda: str(folder.save(self.epoch, self.steps, state)))
        self._saved_at = self.seconds
