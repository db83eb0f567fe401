"""`tinygraph export`: the network of a run as an ONNX file."""

from __future__ import annotations

import importlib
from argparse import Namespace
from pathlib import Path
from typing import Any

from tinygraph.base import ArgumentError, OnnxError
from tinygraph.cli.commands import how_far, recipe_of
from tinygraph.cli.options import Options
from tinygraph.interop import onnx
from tinygraph.recipes.example import example_of
from tinygraph.training import RunFolder

EXPORT: Options = {"FILE": "the file to write, such as model.onnx"}


def export(args: Namespace) -> dict[str, Any]:
    """Write the file, say what goes in and out, and compare it with onnxruntime."""
    run = RunFolder.open(args.run)
    recipe = recipe_of(run, args.recipe)
    target = Path(args.file)
    if target.exists():
        way_out = "name another one; a file is never written over"
        raise ArgumentError("export", str(target), "a new file", "one that is there", way_out)
    if not run.finished:
        print(f"{how_far(run)}; go on with `{run.resume_command}`")
    network = recipe.trained(run, args.best).eval()
    config = recipe.settings_of(run)
    with recipe._reading(run):
        example = example_of(recipe, config, network, run.config)
    names = [x.name or f"input_{i}" for i, x in enumerate(example)]
    path = onnx.save(network, target, example, input_names=names)
    comparing = importlib.import_module("tinygraph.interop.onnx.comparing")
    file = comparing.described(path)
    print(f"wrote {path}: {file['operators']} operators, {path.stat().st_size:,} bytes")
    for kind in ("inputs", "outputs"):
        for each in file[kind]:
            sizes = ", ".join(map(str, each["shape"]))
            print(f"{kind[:-1]} {each['name']} ({sizes}) {each['dtype']}")
    found, why_not = None, "pip install onnxruntime"
    try:
        found = comparing.compare(path, network, [x.numpy() for x in example])
    except OnnxError as error:
        why_not = str(error)
    if found is None:
        print(f"not compared: {why_not}")
    else:
        counts = " and ".join(map(str, found.samples))
        print(
            f"compared with onnxruntime {found.version} on {counts} samples: "
            f"largest difference {found.difference:.1e}"
        )
    return {
        "ok": found is None or found.ok,
        "recipe": recipe.name,
        "run": str(run.path),
        "file": str(path),
        **file,
        "compared": None if found is None else found._asdict(),
    }
