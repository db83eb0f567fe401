"""rooms.toml holds: a room imports from lower floors, no file needs itself, budgets are kept."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

from tests import rooms
from tests.rooms import COURSE, FILES, PACKAGE, PLAN, TOPS


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
    assert not named


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
