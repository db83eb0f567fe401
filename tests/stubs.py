"""Stubs for editors and type checkers: each former path that the docs name, as one line.

python -m tests.stubs        write them anew, to tinygraph/NAME.pyi
"""

import re
from pathlib import Path

from tinygraph.base.moved import HOMES

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.rst"))]
# What the guide to an op has named, and ops outside of this project therefore import.
OF_OPS = {"checks", "frozen", "memory", "op", "random", "shapes", "tensor"}


def stubs() -> dict[Path, str]:
    """The text of each stub, by its path."""
    texts = [path.read_text(encoding="utf-8") for path in [*PAGES, ROOT / "README.md"]]
    named = {name for text in texts for name in re.findall(r"\btinygraph\.([a-z]\w*)", text)}
    named |= OF_OPS
    made = {}
    for name in sorted(named):
        home = HOMES.get(f"tinygraph.{name}")
        if home:
            path = ROOT / "tinygraph" / f"{name}.pyi"
            made[path] = f"# {home}, by its former path; python -m tests.stubs writes this file\n"
            made[path] += f"from {home} import *\n"
    return made


def there() -> dict[Path, str]:
    """Those that are there."""
    paths = sorted((ROOT / "tinygraph").glob("*.pyi"))
    return {path: path.read_text(encoding="utf-8") for path in paths}


if __name__ == "__main__":
    for path in there().keys() - stubs().keys():
        path.unlink()
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")
