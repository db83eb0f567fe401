"""The kernels that checker, compute-sanitizer and profiler are compared on.

A kernel's file says in comments at its top how it is launched, as in tests/cuda/gallery:

    // launch: --kernel NAME --grid 4 --block 256 --arg ...       (several lines, one launch)
    // expect: race                                               (what is wrong; none: nothing)
"""

from __future__ import annotations

import re
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinygraph.cli.check_kernel import checked, kernel_of, parse_launch
from tinygraph.cuda import Report

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "tests/cuda/gallery"
HERE = Path(__file__).parent


@dataclass(frozen=True)
class GalleryKernel:
    """One file and what its header says."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def expected(self) -> list[str]:
        """The kinds of which any is right; empty where the kernel is right."""
        return [kind for value in self._header("expect") for kind in value.split(", ")]

    @property
    def launch(self) -> Namespace:
        return parse_launch(" ".join(self._header("launch")))

    @property
    def function(self) -> str:
        """The kernel's name without its template arguments."""
        return kernel_of(self.path, self.launch).name.split("<")[0]

    def check(self, profile: bool = False) -> Report:
        """The checker's report, on the emulator."""
        launch = self.launch
        launch.profile = profile
        return checked(self.path, launch)

    def _header(self, key: str) -> list[str]:
        return re.findall(rf"^// {key}: (.*)", self.path.read_text(encoding="utf-8"), re.MULTILINE)


def wrong() -> list[GalleryKernel]:
    return _kernels(GALLERY / "wrong")


def right() -> list[GalleryKernel]:
    return _kernels(GALLERY / "right")


def for_counts() -> list[GalleryKernel]:
    """Kernels that differ in how they access memory: two bad transposes, and right ones."""
    names = (
        "transpose_padded",
        "vector_float4_with_tail",
        "stencil_1d_halo",
        "gemm_tiled",
        "reduce_warp_parts",
        "histogram_privatised",
    )
    return _kernels(HERE) + [GalleryKernel(GALLERY / "right" / f"{name}.cu") for name in names]


def _kernels(folder: Path) -> list[GalleryKernel]:
    found: list[Any] = sorted(folder.glob("*.cu"))
    return [GalleryKernel(path) for path in found]
