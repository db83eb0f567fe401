"""Launches of every kernel of tinygraph/cuda that together reach every line of it.

They stand in the files launches_*.py: each has `FAMILIES`, for a .cu file a function that takes a
random generator and yields launches.  An op whose file has none there is launched on the problems
of its own tests (contract_work.py).  Shapes are small and no multiples of tiles; there is a launch
of size 1, one that fills a tile or block exactly, one with edges, and one in which a thread owns
several elements.  Kernels of float stand for those of double; where the two run different code,
both are there.

Numbers come from numpy and from tests/reference, or as recorded.py tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np

from tests.cuda.contract_work import contract_launches, contracts
from tests.cuda.launch import Launch
from tinygraph.cuda.reading.source import kernel_files

Family = Callable[[np.random.Generator], Iterator[Launch]]


@cache
def families() -> dict[str, Family]:
    """What makes the launches of each .cu file; those of launches_*.py first."""
    own = own_families()
    left = sorted({path.name for path in kernel_files()} - own.keys())
    return own | {name: _of_contracts(name) for name in left if contracts(name)}


def _of_contracts(file: str) -> Family:
    return lambda random: contract_launches(file)


@cache
def _modules() -> dict[Path, dict[str, Family]]:
    """What each launches_*.py has."""
    paths = sorted(Path(__file__).parent.glob("launches_*.py"))
    return {path: import_module(f"tests.cuda.{path.stem}").FAMILIES for path in paths}


@cache
def own_families() -> dict[str, Family]:
    """What makes the launches of those .cu files that have some in launches_*.py."""
    found: dict[str, Family] = {}
    for path, more in _modules().items():
        twice = found.keys() & more.keys()
        assert not twice, f"{path.name}: {sorted(twice)} have their launches elsewhere too"
        found |= more
    return found


def written_in() -> dict[str, Path]:
    """For each of those .cu files, the launches_*.py that has its launches."""
    return {file: path for path, families in _modules().items() for file in families}


@cache
def launches_of(file: str) -> dict[tuple[object, ...], list[Launch]]:
    """The launches of the kernels of a .cu file, by the compiled kernel that they share."""
    groups: dict[tuple[object, ...], list[Launch]] = {}
    for launch in families()[file](np.random.default_rng(0)):
        if launch.file == file:  # an op may launch kernels of other files as well
            groups.setdefault(launch.instance, []).append(launch)
    return groups
