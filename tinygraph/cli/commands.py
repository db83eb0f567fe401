"""The commands that train and look at runs."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from tinygraph import recipes
from tinygraph.base import ArgumentError, CheckpointError, install
from tinygraph.base.page_text import clip
from tinygraph.base.paths import typed
from tinygraph.base.streams import unbroken
from tinygraph.base.text_table import aligned
from tinygraph.cli.options import given_settings
from tinygraph.distributed import leads, world
from tinygraph.recipes.settings import DeviceName, as_text, describe_type, fit, meanings, type_of
from tinygraph.training import Progress, RunFolder, TensorBoard

HOW_LONG = ("epochs", "duration")  # settings that a resumed run may have others of


def train(args: Namespace) -> dict[str, Any]:
    """Train a recipe or go on with a run, draw the pictures, and name all files."""
    if args.resume:
        recipe, config, run = _taken_up(args)
    else:
        recipe = recipes.find(args.recipe)
        refuse_data_files(recipe, args)
        config = recipe.settings(given_settings(args, recipe))
        if args.dry_run:
            return _rehearsed(recipe, config, args)
        run = RunFolder(args.run) if args.run else RunFolder.new(recipe.name)
    with run.alone(), unbroken():
        return _trained(recipe, config, run, args)


def _trained(
    recipe: recipes.Recipe, config: Any, run: RunFolder, args: Namespace
) -> dict[str, Any]:
    with _removed_if_empty(run):
        recipe.deal(config, run)
    print(f"{recipe.name}: {listed(asdict(config))}", flush=True)
    if world().size > 1:
        way_on = f"where one of them dies, all end: `{run.resume_command}` goes on"
        what = "layers" if config.shards is None else f"{config.shards} shards"
        print(f"{world().size} ranks share {what}; {way_on}", flush=True)
    if run.opened and run.finished:
        print(f"{how_far(run)}: --epochs goes on, with more of them", flush=True)
    data_dir, shown = args.data_dir or run.config.get("data_dir"), leads() and not args.json
    with _removed_if_empty(run), plain_warnings():
        progress = Progress(lines=shown, bar=None if leads() else False)
        goes_on = (run.path / "tensorboard").is_dir()  # with the files of the run
        log = TensorBoard(run) if args.tensorboard or goes_on else None
        result = recipe.train(config, run, data_dir, args.download, progress, log)
    if not result:
        return {"recipe": recipe.name}  # another rank than the first, which is done
    _, notes = _draw(recipe, run)
    files = [str(path) for path in run.files()]
    for file in files:
        print(f"wrote {file}")
    print(f"test {recipe.metric} {result[recipe.metric]:.4f}")
    return {
        "recipe": recipe.name,
        "settings": asdict(config),
        "run": str(run.path),
        "finished": run.finished,
        "files": files,
        "notes": notes,
        "epochs": run.rows(),
        "test": result,
    }


@contextmanager
def _removed_if_empty(run: RunFolder) -> Iterator[None]:
    """Where nothing was trained, the folder of a new run goes again."""
    try:
        yield
    except BaseException:
        run.remove_if_empty()
        raise


def _taken_up(args: Namespace) -> tuple[recipes.Recipe, Any, RunFolder]:
    """Recipe, settings and folder of a run that goes on, for longer if asked to.

    Refused with other settings.
    """
    if args.run or args.dry_run:
        raise ArgumentError(
            "train: --resume goes on in the folder of its run: leave out --run and --dry-run"
        )
    try:
        run = RunFolder.open(args.resume)
        from_file = args.recipe and args.recipe.endswith(".py")
        recipe = recipe_of(run, args.recipe if from_file else None)
        config = recipe.settings_of(run)
    except CheckpointError as error:  # bad input, not a failure of the training
        raise ArgumentError(str(error)) from None
    if not recipe.resumable:
        expected = "a run of a recipe that saves checkpoints"
        got = f"one of {recipe.name}, which trains in a moment"
        raise ArgumentError("train", "--resume", expected, got, "start a new run")
    refuse_data_files(recipe, args)
    saved = {**asdict(config), "recipe": recipe.name}
    asked = {**given_settings(args, recipe), "recipe": recipe.name}
    if args.recipe and not from_file:
        asked["recipe"] = args.recipe
    differing = [
        f"{name} is {saved[name]!r} there and {value!r} here"
        for name, value in asked.items()
        if saved.get(name) != value and name not in HOW_LONG
    ]
    if differing:
        raise ArgumentError(
            f"train: --resume {args.resume}: the run has other settings: {'; '.join(differing)}. "
            "Way out: leave these options out, or start a new run"
        )
    config = recipe.settings({**asdict(config), **{n: asked[n] for n in HOW_LONG if n in asked}})
    if (asked.get("epochs") or run.epochs_done) < run.epochs_done:
        expected = f"at least {run.epochs_done}, which are done"
        raise ArgumentError("train", "--epochs", expected, asked["epochs"], "start a new run")
    if asdict(config) != {name: value for name, value in saved.items() if name != "recipe"}:
        with run.alone(keep=True):
            run.lengthen(asdict(config))
    return recipe, config, run


def refuse_data_files(recipe: recipes.Recipe, args: Namespace) -> None:
    """An option about data files means nothing to a recipe that makes its own data."""
    given = [
        f"--{name.replace('_', '-')}"
        for name in ("data_dir", "download")
        if getattr(args, name, None)
    ]
    if given and not recipe.data_files:
        way_out = "leave it out: this recipe makes its own data"
        raise ArgumentError(recipe.name, given[0], "no such option", "it", way_out)


def _rehearsed(recipe: recipes.Recipe, config: Any, args: Namespace) -> dict[str, Any]:
    """Build everything, try one batch, and write nothing."""
    found = recipe.rehearse(config, args.data_dir, args.download)
    print(f"{recipe.name}: {listed(asdict(config))}")
    print(found["summary"])
    print(f"a batch: {found['batch']}, loss {found['loss']:.4f}")
    step, batches = found["step_seconds"], found["batches"]
    print(
        f"a step takes {step * 1e3:.1f} ms, an epoch of {batches} batches about "
        f"{step * batches:.1f} s"
    )
    print("dry run: nothing was trained, nothing was written")
    return {"recipe": recipe.name, "settings": asdict(config), **found}


def listed(settings: dict[str, Any]) -> str:
    """Settings in one line; those that are None are left out."""
    return ", ".join(f"{name} {value}" for name, value in settings.items() if value is not None)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings as one line each, without the place in the code."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


def evaluate(args: Namespace) -> dict[str, Any]:
    """Look at the test data with the parameters of a run."""
    device = fit("evaluate", "--device", DeviceName, args.device)
    run = RunFolder.open(args.run)
    recipe = recipe_of(run, args.recipe)
    refuse_data_files(recipe, args)
    if not run.finished:
        print(f"{how_far(run)}; go on with `{run.resume_command}`")
    result = recipe.evaluate(run, args.data_dir, args.best, device)
    for name in sorted(result, key=lambda name: name == recipe.metric):
        print(f"test {name} {result[name]:.4f}")
    return {"recipe": recipe.name, "run": str(run.path), "finished": run.finished, "test": result}


def how_far(run: RunFolder) -> str:
    """How much of its training a run has behind it, in words."""
    done, asked = run.epochs_done, run.epochs_asked
    of = f"{done} of {asked} epochs" if asked else f"{done} epochs"
    return f"the run is finished, {of}" if run.finished else f"the run stopped after {of}"


def list_recipes(args: Namespace) -> dict[str, Any]:
    """Name the recipes, or describe the settings of one."""
    if args.recipe:
        return _described(recipes.find(args.recipe))
    known = recipes.recipes.values()
    width = max(len(recipe.name) for recipe in known)
    for recipe in known:
        print(f"{recipe.name:{width}}  {recipe.summary}")
    rows = [{"name": r.name, "summary": r.summary, "settings": asdict(r.config())} for r in known]
    return {"recipes": rows}


def _described(recipe: recipes.Recipe) -> dict[str, Any]:
    """The settings of a recipe: what they may be, their defaults, what they mean."""
    defaults, words = asdict(recipe.config()), meanings(recipe.config)
    kinds = {name: describe_type(type_of(recipe.config, name)) for name in words}
    usual = {name: clip(as_text(defaults[name]), 24) for name in words}
    cells = [("--set", "default", "meaning", "what it may be")]
    cells += [(name, usual[name], words[name], kinds[name]) for name in words]
    print(f"{recipe.name}: {recipe.summary}\n")
    print("\n".join(aligned(cells, left=(0, 1, 2, 3))))
    rows = [
        {"name": name, "default": defaults[name], "meaning": words[name], "type": kinds[name]}
        for name in words
    ]
    return {"name": recipe.name, "summary": recipe.summary, "settings": rows}


def show(args: Namespace) -> dict[str, Any]:
    """Draw the pictures of a run again, or with --steps its first step alone."""
    run = RunFolder.open(args.run)
    recipe = recipe_of(run, args.recipe)
    files, notes = ([str(recipe.steps(run))], []) if args.steps else _draw(recipe, run)
    for file in files:
        print(f"wrote {file}")
    return {"run": str(run.path), "files": files, "notes": notes}


def recipe_of(run: RunFolder, file: str | None) -> recipes.Recipe:
    """The recipe of a run.  One of a file is named by the user: a run folder runs no code."""
    name, source = run.config.get("recipe"), run.config.get("file")
    if not isinstance(name, str):
        raise CheckpointError(
            "run folder", str(run.path / "config.json"), "the name of a recipe", name
        )
    if file is None and source is None:
        return recipes.get(name)
    recipe = None if file is None else recipes.find(file)
    if recipe is None or recipe.name != name:
        expected = f"the file of its recipe {name}, which was {source}"
        place = typed(run.path)
        way_out = (
            f"name its file, FILE.py: tinygraph train FILE.py --resume={place}, or "
            f"tinygraph evaluate {place} --recipe FILE.py"
        )
        raise ArgumentError("run folder", str(run.path), expected, file or "none", way_out)
    return recipe


def _draw(recipe: recipes.Recipe, run: RunFolder) -> tuple[list[str], list[str]]:
    """The pictures that could be drawn, and a note where a library is absent."""
    files: list[str] = []
    try:
        files.extend(str(path) for path in recipe.draw(run))
    except ImportError:
        note = f"no further pictures without matplotlib: {install('plot')}"
        print(note)
        return files, [note]
    return files, []
