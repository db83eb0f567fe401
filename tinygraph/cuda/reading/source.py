"""A CUDA source and all that its compilation depends on: text, defines, local include files.

`compile_error` turns the output of any compiler into one KernelCompileError with the source line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tinygraph.base import KernelCompileError, frozen

if TYPE_CHECKING:
    from tinygraph.base import AnyPath
    from tinygraph.cuda.reading.includes import Includes
    from tinygraph.cuda.reading.tokens import Token

_PACKAGE = Path(__file__).resolve().parents[2]
# Kernels lie beside their ops.  Include files are looked for in these folders last.
FOLDERS = tuple(
    sorted({p.parent for p in (*_PACKAGE.glob("ops/*/*.cu"), *_PACKAGE.glob("optim/*.cu"))})
)
STANDARD = "-std=c++17"

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def kernel_files(suffix: str = ".cu") -> list[Path]:
    """The files of the ops' kernels, or those that they share (".cuh"), by name."""
    found = (path for folder in FOLDERS for path in folder.glob(f"*{suffix}"))
    return sorted(found, key=lambda path: path.name)


def kernel_file(name: str) -> Path:
    """The path of one of them, which need not be there.

    >>> kernel_file("relu.cu").parent.name
    'elementwise'
    """
    places = [folder / name for folder in FOLDERS]
    return next(filter(Path.exists, places), places[0])


def _as_path(argument: str, path: AnyPath) -> Path:
    found: Path = import_module("tinygraph.base.paths").as_path("Kernel", argument, path)
    return found


