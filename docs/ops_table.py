"""The table of all ops, made from the registry and the op files: python docs/ops_table.py

A row is an op file: one op, or a family whose bodies differ in one expression.  Formulas are the
indented lines of the file's docstring, conventions its sentences.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from itertools import groupby
from pathlib import Path

import tinygraph as tg
from tinygraph import ops
from tinygraph.engine.op import registry

PAGE = Path(__file__).parent / "reference" / "generated" / "ops_table.rst"

HEAD = """\
:html_theme.sidebar_secondary.remove:

Table of all ops
================

A row is a file of ``tinygraph/ops``: the public functions, the ops that they apply, and the
mathematics as it stands at the top of the file, in which ``gx`` is the gradient by ``x`` and ``gy``
the one that comes from above.  The full description of each function is in :doc:`ops`.

*Kernel* says whether there is a CUDA kernel beside the numpy code.  *Batch* is what an op claims
about samples on axis 0, by which a plan cuts a batch: ``map``, a sample of the output depends on
that sample alone; ``sum``, the output is a sum or a mean over samples; ``none``, neither.  Where
several stand there, hyper-parameters and shapes decide.

.. list-table::
   :header-rows: 1
   :widths: 16 7 9 68
   :class: ops-table

   * - Op
     - Kernel
     - Batch
     - Formula, derivative, conventions
"""


def op_classes() -> dict[str, list[type[tg.Op]]]:
    """The ops of each op module; one whose functions are made of other ops has none."""
    modules = {getattr(ops, name).__module__ for name in ops.EXPORTS}
    found: dict[str, list[type[tg.Op]]] = {name: [] for name in modules}
    for cls in registry.values():
        if cls.__module__.startswith("tinygraph.ops."):
            found.setdefault(cls.__module__, []).append(cls)
    return dict(sorted(found.items(), key=lambda item: item[0].rpartition(".")[2]))


def public_functions(page: str) -> list[str]:
    """What a module adds to the public names, in the order of its file."""
    module = sys.modules[page]
    functions = [getattr(ops, name) for name in ops.EXPORTS]
    names = {f.__name__ for f in functions if f.__module__ == module.__name__}
    return sorted(names, key=lambda n: inspect.getsourcelines(getattr(ops, n))[1])


def other_names(function: str) -> list[str]:
    """The names under which a function is exported beside its own."""
    of_it = getattr(ops, function)
    return sorted({n for n in ops.EXPORTS if getattr(ops, n) is of_it} - {function})


def described(function: str) -> str:
    """A function's place in the reference: its docstring, and its other names."""
    also = "".join(f"\n   Also ``{name}``.\n" for name in other_names(function))
    return f".. autofunction:: {function}\n{also}"


def blocks(docstring: str) -> list[tuple[bool, str]]:
    """The docstring after its first line, as (is a formula, text), without its sources."""
    lines = docstring.splitlines()[1:]  # of a module: nothing is indented but formulas
    paragraphs = ["\n".join(group) for filled, group in groupby(lines, bool) if filled]
    made: list[tuple[bool, str]] = []
    for text in paragraphs:
        if text.startswith("Source"):
            break
        # a paragraph may end in formulas, or begin with them
        for indented, group in groupby(text.splitlines(), lambda line: line.startswith("    ")):
            part = textwrap.dedent("\n".join(group))
            if indented and made and made[-1][0]:
                part = f"{made.pop()[1]}\n\n{part}"
            made.append((indented, part))
    return made


def batch_claims(cls: type[tg.Op]) -> str:
    """The answers that stand in the op's `batch`, or in what it calls to find one."""
    method = cls.batch
    if method is tg.Op.batch:
        return "none"
    tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    called = {
        n.func.id
        for n in ast.walk(tree)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    }
    claims = _returned(tree)
    for name in called & {n for n in method.__globals__ if n.endswith("_claim")}:
        claims |= _returned(ast.parse(inspect.getsource(method.__globals__[name])))
    return ", ".join(c for c in ("map", "sum", "none") if c in claims)


def _returned(tree: ast.AST) -> set[str]:
    """The constants "map", "sum" and None in what is returned; conditions do not count."""
    found: set[str] = set()
    values = [n.value for n in ast.walk(tree) if isinstance(n, ast.Return) and n.value is not None]
    while values:
        value = values.pop()
        if isinstance(value, ast.IfExp):
            values += [value.body, value.orelse]
        elif isinstance(value, ast.Constant):
            found.add("none" if value.value is None else str(value.value))
    return found


def row(page: str, classes: list[type[tg.Op]]) -> str:
    """One row of the list-table."""
    names = [cls.name for cls in classes]
    functions = public_functions(page)
    op = [f":func:`~tinygraph.{name}`" for name in functions]
    also = [f"``{name}``" for function in functions for name in other_names(function)]
    if also:
        op.append("also " + ", ".join(also))
    others = [name for name in names if name not in functions]
    if others:
        op.append("op: " + ", ".join(f"``{name}``" for name in others))
    mathematics = [
        ".. code-block:: text\n\n" + textwrap.indent(text, "   ") if is_formula else markup(text)
        for is_formula, text in blocks(sys.modules[page].__doc__ or "")
    ]
    source = Path(str(sys.modules[page].__file__)).with_suffix(".cu")
    kernel = "yes" if source.exists() else "not yet"
    if not classes:
        kernel = "of its ops"
    claims = {cls.name: batch_claims(cls) for cls in classes}
    if not classes:
        batch = ["of its ops"]
    elif len(set(claims.values())) == 1:
        batch = [next(iter(claims.values()))]
    else:
        batch = [f"{name}: {claim}" for name, claim in claims.items()]
    cells = [op, [kernel], batch, mathematics]
    made = []
    for first, cell in zip(("* - ", "  - ", "  - ", "  - "), cells, strict=True):
        made.append(first + textwrap.indent("\n\n".join(cell), "    ").lstrip())
    return textwrap.indent("\n".join(made), "   ")


def markup(text: str) -> str:
    """A sentence of a docstring as reStructuredText: only `code` is markup there."""
    pieces = re.split(r"(`[^`]*`)", text)
    pieces[::2] = [re.sub(r"([|*\\])", r"\\\1", piece) for piece in pieces[::2]]
    pieces[1::2] = [f"`{piece}`" for piece in pieces[1::2]]
    return "".join(pieces)


def table() -> str:
    """The page."""
    rows = [row(page, classes) for page, classes in op_classes().items()]
    return "\n".join([HEAD.rstrip(), *rows, ""])


def write(page: Path = PAGE) -> Path:
    """Write the page; one that is up to date keeps its date, so that Sphinx does not read it."""
    page.parent.mkdir(exist_ok=True)
    text = table()
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")
    return page


if __name__ == "__main__":
    print(write())
