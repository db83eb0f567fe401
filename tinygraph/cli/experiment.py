"""`tinygraph experiment`: run the experiments of a recipe's source again.

They measure, so they are in the folder benchmarks of a checkout and not in an installed package.
"""

from __future__ import annotations

import importlib
from argparse import Namespace
from contextlib import suppress
from typing import Any

from tinygraph.base import ArgumentError, one_of
from tinygraph.base.streams import unbroken
from tinygraph.cli.options import Options, whole_number
from tinygraph.training import Progress, RunFolder

EXPERIMENTS = {"numba_cnn": "benchmarks.numba_cnn"}  # the module of each


def run_experiment(args: Namespace) -> dict[str, Any]:
    """Measure, train, draw the figures, and name all files."""
    one_of("experiment", "recipe", args.recipe, EXPERIMENTS)
    module = _module(EXPERIMENTS[args.recipe])
    with unbroken():
        return _measured(module, args)


def _measured(module: Any, args: Namespace) -> dict[str, Any]:
    run = RunFolder(args.run) if args.run else RunFolder.new(f"experiment-{args.recipe}")
    try:
        found = module.experiment(
            run,
            args.data,
            args.data_dir,
            args.download,
            args.quick,
            args.rounds,
            args.images,
            args.epochs,
            said=lambda line: print(line, flush=True),
            progress=Progress(lines=not args.json),
        )
    except BaseException:
        with suppress(OSError):
            (run.path / "training").rmdir()  # goes only while it is empty: nothing was learnt
        run.remove_if_empty()
        raise
    notes = list(found["notes"])
    try:
        for _ in module.draw(run.path, found):
            pass
    except ImportError as error:
        notes.append(str(error))
        print(notes[-1])
    checkpoints = run.path / "training" / "checkpoints"
    files = [str(path) for path in run.files() if checkpoints not in path.parents]
    for file in files:
        print(f"wrote {file}")
    print(f"test accuracy {found['test']['accuracy']:.4f}")
    return {"recipe": args.recipe, "run": str(run.path), "files": files, **found, "notes": notes}


def _module(name: str) -> Any:
    """The module of an experiment, where there is a checkout to take it from."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in (name, "benchmarks"):
            raise
        expected = "a checkout of tinygraph, whose folder benchmarks has the experiments"
        got = "an installed package, which lacks it"
        way_out = "run it in a checkout: python -m tinygraph experiment ..."
        raise ArgumentError("experiment", name, expected, got, way_out) from None


EXPERIMENT_OPTIONS: Options = {
    "RECIPE": f"one of: {', '.join(EXPERIMENTS)}",
    "--data NAME": "the data of the training (default mnist where it is found, otherwise digits)",
    "--quick": "small sizes and one epoch: to see that it runs",
    "--rounds N": (
        "measurements of each time, interleaved; default 3",
        {"type": whole_number(1), "default": 3},
    ),
    "--images N": (
        "images in a measurement, scaled to an epoch of 60,000 (default: the largest batch)",
        {"type": whole_number(1)},
    ),
    "--epochs N": (
        "of the training whose accuracy is drawn; default 10",
        {"type": whole_number(1), "default": 10},
    ),
    "--run DIR": "a new folder (default runs/experiment-RECIPE-DATE-TIME)",
}
