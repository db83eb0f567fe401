"""The ops that Tensor offers as operators and methods: filled in here, once, and nowhere else."""

from __future__ import annotations

from tinygraph.tensor import above


def fill_methods() -> None:
    """Give `above`, through which Tensor's methods reach their ops, the functions it needs."""
