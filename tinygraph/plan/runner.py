"""Plan: a code that runs, whole or tile by tile, on one thread or several.

    worker 0    tiles 0, 1, 2, ...     forward and backward of one tile after the other; gradients
    worker 1    tiles k, k + 1, ...    are added up in arrays of the worker's own

Which worker gets which tiles is fixed, and so is the order of all sums: the same bits from run to
run for the same number of threads.  numpy and BLAS let other threads run while they compute; BLAS
itself is kept to one thread meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygraph.base import above, one_blas_thread
from tinygraph.base.threads import cores, pool
from tinygraph.engine import Array, Spec, here
from tinygraph.engine.running import inherit
from tinygraph.plan.buffers import Arena, Streams
from tinygraph.plan.code import Code
from tinygraph.plan.kernel_program import KernelProgram, late_checks
from tinygraph.plan.leaf_gradients import LeafGradients, Totals
from tinygraph.plan.program import Program
from tinygraph.plan.replay import Replay
from tinygraph.plan.tiles import Cut, divisor, find_cut, tile_size, worth_cutting


class TileWorker:
    """What one thread has to itself: a program for each size of a tile, and totals of gradients."""

    def __init__(self, code: Code, leaves: Sequence[int], draws: Streams) -> None:
        self.code, self.draws = code, draws
        self.totals = Totals()
        self.leaves = leaves
        self.programs: dict[int, Program] = {}
        self.arena = Arena(code.device)
        self.sums: dict[int, Array] = {}  # outputs that are sums over samples

    def program(self, samples: int) -> Program:
        if samples not in self.programs:
            given = self.code, self.totals, self.draws, self.arena
            if self.code.device.runs_kernels:
                self.programs[samples] = KernelProgram(*given)
            else:
                self.programs[samples] = Program(*given) if samples else Replay(*given)
        return self.programs[samples]

    def begin(self) -> None:
        """Totals in arrays of this worker alone, made once."""
        self.totals.reached.clear()
        for at in self.leaves:
            if at not in self.totals.arrays:
                spec = self.code.instructions[at].spec
                self.totals.arrays[at] = np.empty(spec.shape, spec.dtype)


class Plan:
    """A code with buffers laid out once, that can be run again and again.

    `carrying` names the arguments that may carry samples on axis 0.  Threads and samples of a tile
    are chosen from shapes by default; tile 0 means that the batch is not cut, for `cut` gives a
    reason, or because it is small.
    """

    def __init__(
        self,
        code: Code,
        carrying: Sequence[int] = (),
        threads: int | None = None,
        tile: int | None = None,
    ) -> None:
        self.code, self.device, self.carrying = code, code.device, carrying
        self.looks_late = bool(late_checks(code))  # some ops look when `look` is called: on a GPU
        self.cut: Cut = find_cut(code, carrying)
        self.threads, self.tile = 1, 0
        if not self.cut.reason and (tile or threads or worth_cutting(code)):
            self.threads = min(threads or here.top.threads or cores(), self.cut.batch)
            chosen = tile or tile_size(code, self.cut.batch, self.threads)
            self.tile = chosen if chosen < self.cut.batch else 0
            self.threads = self.threads if self.tile else 1
        instructions = code.instructions
        self.gradients = LeafGradients(code)
        self._draws = Streams()
        self._workers = [
            TileWorker(code, self.gradients.leaves, self._draws) for _ in range(self.threads)
        ]
        self._shares = shares_of(self.cut.batch, self.tile, self.threads) if self.tile else []
        self._divisors: dict[int, np.float64] = {}  # of the sums of the batch that runs
        self._root_gradient: Array | None = None
        self._arguments = [
            (at, made.argument) for at, made in enumerate(instructions) if made.argument is not None
        ]
        self._tensors = [
            (at, made.tensor) for at, made in enumerate(instructions) if made.tensor is not None
        ]

    def bytes_of_buffers(self) -> tuple[int, int]:
        """What the buffers take, and what they would take if none shared its place with others."""
        programs = [list(worker.programs.values()) for worker in self._workers]
        arenas = [max([p.bytes for p in some], default=0) for some in programs]
        return sum(arenas), sum(p.requested for some in programs for p in some)

    def replay(self) -> Replay | None:
        """What was taken down of a plan whose batch is not cut."""
        whole = self._workers[0].programs.get(0)
        return whole if isinstance(whole, Replay) and whole.replayed else None

    # ---- running ----------------------------------------------------------------------------

    @np.errstate(all="ignore")  # inf and nan are results, not accidents
    def run(self, arguments: Sequence[Array], gradient: Array | None = None) -> list[Array]:
        """Forward, and backward where the code has a root; the outputs, in arrays of their own.

        Gradients are added to `.grad` of the leaves, which share no memory with the plan.
        """
        self._begin()
        outputs = self._run_tiles(arguments) if self.tile else self._run_whole(arguments, gradient)
        here.top.add_up(self._hand_out, None, None)
        return outputs

    @np.errstate(all="ignore")
    def rehearse(self, arguments: Sequence[Array]) -> None:
        """`run` for its time alone: the outputs and the gradients are thrown away."""
        self._begin()
        (self._run_tiles if self.tile else self._run_whole)(arguments)
        self._add_up()

    def _begin(self) -> None:
        self._draws.forget()
        self.gradients.take_up(self._workers[0].totals)
        for worker in self._workers[1:]:
            worker.begin()

    def _hand_out(self, *_: None) -> None:
        self._add_up()
        self.gradients.hand_out(self._workers[0].totals)

    @np.errstate(all="ignore")
    def forward(self, arguments: Sequence[Array]) -> list[Array]:
        """Forward alone, on the whole batch; `backward` may follow."""
        self._draws.forget()
        outputs = self._forward_whole(arguments)
        if self.code.root is None:
            self._workers[0].program(0).settle()
        return outputs

    @np.errstate(all="ignore")
    def backward(self, gradient: Array) -> dict[int, Array]:
        """The gradients of leaves that the last `forward` leads to, in arrays of their own."""
        worker = self._workers[0]
        self.gradients.take_up(worker.totals)
        program = worker.program(0)
        program.backward(gradient)
        program.settle()
        return self.gradients.leave(worker.totals)

    def _fill(
        self, values: list[Any], arguments: Sequence[Array], tile: tuple[int, int] | None = None
    ) -> None:
        """The leaves; of arguments that carry samples those of a tile."""
        for at, argument in self._arguments:
            array = arguments[argument]
            if tile and self.cut.rows[at]:
                first, stop = tile
                array = array[first * self.cut.rows[at] : stop * self.cut.rows[at]]
            values[at] = array
        for at, tensor in self._tensors:
            values[at] = tensor.value

    def look(self) -> None:
        """Let ops look at what the last run has given them, where they have not before."""
        if self.looks_late:
            self._workers[0].program(0).look()

    def _forward_whole(self, arguments: Sequence[Array]) -> list[Array]:
        """Copies of the outputs: what leaves a plan is never overwritten later."""
        program = self._workers[0].program(0)
        self._fill(program.values, arguments)
        if self.device.runs_kernels:
            for at, _ in (*self._arguments, *self._tensors):
                program.values[at] = self.device.contiguous(program.values[at])
            here.top.hold(self)  # a graph that is captured will write these arrays at every launch
        program.forward()
        return [self.device.copy(program.values[at]) for at in self.code.outputs]

    def _run_whole(self, arguments: Sequence[Array], gradient: Array | None = None) -> list[Array]:
        outputs, program = self._forward_whole(arguments), self._workers[0].program(0)
        if self.code.root is not None:
            spec = self.code.instructions[self.code.root].spec
            given = self._one(spec) if gradient is None else gradient
            if here.top.weight != 1:
                given = above.times(self.device, given, here.top.weight)
            program.backward(given)
        program.settle()
        return outputs

    def _one(self, spec: Spec) -> Array:
        """The gradient of the root by itself; a graph that is captured has to fill it each time."""
        if self._root_gradient is None or not self.device.on_host:
            self._root_gradient = self.device.full(spec.shape, spec.dtype, 1)
            if self.device.on_host:
                self._root_gradient.flags.writeable = False  # it serves all runs
        return self._root_gradient

    def _run_tiles(self, arguments: Sequence[Array]) -> list[Array]:
        specs = {at: self.code.instructions[at].spec for at in self.code.outputs}
        maps = [at for at in specs if self.cut.kinds[at] == "map"]
        whole = {at: np.empty(specs[at].shape, specs[at].dtype) for at in maps}
        shares, values = self._shares, [None] * len(self.code.instructions)
        self._fill(values, arguments)
        sums = {at for at in (*specs, self.code.root) if at is not None} - {*maps}
        batch = self.cut.batch
        self._divisors = {
            at: self._divisor(at, values, batch) for at in sums if self.cut.kinds[at] == "sum"
        }
        if self.threads == 1:
            self._work(self._workers[0], shares[0], arguments, whole)
        else:
            with one_blas_thread():
                work = inherit(self._work)
                others = [
                    pool(os.getpid()).submit(work, worker, share, arguments, whole)
                    for worker, share in zip(self._workers[1:], shares[1:], strict=True)
                ]
                try:
                    self._work(self._workers[0], shares[0], arguments, whole)
                finally:
                    failures = [other.exception() for other in others]  # waits for all of them
                for failure in failures:
                    if failure is not None:
                        raise failure
        return [whole[at] if at in whole else self._total(at) for at in self.code.outputs]

    @np.errstate(all="ignore")  # each thread has its own state
    def _work(
        self,
        worker: TileWorker,
        tiles: list[tuple[int, int]],
        arguments: Sequence[Array],
        whole: dict[int, Array],
    ) -> None:
        """The tiles of one worker, one after the other."""
        rows = self.cut.rows
        worker.sums.clear()
        for first, stop in tiles:
            program = worker.program(stop - first)
            self._fill(program.values, arguments, (first, stop))
            program.begin_at(first, stop - first, rows)
            program.forward()
            for at in self.code.outputs:
                value = program.values[at]
                if at in whole:
                    whole[at][first * rows[at] : stop * rows[at]] = value
                elif self.cut.kinds[at] == "sum":
                    scale = self._scale(at, program.values, stop - first)
                    # A tile of which nothing counts: the mean of no term is NaN.
                    part = value * value.dtype.type(scale) if scale else np.zeros_like(value)
                    worker.sums[at] = worker.sums[at] + part if at in worker.sums else part
                else:
                    worker.sums[at] = value
            if self.code.root is not None:
                spec = self.code.instructions[self.code.root].spec
                scale = self._scale(self.code.root, program.values, stop - first)
                scale *= here.top.weight
                program.backward(np.full(spec.shape, scale, spec.dtype))
            program.settle()

    def _divisor(self, at: int, values: Any, samples: int) -> np.float64:
        cut = self.cut
        found = divisor(self.code, cut.reduced[at], cut.kinds, values, samples, cut.batch)
        return np.float64(found or 0)

    def _scale(self, at: int, values: Any, samples: int) -> float:
        """How much of a sum over the whole batch is that of a tile, whose values these are."""
        return float(self._divisor(at, values, samples) / self._divisors[at])

    def _total(self, at: int) -> Array:
        parts = [worker.sums[at] for worker in self._workers if at in worker.sums]
        if self.cut.kinds[at] != "sum":
            return np.array(parts[0])
        return np.asarray(sum(parts[1:], start=parts[0]))

    def _add_up(self) -> None:
        """Add the workers' gradients together, in their order."""
        totals = self._workers[0].totals
        for worker in self._workers[1:]:
            for at in self.gradients.leaves:
                if at in worker.totals.reached:
                    totals.add(at, worker.totals.arrays[at])


def shares_of(batch: int, tile: int, workers: int) -> list[list[tuple[int, int]]]:
    """For each worker its tiles (first, stop): neighbours, and about as many samples for each.

    >>> shares_of(10, 3, 2)
    [[(0, 3), (3, 5)], [(5, 8), (8, 10)]]
    """
    shares = []
    for worker in range(workers):
        first, stop = batch * worker // workers, batch * (worker + 1) // workers
        shares.append([(at, min(at + tile, stop)) for at in range(first, stop, tile)])
    return shares
