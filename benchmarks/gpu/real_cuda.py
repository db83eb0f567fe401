"""A plugin of pytest, for `make gpu`: device "cuda" of the tests is the GPU, through its CuPy.

What is imported already stays: tests/conftest.py finds the real CuPy in memory, and takes it.
"""

from __future__ import annotations

import cupy  # noqa: F401
import cupyx  # noqa: F401

pytest_plugins = ["tests.real_cupy.selection"]
