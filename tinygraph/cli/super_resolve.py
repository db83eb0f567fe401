"""`tinygraph super-resolve`: enlarge a picture with a trained SRCNN."""

from __future__ import annotations

import argparse
import io
import re
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph import nn
from tinygraph.base import AnyPath, ArgumentError, as_path, writable
from tinygraph.base.disk import followed, replace_file
from tinygraph.cli.options import Options, whole_number
from tinygraph.data.images import decode, pillow, pixels
from tinygraph.engine import Array
from tinygraph.recipes.srcnn import recipe
from tinygraph.recipes.srcnn_network import read_network
from tinygraph.recipes.srcnn_tiles import MEMORY, super_resolve, tile_side
from tinygraph.training import RunFolder

FORMATS = {".png": "PNG", ".bmp": "BMP", ".jpg": "JPEG", ".jpeg": "JPEG"}
USUAL_SCALE = 3
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def super_resolve_file(args: Namespace) -> dict[str, Any]:
    """Enlarge the picture, write it, and name what was written."""
    target = writable("super-resolve", args.output, tuple(FORMATS))
    source = Path(args.input)
    if target.exists() and source.exists() and target.samefile(source):
        raise ArgumentError(
            "super-resolve", "OUT", "another file than IN", str(target), "name another one"
        )
    network, scale = trained_network(args.parameters, args.best, args.scale)
    side = tile_side(network, args.memory)  # too little memory is told before anything is done
    before = pixels(decode("super-resolve", str(source), source))  # (3, H, W)
    started = time.perf_counter()
    after = super_resolve(network, before, scale, args.memory)
    seconds = time.perf_counter() - started
    write_image(target, after)
    sizes = [f"{image.shape[2]} x {image.shape[1]}" for image in (before, after)]
    print(f"{sizes[0]} -> {sizes[1]} pixels, in tiles of up to {side} x {side}, {seconds:.1f} s")
    print(f"wrote {target}")
    return {
        "input": str(source),
        "output": str(target),
        "scale": scale,
        "from": sizes[0],
        "to": sizes[1],
        "tile": side,
        "seconds": seconds,
        "files": [str(target)],
    }


def trained_network(
    parameters: AnyPath, best: bool = False, scale: int | None = None
) -> tuple[nn.Sequential, int]:
    """The network of a file or of a run folder, and the scale that it is for.

    A file does not say its scale: 3 where none is given.

    Raises
    ------
    CheckpointError
        The file or the run is absent or damaged.
    ArgumentError
        The run is of another recipe, or was trained for another scale; `best` with a file.
    """
    path = as_path("super-resolve", "parameters", parameters)
    if not path.is_dir():
        if best:
            raise ArgumentError(
                "super-resolve", "--best", "a run folder as --parameters", str(path)
            )
        return read_network(path), scale or USUAL_SCALE
    run = RunFolder.open(path)
    if run.config.get("recipe") != recipe.name:
        raise ArgumentError(
            "super-resolve", "--parameters", "a run of srcnn", f"one of {run.config.get('recipe')}"
        )
    trained_for: int = recipe.settings_of(run).scale
    if scale not in (None, trained_for):
        expected = f"{trained_for}, for which {path} was trained"
        way_out = "leave it out, or train a run for this scale"
        raise ArgumentError("super-resolve", "--scale", expected, scale, way_out)
    return read_network(run.best if best else run.path / "parameters.safetensors"), trained_for


def write_image(path: Path, image: Array) -> None:
    """Write bytes (3, H, W) in the format that the suffix says, in one step."""
    picture = pillow("super-resolve").fromarray(np.ascontiguousarray(np.moveaxis(image, 0, -1)))
    stream = io.BytesIO()
    options = {"quality": 95} if FORMATS[path.suffix.lower()] == "JPEG" else {}
    picture.save(stream, FORMATS[path.suffix.lower()], **options)
    replace_file(followed(path), stream.getvalue())


def byte_count(text: str) -> int:
    """An argument type: bytes, as in 256M.

    >>> byte_count("2K"), byte_count("1.5M")
    (2048, 1572864)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None or not float(match[1]):
        raise argparse.ArgumentTypeError(f"expected a number of bytes such as 256M, got {text!r}")
    return int(float(match[1]) * UNITS[match[2].upper()])


SUPER_RESOLVE_OPTIONS: Options = {
    "IN": ("a picture (PNG, JPEG, BMP) of any size; transparency is lost", {"dest": "input"}),
    "OUT": ("the picture to write; its suffix says the format", {"dest": "output"}),
    "--parameters PATH": (
        "a run folder of srcnn, or parameters in a file (.safetensors, .json)",
        {"required": True},
    ),
    "--best": "with a run folder: the parameters that were best on the validation pictures",
    "--scale N": (
        "how many times as wide and high (default that of the run, for a file 3)",
        {"type": whole_number(1, 99)},
    ),
    "--memory BYTES": (
        f"what the network may take, as in 256M (default {MEMORY >> 20}M); tiles are cut to it",
        {"type": byte_count, "default": MEMORY},
    ),
}
