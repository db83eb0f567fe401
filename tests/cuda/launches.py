"""Launches of every kernel of tinygraph/cuda that together reach every line of it.

They stand in the files launches_*.py: each has `FAMILIES`, functions that take a random generator
and yield launches.  Shapes are small and no multiples of tiles; each kernel has a launch of size 1,
one that fills its tile or block exactly, one with edges, and one in which a thread owns several
elements.  Numbers come from numpy and from tests/reference.  Kernels of float stand for those of
double; where the two run different code, both are here.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np

from tests.cuda.launch import Launch


def all_launches() -> list[Launch]:
    """Every launch; the cheap ones of a kernel first."""
    modules = sorted(path.stem for path in Path(__file__).parent.glob("launches_*.py"))
    return [
        launch
        for module in modules
        for family in import_module(f"tests.cuda.{module}").FAMILIES
        for launch in family(np.random.default_rng(0))
    ]
