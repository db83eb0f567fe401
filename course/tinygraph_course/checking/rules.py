"""What a file may say, read before anything of it runs.  A wall of three, and no sandbox."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tinygraph.cuda.reading.tokens import without_comments
from tinygraph_course.content.exercise import Exercise

MODULES = {
    *("__future__", "collections", "dataclasses", "functools", "hypothesis", "itertools", "math"),
    *("numpy", "tinygraph", "typing"),
}
DEEP = {"numpy.lib.stride_tricks"}  # modules of modules that are allowed
NAMES = {
    *("__builtins__", "__import__", "__loader__", "__spec__", "breakpoint", "compile", "delattr"),
    *("eval", "exec", "exit", "getattr", "globals", "input", "locals", "memoryview", "open"),
    *("quit", "setattr", "vars"),
}
ATTRIBUTES = {
    *("DataSource", "core", "course", "ctypes", "ctypeslib", "cr_frame", "f2py", "f_back"),
    *("f_builtins", "f_globals", "fromfile", "genfromtxt", "gi_frame", "load", "loadtxt"),
    *("memmap", "os", "registry", "save", "savetxt", "savez", "savez_compressed", "sys"),
    *("tb_frame", "testing", "tofile"),
    # modules that a module which is allowed has loaded, and ways to any other
    *("_os", "_sys", "_weakref", "builtins", "find_spec", "gc", "import_module", "importlib"),
    *("inspect", "io", "operator", "pathlib", "pickle", "shutil", "subprocess", "threading"),
    *("traceback", "types", "warnings", "weakref"),
}
METHODS = {"__init__", "__post_init__", "__call__", "__len__", "__getitem__", "__repr__"}
WORDS = re.compile(
    r"\b(asm|__asm\w*|__atomic_\w+|__attribute\w*|__builtin_\w+|__has_include\w*|__sync_\w+|constructor|"
    r"extern|no_sanitize\w*|pragma|_Pragma|tg_\w+|volatile|"
    r"abort|creat|dl\w+|dup2?|exec[lv]\w*|_?_?exit|fdopen|fopen|v?fork|getenv|longjmp|mmap|"
    r"mprotect|openat|popen|ptrace|setitimer|setjmp|sigaction|socket|syscall|system|unlink)\b|"
    r"\b(kill|open|signal)\s*\(|"  # which are good names of variables too
    r"#\s*(embed|import|include|line|pragma)|"
    # what puts words together behind the reader's back
    r"##|%:|\?\?[=/'()!<>-]|\[\[|\bR\"|\\\r?\n"
)

UNROLLED = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+unroll\b[ \t]*\w*[ \t]*$", re.MULTILINE)


def broken_rules(exercise: Exercise, text: str) -> list[tuple[int, str]]:
    """Lines and sentences about what is not allowed there."""
    found = _of_kernels(text) if exercise.is_kernel else _of_python(text, set(exercise.forbidden))
    return sorted(found)


def _of_python(text: str, forbidden: set[str]) -> Iterator[tuple[int, str]]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return  # loading it says where
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            inside = isinstance(node, ast.ImportFrom)
            names = [alias.name for alias in node.names]
            for name in [node.module or ""] if isinstance(node, ast.ImportFrom) else names:
                parts = name.split(".")
                deep = len(parts) > 2 and name not in DEEP
                if parts[0] not in MODULES or set(parts) & ATTRIBUTES or deep:
                    yield line, f"{name or 'a relative import'}: this module is not needed here"
            for name in names if inside else []:
                yield from _named(line, name, forbidden)
                if name == "*":
                    yield line, "import *: names are imported one by one"
        elif isinstance(node, ast.Name) and (node.id in NAMES or node.id.startswith("tg_")):
            yield line, f"{node.id}: this is not needed here"
        elif isinstance(node, ast.Attribute):
            if node.attr.startswith("__") and node.attr not in METHODS:
                yield line, f".{node.attr}: this is not needed here"
            on_module = isinstance(node.value, (ast.Name, ast.Attribute))
            yield from _named(line, node.attr, forbidden if on_module else set())
        elif isinstance(node, ast.FunctionDef):
            special = node.name.startswith("__") and node.name.endswith("__")
            if special and node.name not in METHODS:
                yield line, f"{node.name}: this method is not needed here"


def _named(line: int, name: str, forbidden: set[str]) -> Iterator[tuple[int, str]]:
    if name in ATTRIBUTES:
        yield line, f"{name}: this is not needed here"
    if name in forbidden:
        yield line, f"{name} is what this exercise asks you to write"


def _of_kernels(text: str) -> Iterator[tuple[int, str]]:
    code = UNROLLED.sub("", without_comments(text))
    for match in WORDS.finditer(code):
        yield code.count("\n", 0, match.start()) + 1, f"{match[0].strip()}: this is not needed here"
