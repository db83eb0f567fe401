"""Write the table of the page "Coming from PyTorch" from `tinygraph/interop/torch_names.txt`.

Sphinx calls `write()` before it reads the pages.
"""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import tinygraph as tg
from tinygraph.interop.torch_names import HERE, rows, sections

PAGE = Path(__file__).parent / "reference" / "generated" / "names_table.md"

THERE = {"torch": "torch", "Tensor": "torch.Tensor", "nn": "torch.nn"}


def home(place: str) -> Any:
    """What has the names of a place here."""
    found: Any = tg
    for name in HERE[place].split(".")[HERE[place].startswith("tg") :]:
        found = getattr(found, name)
    return found


def same(place: str) -> list[str]:
    """The names that mean what they mean in PyTorch, in the order of the alphabet."""
    where = home(place)
    public = set(getattr(where, "__all__", None) or dir(where))
    if place == "nn.functional":  # its own, and the functions of tg that torch itself has not
        own = {n for n, f in vars(where).items() if getattr(f, "__module__", "") == where.__name__}
        public = own | (set(sections()["ours torch"].split()) & set(tg.ops.EXPORTS))
    other = {name.rpartition(".")[2] for name in rows("other") if in_place(name, place)}
    found = public - other - set(sections()[f"ours {place}"].split())
    return sorted(name for name in found if name[0] != "_" and is_ours(where, name))


def is_ours(where: Any, name: str) -> bool:
    """A class, a function, a method or an attribute: no module, and nothing that was imported."""
    if not hasattr(where, name) or isinstance(getattr(where, name), types.ModuleType):
        return False
    made_in = str(getattr(getattr(where, name), "__module__", "") or "builtins")
    return isinstance(where, type) or made_in.startswith("tinygraph")


def in_place(name: str, place: str) -> bool:
    """Whether a row is of a place itself: `nn.functional.pad` is not of `nn`."""
    return name.rpartition(".")[0] == place


def table() -> str:
    """The sections of the page, one for each place."""
    lines = []
    for place, here in HERE.items():
        there = THERE.get(place, f"torch.{place}")
        lines += ["", f"## {there}: {here}", ""]
        lines += ["**Same**: " + ", ".join(f"`{name}`" for name in same(place)) + ".", ""]
        for title, kind in (("Other here", "other"), ("Not here: the way out", "absent")):
            found = rows(kind).items()
            mine = {n.rpartition(".")[2]: row for n, row in found if in_place(n, place)}
            if kind == "absent":  # what has come since needs no row
                mine = {n: row for n, row in mine.items() if not hasattr(home(place), n)}
            if mine:
                lines += [f"| {there}. | {title} |", "|---|---|"]
                lines += [f"| `{name}` | {cell(row)} |" for name, row in sorted(mine.items())]
                lines += [""]
    return "\n".join(lines)


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*") if "`" not in text else text


def write(page: Path = PAGE) -> Path:
    """Write the page; one that is up to date keeps its date, so that Sphinx does not read it."""
    page.parent.mkdir(exist_ok=True)
    text = table()
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")
    return page


if __name__ == "__main__":
    print(write())
