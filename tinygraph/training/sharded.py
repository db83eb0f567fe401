"""ShardedStep: a step whose gradients come from shards of the batch, on one rank or several.

    each rank    reads its rows of the batch, differentiates its shards
    together     add losses, gradients and running statistics up in a fixed order
    each rank    makes the same update

Everything that an update depends on has the same bits on all ranks, and so parameters stay the same
without being sent.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tinygraph.base import ArgumentError, DistributedError, one_blas_thread
from tinygraph.data import DataLoader
from tinygraph.data.share import Rows
from tinygraph.distributed import DataParallel, from_first, world
from tinygraph.distributed.data_parallel import Ran
from tinygraph.distributed.shards import Shard, parts_of, require_few
from tinygraph.engine import as_tensor, default_generator, no_grad
from tinygraph.engine import leaf as leaf_of
from tinygraph.nn import Module
from tinygraph.optim import Optimizer, clip_grad_norm
from tinygraph.training.environment import environment
from tinygraph.training.evaluation import (
    Loss,
    batches,
    device_of,
    first_batch,
    look,
    mean_of,
    mode,
    outcome,
)
from tinygraph.training.recorded import Recorded
from tinygraph.training.rehearsal import unlearnt
from tinygraph.training.step import Differentiate, Step

BITS_DEPEND_ON = ("python", "numpy", "machine", "blas")  # of the facts of an environment

if TYPE_CHECKING:
    from tinygraph.plan.tuning import Tuning


class ShardedStep(Step):
    """Learns from a whole batch, or in `batches` from the rows of this rank."""

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        differentiate: Differentiate,
        clip_norm: float | None,
        shards: int | None,
        tuning: Tuning | None = None,
        capture: bool | None = False,
    ) -> None:
        super().__init__(model, optimizer, differentiate, clip_norm)
        self.tuning = tuning
        self._gradients = DataParallel(differentiate, model, shards, lambda found: outcome(*found))
        self._rows: Rows | None = None  # of the batch that was handed out; None for a whole one

        self._shards: Recorded | None = None
        self._updating: Recorded | None = None
        if capture and self._gradients.spans_ranks:
            expected = "False where a layer needs all ranks for each batch"
            raise ArgumentError("Trainer", "capture", expected, True)
        on_gpu = capture or (capture is None and not device_of(model).on_host)
        if on_gpu and not self._gradients.spans_ranks:
            self._shards = Recorded(model, self._of_shards, capture is True)
            self._updating = Recorded(model, self._by_gradients, capture is True)
            self._gradients.run = self._run

    # ---- on a GPU two graphs, and between them what the ranks say to each other ----------------

    def _run(self, rows: Rows, batch: Any) -> Iterable[Ran]:
        """The shards of this rank, by a graph that leaves sums of gradients, or one by one."""
        graph, parallel, self._own_rows = self._shards, self._gradients, rows
        if graph is None or rows.first == rows.stop or not graph.takes(rows.samples):
            return parallel.run_shards(rows, batch)
        try:
            shards, sums = graph(rows.samples, *map(as_tensor, batch))
        except Exception:
            if not graph.reason:
                raise
            graph.give_up()
            parallel.go_back()
            return parallel.run_shards(rows, batch)
        for flat, nodes in zip(parallel.flats, sums, strict=True):
            flat.nodes = nodes
        return shards

    def _of_shards(self, *batch: Any) -> Any:
        shards = [*self._gradients.run_shards(self._own_rows, batch)]
        return shards, [[*flat.nodes] for flat in self._gradients.flats]

    def update(self) -> None:
        graph, optimizer = self._updating, self.optimizer
        if graph is None or not graph.takes(0):
            return super().update()
        if self.clip_norm is not None:
            clip_grad_norm(optimizer.parameters.values(), self.clip_norm)
        leaves = self._gradients.leaves
        self._reached = {leaf: leaf.grad is not None for leaf in leaves}
        totals = [leaf_of(flat.total, flat.device) for flat in self._gradients.flats]
        before = [(state, dict(state)) for state in optimizer.state.values()]
        try:
            graph(0, *totals, like=[*self._reached.values()])
        except Exception:
            if not graph.reason or not (graph.graph and graph.graph.refused):
                raise
            for state, numbers in before:  # nothing but these was changed while it was recorded
                state.clear()
                state.update(numbers)
            graph.give_up()
            optimizer.step()

    def _by_gradients(self, *totals: Any) -> None:
        for flat, total in zip(self._gradients.flats, totals, strict=True):
            flat.gradients_in(total.value, self._reached)
        self.optimizer.step()

    def begin(self, loader: DataLoader) -> None:
        """Look whether the ranks can come to the same bits; let them have the same plans."""
        require_few(self._gradients.shards, getattr(loader, "batch_size", None) or 1, world().size)
        if world().size > 1:
            self._compare()
        if self.tuning is not None:
            if self._gradients.spans_ranks and world().size > 1:
                expected = (
                    "False where a layer needs all ranks for each batch: one measures for all"
                )
                raise ArgumentError("Trainer", "tune", expected, True, "compile=True alone")
            self._tune(self.tuning, loader)

    def _tune(self, tuning: Tuning, loader: DataLoader) -> None:
        """The first rank measures plans for shards of every size; all take what it chose."""

        def measured() -> list[dict[str, Any]]:
            if not tuning.choices:  # else they are those of a run that goes on
                inputs, labels = first_batch(loader)
                samples = {len(inputs), len(loader.order(loader.epoch)) % len(inputs)}
                parts = [part for n in samples for part in parts_of(n, self._gradients.shards)]
                with unlearnt(self.model, self.optimizer):
                    for size in sorted({part.stop - part.first for part in parts} - {0}):
                        self.differentiate(inputs[:size], labels[:size])
            return tuning.to_list()

        tuning.load(from_first(measured))
        tuning.measures = False

    def _compare(self) -> None:
        """A warning where the ranks' machines differ, an error where their parameters do."""
        ranks = world()
        facts = environment()
        mine = [str(facts[name]) for name in BITS_DEPEND_ON]
        state = self.model.state_dict()  # of split layers the whole weight
        found = ranks.all_gather_object(
            [mine, zlib.crc32(b"".join(x.tobytes() for x in state.values()))]
        )
        for rank, (others, digest) in enumerate(found):
            for name, own, other in zip(BITS_DEPEND_ON, found[0][0], others, strict=True):
                if own != other and ranks.rank == 0:
                    text = f"{name} is {own} on rank 0 and {other} on rank {rank}"
                    warnings.warn(
                        f"{text}: another number of ranks may give other bits", stacklevel=2
                    )
            if digest != found[0][1]:
                expected, got = "the same parameters on all ranks", f"others on rank {rank}"
                way_out = "make the model after tg.manual_seed, and load the same file on all ranks"
                raise DistributedError("Trainer", "model", expected, got, way_out)

    def batches(self, loader: DataLoader) -> Iterator[tuple[Any, Any]]:
        """This rank's rows of the batches that are left of an epoch."""
        if self._gradients.same_batch:
            yield from super().batches(loader)
            return
        ranks = world()
        part = loader.part(ranks.rank, ranks.size, self._gradients.shards)
        try:
            for batch in batches(self.model, part):
                self._rows = part.rows
                yield batch
        finally:
            self._rows = None

    def measure(self, inputs: Any, labels: Any) -> tuple[float, int | None]:
        if self._rows is None:
            self.samples = len(inputs)
            found = self._gradients(inputs, labels)
        else:
            self.samples = self._rows.samples
            found = self._gradients.of_rows(self._rows, inputs, labels)
        return found  # type: ignore[return-value]

    def evaluate(self, loader: DataLoader, loss: Loss) -> dict[str, float]:
        """As everybody does it, of each batch in shards; the same bits for any number of ranks."""
        if self._gradients.is_split:
            return super().evaluate(loader, loss)  # layers that need all ranks for each batch
        ranks, shards = world(), self._gradients.shards
        loader = loader.part(ranks.rank, ranks.size, shards)
        draws, before, found = default_generator.state_dict(), 0, []
        with mode(self.model, training=False), no_grad(), one_blas_thread():
            for number, (inputs, labels) in enumerate(batches(self.model, loader)):
                rows: Any = loader.rows
                for part in parts_of(rows.samples, shards, ranks.rank, ranks.size):
                    if part.first == part.stop:
                        continue
                    # Random numbers are those of the samples, whoever looks at them.
                    default_generator.load_state_dict(draws)
                    own = part.within(rows.first)
                    with Shard(part, (), before, batch=(inputs,)):
                        value, hits, samples = look(self.model, inputs[own], labels[own], loss)
                    streams = default_generator.stream - draws["stream"]
                    hits = -1 if hits is None else hits
                    found.append([number, part.shard, streams, value, hits, samples])
                before += rows.samples
        every = ranks.all_gather_rows(np.array(found, np.float64).reshape(-1, 6))
        draws["stream"] += int(every[:, 2].max(initial=0))
        default_generator.load_state_dict(draws)
        return mean_of(
            (value, None if hits < 0 else int(hits), int(samples))
            for _, _, _, value, hits, samples in every[
                np.lexsort((every[:, 1], every[:, 0]))
            ].tolist()
        )
