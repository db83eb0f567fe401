"""Truth tables of two inputs: the smallest data sets that tell networks apart.

inputs   00 01 10 11
nand      1  1  1  0        one line separates the classes
xor       0  1  1  0        no line does
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from tinygraph.base import one_of
from tinygraph.engine import Array

Function: TypeAlias = Literal["and", "nand", "or", "nor", "xor", "xnor"]
INPUTS = ((0, 0), (0, 1), (1, 0), (1, 1))
TRUTH_TABLES = {
    "and": (0, 0, 0, 1),
    "nand": (1, 1, 1, 0),
    "or": (0, 1, 1, 1),
    "nor": (1, 0, 0, 0),
    "xor": (0, 1, 1, 0),
    "xnor": (1, 0, 0, 1),
}


def truth_table(name: str) -> tuple[Array, Array]:
    """Inputs (4, 2) and labels (4, 1) of a function, float64.

    Raises
    ------
    ArgumentError
        No such function.

    Examples
    --------
    >>> inputs, labels = truth_table("xor")
    >>> inputs[labels[:, 0] == 1].tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    one_of("truth_table", "name", name, TRUTH_TABLES)
    labels = np.array(TRUTH_TABLES[name], np.float64).reshape(4, 1)
    return np.array(INPUTS, np.float64), labels
