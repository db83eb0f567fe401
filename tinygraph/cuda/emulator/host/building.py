"""A program, compiled: its files, the host half and the run time in one executable."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tinygraph.base.build_cache import compiled, key
from tinygraph.base.text_file import source_text
from tinygraph.cuda.emulator.checker import VIRTUAL, symbols_of
from tinygraph.cuda.emulator.compiler import (
    RUNTIME,
    Compiler,
    find_compiler,
    headers,
    program_flags,
)
from tinygraph.cuda.emulator.host.launches import rewrite
from tinygraph.cuda.emulator.host.refused import explained
from tinygraph.cuda.emulator.translate import Translation
from tinygraph.cuda.reading.source import Source, compile_error

HERE = Path(__file__).resolve().parent
INCLUDE, HOST_RUNTIME = HERE / "include", HERE / "runtime"


@dataclass(frozen=True)
class Program:
    """A program that can be started.

    Attributes
    ----------
    sources : tuple of Source
    path : Path
        The executable.
    variables : tuple of (name, address, bytes, constant)
        The variables that its kernels may use.
    """

    sources: tuple[Source, ...]
    path: Path
    checked: bool
    variables: tuple[tuple[str, int, int, bool], ...]


def build(sources: Sequence[Source], checked: bool) -> Program:
    """Compile a program of one or several files.

    Raises
    ------
    KernelCompileError
        With file, line, source line and the compiler's words; or naming what the emulator lacks.
    """
    compiler = find_compiler()
    translations = [_translated(source) for source in sources]
    objects = [
        _object(compiler, source, translation, checked)
        for source, translation in zip(sources, translations, strict=True)
    ]
    runtime = _runtime(compiler)
    openmp = any("omp" in t.headers for t in translations)
    libraries = ["-lstdc++", "-lm", "-lpthread", *(["-lgomp"] if openmp else [])]

    def link(target: Path) -> None:
        files = [str(path) for path in (*objects, runtime)]
        result = compiler.run(*files, "-o", str(target), *libraries)
        if result.returncode:
            error = compile_error(sources[0], result.stderr, compiler.name, "link")
            raise explained(sources[0], error)

    names = [path.name for path in (*objects, runtime)]
    path = compiled(["program", compiler.identity, *names, *libraries], ".program", link)
    words = {word for translation in translations for word in translation.words}
    constants = {name for translation in translations for name in translation.constants} | {VIRTUAL}
    variables = [
        (name, address, size, name in constants)
        for name, address, size in symbols_of(path, words)
        if not name.startswith("tg_")
    ]
    return Program(tuple(sources), path, checked, tuple(variables))


class _Translation(Translation):
    """The translation of a whole program."""

    headers: set[str]


def _translated(source: Source) -> _Translation:
    translation = _Translation()
    text = rewrite(source.tokens)
    translation.headers = {
        token.text.split("<")[1].split(".")[0].strip()
        for token in text
        if token.kind == "directive" and "include" in token.text and "<" in token.text
    }
    translation.read(text)
    return translation


def _object(compiler: Compiler, source: Source, translation: _Translation, checked: bool) -> Path:
    """One file of a program, compiled."""
    flags = [f"-I{INCLUDE}", *program_flags(compiler, checked)]
    if source.path and source.path.suffix in (".cpp", ".cc", ".cxx", ".c"):
        flags.append("-DTINYGRAPH_HOST_FILE")  # as under nvcc it has no functions of the device
    flags += [f"-I{folder}" for folder in source.folders]
    flags += ["-fopenmp"] if "omp" in translation.headers else []
    defines = "".join(f"#define {name} {value}\n" for name, value in source.defines)
    unit = f"{defines}{translation.text}"

    def make(target: Path) -> None:
        text = target.with_suffix(".cpp")
        text.write_text(unit, encoding="utf-8", errors="surrogateescape")
        prelude = _prelude(compiler, tuple(flags))
        try:
            result = compiler.run(*flags, *prelude, "-c", str(text), "-o", str(target))
        finally:
            text.unlink(missing_ok=True)
        if result.returncode:
            raise explained(source, compile_error(source, result.stderr, compiler.name))

    parts = ["object", compiler.identity, headers(), _own_headers(), unit, *flags]
    return compiled([*parts, *_texts(source.folders)], ".o", make)


def _texts(folders: Sequence[Path]) -> list[str]:
    """The headers of the folders that were named: an object depends on them."""
    suffixes = (".h", ".hpp", ".cuh", ".inl", ".hxx")
    files = [p for folder in folders for p in sorted(folder.glob("*")) if p.suffix in suffixes]
    return [source_text(p, warn=False) for p in files]


@cache
def _own_headers() -> str:
    return key(
        [path.read_text(encoding="utf-8") for path in sorted(INCLUDE.rglob("*")) if path.is_file()]
    )


def _prelude(compiler: Compiler, flags: tuple[str, ...]) -> list[str]:
    """The headers that stand before every program; g++ takes them read already."""
    header = str(INCLUDE / "tg_program.h")
    if compiler.family != "gcc":
        return ["-include", header]

    def make(target: Path) -> None:
        compiler.make(target, "read the headers", *flags, "-x", "c++-header", header)

    parts = ["prelude", compiler.identity, headers(), _own_headers(), *flags]
    found = compiled(parts, ".h.gch", make).with_suffix("")
    found.write_text(f'#include "{header}"\n', encoding="utf-8", errors="surrogateescape")
    return ["-include", str(found)]


@cache
def _runtime(compiler: Compiler) -> Path:
    """The run time and the host half as a library beside the program.

    The watchdog takes the processor from code of the program alone, and tells it by its addresses:
    the run time must not be part of the executable.
    """
    sources = [path for folder in (RUNTIME, HOST_RUNTIME) for path in sorted(folder.glob("*.c"))]
    others = [path for folder in (RUNTIME, HOST_RUNTIME) for path in sorted(folder.glob("*.h"))]
    texts = [
        path.read_text(encoding="utf-8") for path in (*sources, *others, INCLUDE / "driver_types.h")
    ]
    flags = shlex.split("-std=gnu11 -O2 -g1 -fPIC -pthread -ftls-model=initial-exec -shared")
    flags += ["-nostdlib++"] if compiler.family == "clang" else []
    flags.append("-Wl,-Bsymbolic")  # a function of the program may have the name of one of ours

    def make(target: Path) -> None:
        files = [argument for path in sources for argument in ("-x", "c", str(path))]
        compiler.make(target, "build the run time", *flags, *files)

    return compiled([compiler.identity, *flags, *texts], ".so", make)
