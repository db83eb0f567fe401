"""The house as rooms.toml draws it, and as it stands: floors, imports, lines.

python -m tests.rooms        the table of rooms, with what each has left of its budget
"""

import ast
import io
import symtable
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tinygraph"
COURSE = ROOT / "course" / "tinygraph_course"  # may be away: the framework does without it
SUFFIXES = {".py", ".cu", ".cuh", ".c", ".h", ".js"}
PLAN = tomllib.loads((ROOT / "rooms.toml").read_text(encoding="utf-8"))
FLOORS = {
    room: floor for floor, rooms in enumerate([*PLAN["floors"], *PLAN["course"]]) for room in rooms
}
FRAMEWORK = {"tinygraph", *(room for floor in PLAN["floors"] for room in floor)}
KNOWN = {*sys.stdlib_module_names, "numpy"}  # what every room may import
TOP = "tinygraph"  # the files beside the rooms, which see all of them
TOPS = (TOP, COURSE.name)
TOLD = "TYPE_CHECKING"
LATE = ("tinygraph.base", "tinygraph.ops.common")  # from which pages import names that come late


def module(path: Path) -> str:
    """The name by which a file is imported."""
    root = COURSE.parent if path.is_relative_to(COURSE) else ROOT
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# Both packages; exercises are no room: in a wheel they lie in the course's package.
HOUSE = [
    *sorted(PACKAGE.rglob("*")),
    *sorted(p for p in COURSE.rglob("*") if COURSE / "exercises" not in p.parents),
]
FILES = {module(path): path for path in HOUSE if path.suffix == ".py"}


def room_of(name: str) -> str:
    """The room of a module: `tinygraph.ops.windows.conv2d` lies in ops."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else parts[0]


@cache
def late(package: str) -> dict[str, str]:
    """The names that a package of ours loads late, each with its module."""
    found = {}
    body = ast.parse(FILES[package].read_text(encoding="utf-8")).body
    told = [n.body for n in body if isinstance(n, ast.If) and ast.unparse(n.test) == TOLD]
    for node in (each for part in told for each in part if isinstance(each, ast.ImportFrom)):
        names = {alias.asname or alias.name for alias in node.names}
        if names == {"*"} and node.module in FILES:
            text = FILES[node.module].read_text(encoding="utf-8")
            names = set(symtable.symtable(text, node.module, "exec").get_identifiers())
        found |= dict.fromkeys(names, str(node.module))
    return found


def imports(path: Path) -> Iterator[str]:
    """The modules that a file imports where it is loaded, and for annotations.

    A package whose names are lazy imports them for type checkers alone: these are left out there,
    and stand where another file imports such a name.
    """
    outside = [
        node
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    while outside:
        node = outside.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in FILES else str(node.module)
                if node.module in LATE and alias.name in late(node.module):
                    yield late(node.module)[alias.name]
        elif isinstance(node, ast.If) and ast.unparse(node.test) == TOLD:
            outside += node.orelse if path.name == "__init__.py" else node.body
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            outside += ast.iter_child_nodes(node)


def forbidden() -> Iterator[str]:
    """Each import that goes sideways, up, or to a library that the room is not named for."""
    for name, path in FILES.items():
        room = room_of(name)
        if room in TOPS:
            continue
        may = PLAN["imports"].get(room)
        for other in imports(path):
            first = other.split(".")[0]
            if first in TOPS:
                there = room_of(other)
                lower = FLOORS.get(there, len(FLOORS)) < FLOORS[room]
                if there == room or (lower and (may is None or there in may)):
                    continue
                if there in TOPS and room in PLAN["public"]:
                    continue
                yield f"{name} imports {other}, which is no floor below {room}"
            elif first not in {*KNOWN, *PLAN["libraries"].get(room, ())}:
                yield f"{name} imports {first} where it is loaded; import it where it is used"


def code_lines(text: str) -> int:
    """The lines of a Python text that hold code: no comment, no docstring, nothing empty."""
    held: set[int] = set()
    begins = True  # whether a statement begins here
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    tokens = [t for t in found if t.type not in (tokenize.COMMENT, tokenize.NL)]
    for token, following in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            begins = True
            continue
        alone = begins and following.type == tokenize.NEWLINE
        if token.type != tokenize.ENDMARKER and not (token.type == tokenize.STRING and alone):
            held.update(range(token.start[0], token.end[0] + 1))
        begins = False
    return len(held)


@dataclass
class Size:
    """What a room holds: files, all their lines, and those of Python that are code."""

    files: int = 0
    lines: int = 0
    code: int = 0


def sizes() -> dict[str, Size]:
    """The size of each room, and of what lies beside them."""
    found = {room: Size() for room in [*FLOORS, *TOPS]}
    for path in HOUSE:
        if path.suffix in SUFFIXES and "__pycache__" not in path.parts:
            text = path.read_text(encoding="utf-8")
            size = found[room_of(module(path))]
            size.files += 1
            size.lines += len(text.splitlines())
            size.code += code_lines(text) if path.suffix == ".py" else 0
    return found


def table() -> str:
    """The rooms from the ground up, with their sizes and what is left of their budgets."""
    rows = ["floor  room              files   code  of      lines  of"]
    found = sizes()
    for room in [*TOPS, *FLOORS]:
        size, (code, lines) = found[room], PLAN["budgets"][room]
        floor = FLOORS.get(room, "")
        rows.append(
            f"{floor:>5}  {room:<16} {size.files:>6} {size.code:>6}  {code:<6} "
            f"{size.lines:>6}  {lines}"
        )
    for package in TOPS:
        own = [size for room, size in found.items() if (room in FRAMEWORK) == (package == TOP)]
        files, code, lines = (
            sum(getattr(size, what) for size in own) for what in ("files", "code", "lines")
        )
        rows.append(f"all of {package + '/':<18} {files:>3} {code:>6}         {lines:>6}")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
