"""rooms.toml holds: a room imports from lower floors, no file needs itself, budgets are kept."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests import rooms
from tests.rooms import COURSE, FILES, PACKAGE, PLAN, TOP, TOPS


def test_a_room_imports_from_lower_floors_alone():
    assert not list(rooms.forbidden())


def test_no_file_needs_itself():
    needs = {
        name: {other for other in rooms.imports(path) if other in FILES and other not in TOPS}
        for name, path in FILES.items()
    }
    order = list(TopologicalSorter(needs).static_order())  # CycleError names a circle
    assert {*order, *TOPS} == {*FILES, *TOPS} and len(order) > 200


def test_no_file_of_the_engine_needs_itself_by_an_import_in_a_function():
    """A circle that an import in a function hides is one too."""
    own = {name: path for name, path in FILES.items() if rooms.room_of(name) == "engine"}
    needs = {
        name: {
            node.module
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module in own
        }
        for name, path in own.items()
    }
    assert len(list(TopologicalSorter(needs).static_order())) > 15


def test_each_room_keeps_its_budget():
    """Whoever adds a feature pays for it in its room."""
    over = {
        room: f"{size.code} lines of code and {size.lines} in all, of {PLAN['budgets'][room]}"
        for room, size in rooms.sizes().items()
        if size.code > PLAN["budgets"][room][0] or size.lines > PLAN["budgets"][room][1]
    }
    assert not over


def test_nothing_lies_beside_the_rooms():
    beside = {path.name for path in PACKAGE.iterdir() if path.suffix != ".pyi"}
    allowed = {"__init__.py", "__main__.py", "__pycache__", "py.typed"}
    assert beside - allowed == {room for floor in PLAN["floors"] for room in floor}
    assert not list(PACKAGE.rglob("utils.py"))


def test_the_framework_never_names_the_course():
    """Not in a function either: it finds the course's commands by an entry point."""
    named = {
        name
        for name, path in FILES.items()
        if path.is_relative_to(PACKAGE) and COURSE.name in path.read_text(encoding="utf-8")
    }
    assert named == {"tinygraph.base.moved"}  # which says where the former package is


def test_the_counter_knows_code_from_words(tmp_path):
    text = '"""A docstring,\nof two lines."""\n\n# a comment\nx = """\na text"""  # and code\n'
    text += 'def f(a,\n      b):\n    "Words."\n    return (a,\n            b)\n'
    assert rooms.code_lines(text) == 2 + 2 + 2


def test_an_import_is_found_wherever_it_is_loaded(tmp_path):
    path = tmp_path / "file.py"
    path.write_text(
        "import a\nif x:\n    from tinygraph.ops.windows import conv2d\n"
        "class C:\n    import b\n    def f(self):\n        import c\ndef g():\n    import d\n",
        encoding="utf-8",
    )
    assert set(rooms.imports(Path(path))) == {"a", "b", "tinygraph.ops.windows.conv2d"}


# ---- no logic on module names -------------------------------------------------------------------

CUTS = {"startswith", "endswith", "removeprefix", "split", "rsplit", "partition", "rpartition"}


def _asks(node, what):
    """Whether an expression asks for an attribute or, as in `f_globals["__name__"]`, for a key."""
    return any(
        (isinstance(part, ast.Attribute) and part.attr == what)
        or (isinstance(part, ast.Constant) and part.value == what)
        for part in ast.walk(node)
    )


def decisions_by_module_names(text):
    """The lines that compare a `__module__`, cut it, or hold a `__name__` against one of ours."""
    for node in ast.walk(ast.parse(text)):
        cut = isinstance(node, ast.Call) and getattr(node.func, "attr", "") in CUTS
        compared = isinstance(node, ast.Compare) and not any(
            isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops
        )
        if not (cut or compared):
            continue
        ours = any(
            isinstance(part, ast.Constant)
            and isinstance(part.value, str)
            and part.value.split(".")[0] == TOP
            for part in ast.walk(node)
        )
        if _asks(node.func if cut else node, "__module__") or (ours and _asks(node, "__name__")):
            yield node.lineno


def test_nothing_is_decided_by_the_name_of_a_module():
    """What a class or a package is to somebody it declares: see plan/declared.py."""
    found = [
        f"{name}:{line}"
        for name, path in FILES.items()
        for line in decisions_by_module_names(path.read_text(encoding="utf-8"))
    ]
    assert not found


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ('type(op).__module__.startswith("tinygraph.")', True),
        ('cls.__module__ == "tinygraph.engine.tensor"', True),
        ("cls.__module__ == op.__module__", True),
        ('member.__module__.rpartition(".")[2]', True),
        ('getattr(op, "__module__", "").startswith("tinygraph.ops.")', True),
        ('frame.f_globals.get("__name__") == "tinygraph.engine.running"', True),
        ('frame.f_globals["__name__"].startswith("tinygraph.")', True),
        ('module.__name__.startswith("tinygraph")', True),
        ('__name__ == "__main__"', False),
        ("f'{cls.__module__}.{cls.__qualname__}'", False),
        ("sys.modules.get(cls.__module__) is module", False),
        ('path.name.startswith("tinygraph")', False),
    ],
)
def test_such_a_decision_is_found(line, is_one):
    assert bool(list(decisions_by_module_names(f"x = {line}"))) is is_one
