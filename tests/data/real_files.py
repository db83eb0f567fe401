"""Where the real data files are, which are no part of the project."""

import os
from pathlib import Path

import pytest


def mnist_folder():
    """The folder with the MNIST files, or a skip that says how to give one."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    if "TINYGRAPH_DATA" in os.environ:
        return os.environ["TINYGRAPH_DATA"]
    if not (beside / "mnist").is_dir():
        pytest.skip("no MNIST files: name their folder in $TINYGRAPH_DATA")
    return str(beside)
