"""The first step of a run, made again for a page: see show.steps.

Settings, seed and data decide what the first step of a training is.  So nothing is recorded while
it trains; whoever draws a run makes that step once more, from the start, on the cpu and as the
graph stands.  On the cpu and without a plan these are the bits of the training.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from tinygraph.engine import default_generator
from tinygraph.show import steps
from tinygraph.training import RunFolder

PLAIN = {"device": "cpu", "compile": False, "tune": False, "capture": False}


def draw_first_step(recipe: Any, run: RunFolder, data_dir: Any = None) -> Path:
    """Write steps.html into the folder of a run of a recipe.

    Raises
    ------
    DatasetError
        The data are missing, or not those that the run began with.
    """
    run = RunFolder.open(run.path)
    draws = default_generator.state_dict()
    config = recipe.settings_of(run)
    known = {field.name for field in fields(config)}
    config = replace(config, **{key: value for key, value in PLAIN.items() if key in known})
    try:
        task = recipe.prepare(config, data_dir or run.config.get("data_dir"), run=run)
        recipe.begin(task, run)  # a first network of its own is taken up
        step = recipe.step(task)
        return steps(step, run.path / "steps.html", title=f"{recipe.title(config)}: the first step")
    finally:
        default_generator.load_state_dict(draws)