@frozen
class Source:
    """The text of a `.cu` file with its macro definitions; made by `Source.read`.

    Attributes
    ----------
    text : str
    path : Path or None
        The absolute path; None for a source given as text.
    defines : tuple of (name, value)
        Sorted by name.
    folders : tuple of Path
        Where include files are looked for after the folder of the file.

    >>> Source.read("__global__ void nothing() {}", {"TILE": 16}).defines
    (('TILE', '16'),)
    """

    text: str
    path: Path | None = None
    defines: tuple[tuple[str, str], ...] = ()
    folders: tuple[Path, ...] = ()

    @staticmethod
    def read(
        path_or_source: AnyPath,
        defines: Mapping[str, object] | None = None,
        folders: Sequence[AnyPath] = (),
    ) -> Source:
        """The source of a file, or a source given as text.

        A str that contains a line break or the word `__global__` is text, anything else a path.

        Raises
        ------
        KernelCompileError
            If there is no such file or it is no text, or if a macro has no proper name or value.

        Warns
        -----
        UserWarning
            The file, or one that it includes, is not UTF-8: it is read as Latin-1.
        """
        places = tuple(_as_path("folders", folder).resolve() for folder in folders)
        pairs = tuple(sorted(_macro(name, value) for name, value in (defines or {}).items()))
        if isinstance(path_or_source, str) and (
            "\n" in path_or_source or "__global__" in path_or_source
        ):
            return Source(path_or_source.removeprefix("\ufeff"), None, pairs, places)
        path = _as_path("path_or_source", path_or_source)
        try:
            return Source(_read(path), path.resolve(), pairs, places)
        except (OSError, ValueError) as error:  # a UnicodeDecodeError is a ValueError
            expected = "a readable .cu file or a CUDA source text"
            got = f"{str(path_or_source)!r}: {_reason(error)}"
            way_out = _beside(path)
            raise KernelCompileError("Kernel", "path_or_source", expected, got, way_out) from error

    @property
    def name(self) -> str:
        """The file's name, or `<source>`: how messages call it."""
        return self.path.name if self.path else "<source>"

    @property
    def folder(self) -> Path:
        """Where its include files are looked for first."""
        return self.path.parent if self.path else FOLDERS[0]

    @property
    def options(self) -> tuple[str, ...]:
        """Options of NVIDIA's compiler: the language, where to look, and the macros."""
        macros = [f"-D{name}={value}" for name, value in self.defines]
        places = dict.fromkeys((self.folder, *self.folders, *FOLDERS))
        return (STANDARD, *(f"-I{place}" for place in places), *macros)

    @cached_property
    def includes(self) -> tuple[Path, ...]:
        """The local include files, also those of include files, each once, in order of appearance.

        A file that is not found is left to the compiler: an `#if` may exclude it.
        """
        return tuple(self._whole.texts)

    @property
    def decoded(self) -> Mapping[str, str]:
        """Include files that a compiler would not read as they are, by their names in #include."""
        return self._whole.decoded

    @property
    def tokens(self) -> list[Token]:
        """The tokens, local include files in the places of their lines; `#line` tells whose."""
        if self._whole.circle:
            raise KernelCompileError(self._whole.circle)
        return self._whole.tokens

    def is_called(self, file: str) -> bool:
        """Whether a compiler means this source, which may have the name of a temporary copy."""
        path = Path(file)
        if any(include.name == path.name for include in self.includes):
            return path.name == self.name
        return path.name in (self.name, "default_program") or path.suffix == ".cu"

    def line(self, file: str, number: int) -> str:
        """A line of this source or of a header; empty where that cannot be told."""
        lines = self.lines_of(file)
        return lines[number - 1] if 1 <= number <= len(lines) else ""

    def lines_of(self, file: str) -> list[str]:
        """The lines of this source or of a header; none where that cannot be told."""
        if self.is_called(file):
            text = self.text
        else:
            path = Path(file)
            headers = [include for include in self.includes if include.name == path.name]
            places = [path, *headers] if path.is_absolute() else [*headers, path]
            found = next((place for place in places if place.is_file()), None)
            text = _read(found, warn=False) if found else ""
        return text.split("\n")

    @cached_property
    def _whole(self) -> Includes:
        includes = import_module("tinygraph.cuda.reading.includes")  # here, as the cache below
        reader: Includes = includes.Includes(self.folder, *self.folders, *FOLDERS)
        reader.read(self.text, self.folder, str(self.path or self.name))
        return reader

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hexadecimal, of everything above: equal digests compile to equal programs."""
        parts = [self.text, *(f"{name}={value}" for name, value in self.defines)]
        for path, text in self._whole.texts.items():
            parts += [path.name, text]
        made: str = import_module("tinygraph.base.build_cache").key(parts)  # here: it loads OpenSSL
        return made


def _read(path: Path, warn: bool = True) -> str:
    """The text of a file, in whatever encoding."""
    text: str = import_module("tinygraph.base.text_file").source_text(path, warn)  # here: as above
    return text


def _macro(name: str, value: object) -> tuple[str, str]:
    """One macro definition as (name, text): None and True stand for 1, False for 0."""
    if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
        raise KernelCompileError(
            "Kernel", "defines", "names of macros, as in {'TILE': 16}", repr(name)
        )
    text = str(int(value)) if isinstance(value, bool) else "1" if value is None else str(value)
    if "\n" in text:
        raise KernelCompileError("Kernel", f"defines[{name!r}]", "a value of one line", repr(text))
    return name, text


def _reason(error: Exception) -> str:
    if isinstance(error, ValueError):
        return f"not UTF-8: {error}"
    return str(getattr(error, "strerror", error))


def _beside(path: Path) -> str:
    """The way out for a path that cannot be read: the kernels that stand in its folder."""
    try:
        names = sorted(p.name for p in path.parent.glob("*.cu"))
    except OSError:
        names = []
    listing = f"; {path.parent} has {', '.join(names[:12])}" if names else ""
    return f"correct the path{listing}"


_GCC = re.compile(
    r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?:fatal )?error: (?P<text>.*)"
)
_NVRTC = re.compile(
    r"(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\): "
    r"(?:catastrophic )?error(?: #[\w-]+)?: (?P<text>.*)"
)
_MOST_MESSAGES = 5


def compile_error(
    source: Source, compiler_output: str, kind: str, what: str = "compile"
) -> KernelCompileError:
    """The error to raise when a compiler refuses a source; every compiler's message comes here.

    Parameters
    ----------
    source : Source
    compiler_output : str
        What the compiler printed: the form of gcc and clang (`file:12:5: error: ...`) and that of
        NVRTC (`file(12): error: ...`) are read; any other is shown as it came.
    kind : str
        The compiler, for the first line: "nvrtc", "g++", ...
    what : str
        What it was to do: "compile" or "link".

    >>> print(compile_error(Source("int x = y;"), "k.cu:1:9: error: 'y' was not declared", "g++"))
    <source>: g++ does not compile it
    <source>:1:9: error: 'y' was not declared
       1 | int x = y;
         |         ^
    """
    where = str(source.path) if source.path else source.name
    messages = list(_messages(source, compiler_output))
    shown = messages[:_MOST_MESSAGES]
    if len(messages) > _MOST_MESSAGES:
        shown.append(f"... and {len(messages) - _MOST_MESSAGES} more errors")
    if not shown:
        shown = compiler_output.strip().splitlines()[-20:] or ["the compiler printed nothing"]
    return KernelCompileError("\n".join([f"{where}: {kind} does not {what} it", *shown]))


def _messages(source: Source, output: str) -> Iterator[str]:
    """Each error with its source line and, where the column is known, a caret under it."""
    lines = output.splitlines()
    for at, printed in enumerate(lines):
        match = _GCC.match(printed) or _NVRTC.match(printed)
        if not match:
            continue
        found = match.groupdict()
        file, number = found["file"], int(found["line"])
        line, column = source.line(file, number), int(found.get("column") or 0)
        if not column and at + 2 < len(lines):
            column = _caret(line, lines[at + 1], lines[at + 2])
        name = source.name if source.is_called(file) else Path(file).name
        text = f"{name}:{number}{f':{column}' if column else ''}: error: {found['text']}"
        if line:
            gutter = f"{number:4d} | "
            text += f"\n{gutter}{line.rstrip()}"
            if column:
                # Tabs stay tabs, so that the caret stands under its column whatever their width.
                space = re.sub(r"[^\t]", " ", line[: column - 1])
                text += f"\n{' ' * (len(gutter) - 2)}| {space}^"
        yield text


def _caret(line: str, echo: str, caret: str) -> int:
    """The column that NVRTC's caret shows; it indents the source line in its own way."""
    if caret.strip() != "^" or not echo.strip() or echo.strip() != line.strip():
        return 0
    into = caret.index("^") - (len(echo) - len(echo.lstrip()))
    return len(line) - len(line.lstrip()) + into + 1 if into >= 0 else 0
