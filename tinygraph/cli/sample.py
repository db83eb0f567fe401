"""`tinygraph sample`: let a trained network write a text."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from tinygraph.base import ArgumentError
from tinygraph.cli.commands import recipe_of
from tinygraph.cli.options import DEVICE, Options, real_number, whole_number
from tinygraph.recipes import TextRecipe, recipes
from tinygraph.recipes.settings import DeviceName, fit
from tinygraph.recipes.text import beginning
from tinygraph.training import RunFolder


def sample(args: Namespace) -> dict[str, Any]:
    """Print the prompt and what the network of a run adds to it."""
    run = RunFolder.open(args.run)
    recipe = recipe_of(run, args.recipe)
    if not isinstance(recipe, TextRecipe):
        writers = ", ".join(name for name, r in recipes.items() if isinstance(r, TextRecipe))
        expected = f"a run of a recipe that writes text ({writers})"
        raise ArgumentError("sample", "RUN", expected, f"one of {recipe.name}")
    device = fit("sample", "--device", DeviceName, args.device)
    how = args.length, args.temperature, args.seed, args.best, device
    prompt = beginning(run.config["alphabet"]) if args.prompt is None else args.prompt
    text = recipe.sample(run, prompt, *how)
    print(prompt + text)
    return {
        "run": str(run.path),
        "prompt": prompt,
        "text": text,
        "temperature": args.temperature,
        "seed": args.seed,
    }


SAMPLE_OPTIONS: Options = {
    "--prompt TEXT": ("how the text begins; default an empty line, if the text has lines", {}),
    "--length N": (
        "characters that are added; default 500",
        {"type": whole_number(1), "default": 500},
    ),
    "--temperature X": (
        "1 draws as the network says, less is less daring, 0 takes the most probable character; "
        "default 0.8",
        {"type": real_number(0), "default": 0.8},
    ),
    "--seed N": ("of the drawing; default 0", {"type": whole_number(0, 2**63), "default": 0}),
    "--device NAME": (DEVICE, {"default": "cpu"}),
}
