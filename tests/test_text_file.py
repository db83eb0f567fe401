"""Text files of any system: marks, encodings, locales; and each file that we open names its own."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import KernelCompileError
from tinygraph.base.text_file import python_text, read_text, source_text
from tinygraph.cuda import Kernel
from tinygraph.training import RunFolder

ROOT = Path(__file__).parents[1]
WITH_MARK = ["utf-8-sig", "utf-16", "utf-32"]
KERNEL = """#include "two.cuh"
// größer als für √n: 表
__global__ void twice(float* y, int n) {
    int i = threadIdx.x;  // größe
    if (i < n) y[i] = TWO * i;
}
"""
HEADER = "// für dich\n#define TWO 2.0f\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file"


@pytest.mark.parametrize("encoding", ["utf-8", *WITH_MARK])
@pytest.mark.parametrize("read", [read_text, python_text, source_text])
def test_marks_are_taken_off_and_lines_end_in_one_way(path, read, encoding):
    path.write_bytes("a = 'ü√'\r\nb\rc\n".encode(encoding))
    assert read(path) == "a = 'ü√'\nb\nc\n"


def test_what_is_no_utf_8_is_refused_with_its_line(path):
    path.write_bytes("a\nb = 'ü'\n".encode("latin-1"))
    for read in (read_text, python_text):
        with pytest.raises(ValueError, match="line 2 is not UTF-8: save the file in UTF-8"):
            read(path)
    for data in ("a\nb".encode("utf-16-le"), b"\x7fELF\0\xff", b"\xff\xfe\0"):
        path.write_bytes(data)
        for read in (read_text, python_text, source_text):
            with pytest.raises(ValueError):
                read(path)


def test_python_says_its_encoding_itself(path):
    path.write_bytes("# -*- coding: latin-1 -*-\nname = 'ü'\n".encode("latin-1"))
    assert python_text(path).endswith("name = 'ü'\n")
    path.write_bytes(b"# coding: no-such-thing\nx = 1\n")
    assert python_text(path).endswith("x = 1\n")


def test_old_sources_are_read_as_latin_1_with_a_note(path):
    path.write_bytes("int a;\n// naïve café\nint b;\n".encode("latin-1"))
    with pytest.warns(UserWarning, match=r"file:2: byte 0xef is not UTF-8.*Latin-1"):
        assert source_text(path) == "int a;\n// naïve café\nint b;\n"
    assert source_text(path, warn=False).count("\n") == 3


def test_a_second_byte_of_shift_jis_joins_no_lines(path):
    """The last byte of 表 is a backslash."""
    path.write_bytes(b"#define A 1 \\\n + 2\n" + "// 表\nint x;\n".encode("cp932"))
    text = source_text(path, warn=False)
    assert text.startswith("#define A 1 \\\n + 2\n")
    assert "\\\nint x;" not in text and text.endswith("\nint x;\n")
    path.write_bytes(b"// \x85 a\nint x = 1;\n")  # of which str.splitlines would make two lines
    assert source_text(path, warn=False).split("\n")[1] == "int x = 1;"


# ---- kernels ------------------------------------------------------------------------------------


def encoded(text, encoding):
    return text.replace("√", "").replace("ö", "ö").encode(encoding, "ignore")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1", "cp932"])
def test_kernels_and_what_they_include_are_read_in_any_encoding(tmp_path, encoding):
    (tmp_path / "k.cu").write_bytes(encoded(KERNEL, encoding))
    (tmp_path / "two.cuh").write_bytes(encoded(HEADER + "// 表\n#define ONE 1\n", encoding))
    y = np.zeros(5, np.float32)
    if encoding in ("latin-1", "cp932"):
        with pytest.warns(UserWarning, match="Latin-1") as told:
            Kernel(tmp_path / "k.cu", "twice")(1, 8, y, 5)
        assert {Path(str(w.message).split(":")[0]).name for w in told} == {"k.cu", "two.cuh"}
    else:
        Kernel(tmp_path / "k.cu", "twice")(1, 8, y, 5)
    np.testing.assert_array_equal(y, 2.0 * np.arange(5))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1", "cp932"])
@pytest.mark.filterwarnings("ignore:.*Latin-1")
def test_nvrtc_reads_them_too(tmp_path, encoding):
    compiling = pytest.importorskip("tinygraph.cuda.nvrtc")
    from tinygraph.cuda.reading.source import Source

    (tmp_path / "k.cu").write_bytes(encoded(KERNEL, encoding))
    (tmp_path / "two.cuh").write_bytes(encoded("// 表\n" + HEADER, encoding))
    (found,) = compiling.compile(Source.read(tmp_path / "k.cu"), ["twice"], "sm_90")
    assert found.cubin[:4] == b"\x7fELF"


def test_a_source_as_text_may_have_a_mark():
    y = np.zeros(3, np.float32)
    text = "\ufeff" + KERNEL.replace('#include "two.cuh"\n', "#define TWO 2\n")
    Kernel(text, "twice")(1, 4, y, 3)
    np.testing.assert_array_equal(y, [0, 2, 4])


def test_the_line_of_an_error_is_the_right_one(tmp_path):
    (tmp_path / "k.cu").write_bytes(b"// \x85 caf\xe9\n__global__ void k(int* y) { y[0] = z; }\n")
    with (
        pytest.warns(UserWarning),
        pytest.raises(KernelCompileError, match="k.cu:2:.*\n.*y.0. = z"),
    ):
        Kernel(tmp_path / "k.cu", "k")(1, 1, np.zeros(1, np.int32))


# ---- other files --------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", WITH_MARK)
def test_a_run_folder_that_an_editor_went_over(tmp_path, encoding):
    run = RunFolder(tmp_path)
    run.write_config({"recipe": "größe"})
    run.append({"epoch": 1, "loss": 0.5})
    for name in ("config.json", "log.jsonl"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        (tmp_path / name).write_bytes(text.replace("\n", "\r\n").encode(encoding))
    again = RunFolder.open(tmp_path)
    assert again.config == {"recipe": "größe"} and again.rows() == [{"epoch": 1, "loss": 0.5}]


def test_a_text_to_learn_from(tmp_path):
    (tmp_path / "a.txt").write_bytes("über\r\n".encode("utf-8-sig"))
    assert tg.data.read_text(tmp_path / "a.txt") == "über\n"


# ---- locales ------------------------------------------------------------------------------------

ONE_BYTE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.second
def test_a_locale_of_one_byte_breaks_nothing(tmp_path):
    """Kernels are compiled, findings are told and pages are written as elsewhere."""
    folder = tmp_path / "größe"
    folder.mkdir()
    (folder / "k.cu").write_text(KERNEL.replace("if (i < n) ", ""), encoding="utf-8")
    (folder / "two.cuh").write_text(HEADER, encoding="utf-8")
    command = [sys.executable, "-m", "tinygraph", "check-kernel", "größe/k.cu", "--grid", "1"]
    command += ["--block", "4", "--arg", "y=out(3)", "--arg", "n=3"]
    settings = {**os.environ, **ONE_BYTE, "TINYGRAPH_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True)
    assert done.returncode == 1 and b"Traceback" not in done.stderr, done.stderr
    assert b"out-of-bounds" in done.stdout


# ---- every file that is opened ------------------------------------------------------------------

TEXT_OF_PROCESSES = {"run", "Popen", "check_output", "check_call"}
OPENING = {"read_text", "write_text", "open", "fdopen", "TextIOWrapper", *TEXT_OF_PROCESSES}
OPENING |= {"NamedTemporaryFile", "TemporaryFile"}
BINARY = {  # what is no file of text, whatever it is called
    "os.open",
    "RunFolder.open",
    "cls.open",
    "_File.open",
    "tarfile.open",
    "gzip.open",
    "library.open",
    "archive.open",
    "Image.open",
    "webbrowser.open",
}


def mode_of(call, place):
    found = [k.value for k in call.keywords if k.arg == "mode"] or call.args[place : place + 1]
    return found[0].value if found and isinstance(found[0], ast.Constant) else "r"


def lacks_encoding(call):
    """Whether a call reads or writes text in whatever encoding the locale has."""
    given = {keyword.arg for keyword in call.keywords}
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if "encoding" in given or name not in OPENING or (function := ast.unparse(call.func)) in BINARY:
        return False
    if name in ("read_text", "write_text"):
        return function.startswith(("self.", "path", "(", "Path", "text", "file")) or not call.args
    if name in ("open", "fdopen"):
        whole = function in ("open", "os.fdopen", "io.open")
        return "b" not in str(mode_of(call, 1 if whole else 0))
    if name in ("NamedTemporaryFile", "TemporaryFile"):
        return "b" not in str(mode_of(call, 0) if call.args else "b")
    if name in TEXT_OF_PROCESSES:
        return bool({"text", "universal_newlines"} & given)
    return name == "TextIOWrapper"


def sources():
    for folder in ("tinygraph", "course", "benchmarks", "docs", ".ci"):
        yield from sorted((ROOT / folder).rglob("*.py"))


def test_every_text_file_names_its_encoding():
    found = []
    for path in sources():
        text = path.read_text(encoding="utf-8")
        if not re.search(r"_text\(|open\(|TextIO|Temporary|text=|universal_new", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and lacks_encoding(node):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}")
    assert found == []


@pytest.mark.parametrize(
    "source, lacks",
    [
        ("open(p)", True),
        ("open(p, 'w')", True),
        ("open(p, 'rb')", False),
        ("open(p, encoding='utf-8')", False),
        ("path.open('a')", True),
        ("path.open('wb')", False),
        ("path.read_text()", True),
        ("(a / b).write_text(x)", True),
        ("read_text(path)", False),
        ("os.fdopen(1, 'w')", True),
        ("subprocess.run(c, text=True)", True),
        ("subprocess.run(c, encoding='utf-8')", False),
        ("subprocess.run(c)", False),
        ("NamedTemporaryFile('w')", True),
        ("NamedTemporaryFile()", False),
    ],
)
def test_the_search_finds_what_it_shall(source, lacks):
    assert lacks_encoding(ast.parse(source).body[0].value) is lacks


@pytest.mark.parametrize("read", [read_text, python_text, source_text])
def test_a_pipe_is_not_waited_at(read, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="Not a regular file"):
        read(tmp_path / "pipe")
