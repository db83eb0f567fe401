"""PyTorch's names that mean something else here, and those that are not here, with the way out.

They stand in torch_names.txt.  A name that is neither `other` there nor `absent` nor `ours`, and
that a place has, means what it means in PyTorch.  The page "Coming from PyTorch" is made from this
(docs/names_table.py), and so is the error of a name that does not exist, which knows numpy's too.

    torch.optim.SGD        place "optim"       torch.optim, its lr_scheduler, and nn.utils
    torch.utils.data.X     place "utils.data"  tg.data
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from tinygraph.base import nearest
from tinygraph.engine.operators import Absent

HERE = {  # a place of PyTorch's, and its name here
    "torch": "tg",
    "Tensor": "Tensor",
    "nn": "tg.nn",
    "nn.functional": "tg.nn.functional",
    "optim": "tg.optim",
    "utils.data": "tg.data",
}
SMALL = {  # places of few names, which the page leaves out
    place: f"tg.{place}"
    for place in ("autograd", "cuda", "nn.init", "nn.utils", "optim.lr_scheduler", "testing")
}
_ALSO = {  # where a name may stand as well: most methods are functions of torch too
    "Tensor": ["torch"],
    "nn.functional": ["torch"],
    "optim.lr_scheduler": ["optim"],
}
_OF_NUMPY = {"torch": "numpy", "Tensor": "ndarray"}


# Read with the package, for a Tensor's absent methods; rows wait for the first AttributeError.
_TEXT = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")


@cache
def sections() -> dict[str, str]:
    """The text of each section by its heading: "ours nn" has names alone, most others rows."""
    return dict(re.findall(r"^\[(.+)\]\n((?:.+\n)*)", _TEXT, re.MULTILINE))


@cache
def rows(kind: str) -> dict[str, str]:
    """The rows of all sections of a kind, a sentence for each `place.name`."""
    often = {} if kind == "sentences" else rows("sentences")
    found: dict[str, str] = {}
    for heading, text in sections().items():
        first, _, place = heading.partition(" ")
        for row in text.replace("\n    ", " ").splitlines() if first == kind else ():
            names, _, sentence = row.partition(": ")
            for word, words in often.items():
                sentence = sentence.replace(word, words)
            found |= dict.fromkeys([f"{place}.{n}".lstrip(".") for n in names.split()], sentence)
    return found


def way_out(place: str, name: str) -> str:
    """What to write in the place of a name that is not here; "" for one that nobody has."""
    named = [f"{each}.{name}" for each in (place, *_ALSO.get(place, ()))]
    found = [rows("absent")[n] for n in named if n in rows("absent")]
    return found[0] if found else rows("numpy").get(f"{_OF_NUMPY.get(place)}.{name}", "")


def no_such_name(place: str, name: str, known: list[str]) -> str:
    """The message of an AttributeError: what to write instead, or the nearest name.

    >>> no_such_name("torch", "tensordot", [])
    'tg.tensordot: PyTorch has it, tinygraph has not. Way out: tg.einsum'
    >>> no_such_name("torch", "soft_max", ["softmax"])
    "tg has no attribute 'soft_max'; did you mean 'softmax'?"
    """
    here, instead = {**HERE, **SMALL}[place], way_out(place, name)
    if instead:
        numpys = rows("numpy").get(f"{_OF_NUMPY.get(place)}.{name}") == instead
        whose = "numpy" if numpys else "PyTorch"
        return f"{here}.{name}: {whose} has it, tinygraph has not. Way out: {instead}"
    if name in rows("beside"):
        way = rows("beside")[name]
        return f"{here}.{name}: stands beside PyTorch, tinygraph has none. Way out: {way}"
    hint = nearest(name, known)
    return f"{here} has no attribute {name!r}{f'; {hint}' if hint else ''}"


class _Absent:
    """A method of PyTorch's that is not here: asked for, it says what to write instead."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, node: Any, kind: Any) -> Any:
        raise AttributeError(no_such_name("Tensor", self.name, []))


def fill() -> None:
    """Let a Tensor's absent methods say what they are called here."""
    for name in sections()["methods"].split():
        setattr(Absent, name, _Absent(name))
