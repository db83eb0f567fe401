"""make_step: which step a Trainer takes, by what it was asked for.

Step            the graph, or its plan: by default on the cpu
RecordedStep    on a GPU, the same as one CUDA graph
ShardedStep     with `shards`, and under a launcher of several ranks; on a GPU as two graphs
"""

from __future__ import annotations

from typing import Any

from tinygraph.base import ArgumentError
from tinygraph.distributed import world
from tinygraph.engine import CPU, Tensor
from tinygraph.nn import Module
from tinygraph.optim import Optimizer
from tinygraph.training.evaluation import device_of
from tinygraph.training.run import RunFolder
from tinygraph.training.sharded import ShardedStep
from tinygraph.training.step import Differentiate, RecordedStep, Step


def make_step(
    model: Module,
    optimizer: Optimizer,
    differentiate: Differentiate,
    run: RunFolder | None,
    *,
    clip_norm: float | None,
    capture: bool | None,
    compile: bool | None,
    tune: bool,
    shards: int | None,
) -> Step:
    """The step that a Trainer was asked for."""
    if compile is None:
        compile = device_of(model) is CPU
    if tune and not compile:
        expected, way_out = "False where no plan is made", "compile=True: what is tuned is a plan"
        raise ArgumentError("Trainer", "tune", expected, True, way_out)
    in_shards, device = shards is not None or world().size > 1, device_of(model)
    plan = None
    if compile:
        from tinygraph.plan import compile as tg_compile  # here: not every training has a plan

        threads = 1 if in_shards else None  # more would add in another order
        plan = tg_compile(differentiate, threads=threads, tune=tune)
        plan.name = "the step of the Trainer"
        differentiate = plan if run is None or not tune else _keeping_choices(plan, run)
    if in_shards:
        tuning = None if plan is None else plan.tuning
        step: Step = ShardedStep(
            model, optimizer, differentiate, clip_norm, shards, tuning, capture
        )
    elif capture is False or (capture is None and device.on_host):
        step = Step(model, optimizer, differentiate, clip_norm)
    else:
        step = RecordedStep(model, optimizer, differentiate, clip_norm, required=capture is True)
    step.plan = plan if device.on_host else None
    return step


def _keeping_choices(compiled: Any, run: RunFolder) -> Differentiate:
    """The same; tiles and threads that it measures stand in the run folder before it is learnt.

    An opened run's choices are taken up: their bits are those that the run began with.
    """
    tuning = compiled.tuning
    if run.opened:
        tuning.load(run.tuning())
    written = len(tuning.choices)

    def differentiate(inputs: Any, labels: Any) -> tuple[Tensor, Tensor, Tensor]:
        nonlocal written
        found: tuple[Tensor, Tensor, Tensor] = compiled(inputs, labels)
        if len(tuning.choices) > written:
            run.write_tuning(tuning.to_list())
            written = len(tuning.choices)
        return found

    return differentiate
