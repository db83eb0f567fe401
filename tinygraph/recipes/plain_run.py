"""Runs of recipes that train in a moment, without a Trainer: what they save, read and refuse.

Some of the checks of settings serve all recipes.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import tinygraph as tg
from tinygraph.errors import ArgumentError, CheckpointError
from tinygraph.plan import Compiled
from tinygraph.shapes import Array
from tinygraph.training import RunFolder


def save_run(
    run: RunFolder,
    recipe: str,
    settings: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    state: Mapping[str, Any],
    result: Mapping[str, Any],
    differentiate: Callable[..., Any] | None = None,
) -> None:
    """Leave config, environment, log, parameters and result in the run folder.

    And the tiles and threads of `differentiate`, where it is a compiled function that was tuned.
    """
    run.write_config({"recipe": recipe, "settings": dict(settings)})
    seeds = {"all": settings["seed"]} if "seed" in settings else {}
    run.write_environment(tinygraph=tg.__version__, seeds=seeds, command=sys.argv)
    for row in rows:
        run.append(row)
    if isinstance(differentiate, Compiled) and differentiate.tuning is not None:
        run.write_tuning(differentiate.tuning.to_list())
    run.save_parameters(state)
    run.write_result(result)


def last_parameters(run: RunFolder, best: bool = False) -> dict[str, Array]:
    """The parameters of the run; there are no best ones, as there is no validation data."""
    if best:
        raise ArgumentError(
            "evaluate",
            "--best",
            "a run with validation data",
            f"{run.path}, which has none",
            "leave it out: the last parameters are taken",
        )
    return run.load_parameters()


def log_column(run: RunFolder, name: str) -> list[float]:
    """The numbers of one column of the log; CheckpointError where there are none."""
    values = [row.get(name) if isinstance(row, dict) else None for row in run.rows()]
    if not values or not all(isinstance(value, (int, float)) for value in values):
        raise CheckpointError(
            "run folder",
            str(run.path / "log.jsonl"),
            f"a number {name} in each row",
            next((v for v in values if not isinstance(v, (int, float))), "no row"),
        )
    return [float(value) for value in values if value is not None]


def require_at_least(recipe: str, config: Any, **limits: float) -> None:
    """ArgumentError for a setting below its limit.

    A limit of at least 1 is for counts, which must be ints; a limit of 0 is itself refused.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> require_at_least("demo", SimpleNamespace(epochs=0), epochs=1)
    Traceback (most recent call last):
        ...
    tinygraph.errors.ArgumentError: demo: epochs: expected a whole number of at least 1, got 0.
    """
    for name, least in limits.items():
        value, kinds = getattr(config, name), (int,) if least >= 1 else (int, float)
        number = isinstance(value, kinds) and not isinstance(value, bool) and math.isfinite(value)
        if not number or value < least or value == least == 0:
            words = f"a whole number of at least {least}" if least else "a finite number above 0"
            raise ArgumentError(recipe, name, words, repr(value))


def require_compile(recipe: str, config: Any) -> None:
    """ArgumentError where `tune` is set without `compile`: what is tuned is a plan.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> require_compile("demo", SimpleNamespace(compile=True, tune=True))
    """
    if config.tune and not config.compile:
        raise ArgumentError(
            recipe,
            "tune",
            "False where compile is not set",
            True,
            "--set compile=true too: what is tuned is a plan",
        )


def through_plan(differentiate: Callable[..., Any], config: Any) -> Callable[..., Any]:
    """The function, compiled where the settings say so, with measured tiles where they do."""
    if not config.compile:
        return differentiate
    return tg.compile(differentiate, tune=config.tune)


def timed(step: Callable[[], Any], times: int = 3) -> float:
    """Seconds that a step takes: the median of a few."""
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - started)
    return sorted(seconds)[times // 2]


@contextmanager
def writing_to(run: RunFolder) -> Iterator[None]:
    """CheckpointError with the system's reason where a picture cannot be written."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            "show", str(run.path), "a folder that can be written", error.strerror or str(error)
        ) from None
