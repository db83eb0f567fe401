"""The command that says what a training step takes, op by op or kernel by kernel."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from typing import Any

from tinygraph import recipes
from tinygraph.base import ArgumentError
from tinygraph.cli.commands import listed, plain_warnings, refuse_data_files
from tinygraph.cli.options import given_settings
from tinygraph.engine import get_device
from tinygraph.show import profile_bars
from tinygraph.training import profile_steps


def profile(args: Namespace) -> dict[str, Any]:
    """Run a few training steps of a recipe; say what its ops take, or what its kernels do."""
    recipe = recipes.find(args.recipe)
    refuse_data_files(recipe, args)
    given = {"device": "emulator", **given_settings(args, recipe)}
    for option, value in (("--arch", args.arch), ("--gpu", args.gpu)):
        if value and given["device"] == "cpu":
            expected = "a device that runs kernels: emulator or cuda"
            way_out = "leave it out, or --device emulator"
            raise ArgumentError("profile", option, expected, "cpu", way_out)
    config = recipe.settings(given)
    device = get_device(config.device)
    with plain_warnings():
        step = recipe.training_step(config, args.data_dir, args.download)
    found = profile_steps(step, device, args.steps, args.arch, args.gpu)
    print(f"{recipe.name}: {listed(asdict(config))}")
    print(found)
    files, notes = [], [*found.notes]
    try:
        picture = args.picture or f"profile-{recipe.name}-{device.name}.svg"
        files.append(str(profile_bars(found.to_dict(), picture)))
        print(f"wrote {files[0]}")
    except ImportError as error:
        notes.append(str(error))
        print(notes[-1])
    return {
        "recipe": recipe.name,
        "settings": asdict(config),
        **found.to_dict(),
        "files": files,
        "notes": notes,
    }
