"""Writes result_types.json, the dtypes in which PyTorch computes two operands.

    python -m tests.ops.result_types        where PyTorch is installed

An operand is an array ("float32"), one without axes ("float32[]"), or a Python number ("1.0").
Where PyTorch refuses a pair, as it does uint16 with other integers, the table has null.
"""

import ast
import json
from pathlib import Path

FILE = Path(__file__).with_suffix(".json")
INTEGERS = [f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")]
DTYPES = ["bool", *INTEGERS, "float16", "float32", "float64"]
OPERANDS = [*DTYPES, *(f"{dtype}[]" for dtype in DTYPES), "True", "1", "1.0"]


def operand(kind, zeros):
    """What stands for `kind`, made by `zeros(shape, dtype)`."""
    if kind in OPERANDS[-3:]:
        return ast.literal_eval(kind)
    return zeros(() if kind.endswith("[]") else (2,), kind.removesuffix("[]"))


def of_torch():
    import torch

    def zeros(shape, dtype):
        return torch.zeros(shape, dtype=getattr(torch, dtype))

    def of(x, y):
        try:
            dtype = torch.result_type(operand(x, zeros), operand(y, zeros))
        except RuntimeError:
            return None
        return str(dtype).removeprefix("torch.")

    return {x: {y: of(x, y) for y in OPERANDS} for x in OPERANDS}


if __name__ == "__main__":
    rows = [f"{json.dumps(x)}: {json.dumps(row)}" for x, row in of_torch().items()]
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
