"""Networks as PyTorch's users write them, ported by changing what is imported.

The folder pytorch/ has programs for PyTorch.  `port` makes of one of them a program for tinygraph;
what it changes is all that a port takes.  Weights, losses and gradients that PyTorch had come from
data/, which `python -m tests.ports.make` has written where PyTorch is installed.
"""

from __future__ import annotations

import re
import types
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
CHANGES = {  # what a port changes, line by line
    r"import torch": "import tinygraph as torch",
    r"import torch\.(\S+) as (\w+)": r"import tinygraph.\1 as \2",
    r"from torch(\S*) import (.*)": r"from tinygraph\1 import \2",
}


def numbers(*shape, seed=0):
    """Numbers of the standard normal distribution, on any machine the same."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def whole(below, *shape, seed=1):
    return np.random.default_rng(seed).integers(0, below, shape)


# name -> the class of the network, what it is made with, and what `training_loss` takes
NETWORKS = {
    "lenet": ("LeNet", {}, [numbers(3, 1, 28, 28), whole(10, 3)]),
    "resnet18": (
        "ResNet",
        {"layers": [2, 2, 2, 2], "width": 4, "num_classes": 10},
        [numbers(4, 3, 64, 64), whole(10, 4)],
    ),
    "gpt": ("GPT", {"vocab_size": 11, "block_size": 8}, [whole(11, 2, 7), whole(11, 2, 7, seed=2)]),
    "lstm": (
        "RNNModel",
        {"ntoken": 9, "ninp": 5, "nhid": 6, "nlayers": 2},
        [whole(9, 7, 3), whole(9, 7, 3, seed=2)],
    ),
    "vae": (
        "VAE",
        {"pixels": 64, "hidden": 20, "latent": 4},
        [1 / (1 + np.exp(-numbers(5, 1, 8, 8))), numbers(5, 4, seed=3)],
    ),
    "unet": (
        "UNet",
        {"n_channels": 3, "n_classes": 3, "width": 4},
        [numbers(2, 3, 18, 22), whole(3, 2, 18, 22)],
    ),
    "vit": (
        "ViT",
        {
            "image_size": 16,
            "patch_size": 4,
            "dim": 16,
            "depth": 2,
            "heads": 4,
            "mlp_dim": 24,
            "num_classes": 10,
        },
        [numbers(2, 3, 16, 16), whole(10, 2)],
    ),
}


def original(name):
    """The program for PyTorch."""
    return (HERE / "pytorch" / f"{name}.py").read_text(encoding="utf-8")


def port(text):
    """The same program for tinygraph."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        for before, after in CHANGES.items():
            if re.fullmatch(before, line):
                lines[i] = re.sub(before, after, line)
    return "\n".join(lines)


def module_of(text, name):
    """A program as a module."""
    module = types.ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), vars(module))
    return module
