"""Source: text or file, defines, include files, digest; compile_error for each compiler."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tinygraph.base.errors import KernelCompileError
from tinygraph.cuda import Kernel
from tinygraph.cuda.reading.source import FOLDERS, Source, compile_error, kernel_file

KERNEL = "__global__ void nothing() {}"


@pytest.mark.parametrize("text", [KERNEL, "\n", "int x;\nint y;"])
def test_a_str_with_a_kernel_or_a_line_break_is_text(text):
    source = Source.read(text)
    assert (source.text, source.path, source.name, source.folder) == (
        text,
        None,
        "<source>",
        FOLDERS[0],
    )


def test_any_other_str_is_a_path(tmp_path):
    path = tmp_path / "scale.cu"
    path.write_text(KERNEL)
    for given in (path, str(path)):
        source = Source.read(given)
        assert (source.text, source.path, source.name) == (KERNEL, path.resolve(), "scale.cu")
        assert source.folder == path.resolve().parent


def test_a_missing_file_is_named_with_its_neighbours(tmp_path):
    (tmp_path / "scale.cu").write_text(KERNEL)
    with pytest.raises(KernelCompileError) as error:
        Source.read(tmp_path / "scael.cu")
    assert str(tmp_path / "scael.cu") in str(error.value)
    assert "No such file" in str(error.value) and "has scale.cu" in str(error.value)


def test_what_is_no_text_file_is_refused(tmp_path):
    (tmp_path / "bytes.cu").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(KernelCompileError, match="not UTF-8"):
        Source.read(tmp_path / "bytes.cu")
    with pytest.raises(KernelCompileError, match="directory"):
        Source.read(tmp_path)


def test_defines_are_sorted_and_made_text():
    defines = {"TILE": 16, "B": None, "A": True, "C": False, "S": "a + b", "F": 0.5}
    assert Source.read(KERNEL, defines).defines == (
        ("A", "1"),
        ("B", "1"),
        ("C", "0"),
        ("F", "0.5"),
        ("S", "a + b"),
        ("TILE", "16"),
    )


@pytest.mark.parametrize("defines", [{"2X": 1}, {"A B": 1}, {"": 1}, {1: 2}, {"A": "1\n2"}])
def test_bad_defines_are_refused(defines):
    with pytest.raises(KernelCompileError, match="defines"):
        Source.read(KERNEL, defines)


@pytest.fixture
def nested(tmp_path):
    """main.cu includes a.cuh and sub/b.cuh, which includes c.cuh beside it and a.cuh again."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "main.cu").write_text('#include "a.cuh"\n # include  "sub/b.cuh"\n' + KERNEL)
    (tmp_path / "a.cuh").write_text('#pragma once\n#include "main.cu.missing"\n')
    (tmp_path / "sub" / "b.cuh").write_text('#include "c.cuh"\n#include "a.cuh"\n')
    (tmp_path / "sub" / "c.cuh").write_text('#include "../a.cuh"\n// #include <math.h>\n')
    return tmp_path


def test_includes_are_found_recursively_each_once(nested):
    found = Source.read(nested / "main.cu").includes
    assert sorted(found) == [nested / "a.cuh", nested / "sub" / "b.cuh", nested / "sub" / "c.cuh"]


@pytest.mark.parametrize("tile", [0, 1, 2])
def test_lines_below_an_include_that_a_condition_leaves_out_are_those_of_the_file(tmp_path, tile):
    (tmp_path / "far.cuh").write_text("// not one line\n" * 40 + "const int FAR = 9;\n")
    (tmp_path / "k.cu").write_text(
        '#if TILE == 1\n#ifdef TILE\n#include "far.cuh"\n#endif\n#elif TILE == 2\n'
        "const int FAR = 8;\n#else\nconst int FAR = 7;\n#endif\n"
        "__global__ void k(float* x) {\n    x[FAR] = 0.0f;\n}\n"
    )
    kernel = Kernel(tmp_path / "k.cu", "k", defines={"TILE": tile})
    (found,) = kernel.check(1, 1, np.zeros(4, np.float32)).findings
    assert (Path(found.file).name, found.line) == ("k.cu", 11)
    assert found.index == {0: 7, 1: 9, 2: 8}[tile]


def test_a_file_that_includes_itself_ends(tmp_path):
    (tmp_path / "a.cuh").write_text('#include "a.cuh"\n')
    (tmp_path / "k.cu").write_text('#include "a.cuh"\n')
    assert Source.read(tmp_path / "k.cu").includes == (tmp_path / "a.cuh",)


def test_a_source_given_as_text_finds_the_shared_headers():
    assert Source.read('#include "prelude.cuh"\n').includes[0] == kernel_file("prelude.cuh")


def test_the_digest_depends_on_text_defines_and_contents_of_includes(nested):
    def digest(defines=None):
        return Source.read(nested / "main.cu", defines).digest

    first = digest()
    assert first == digest({})
    assert Source.read("x\nA=1").digest != Source.read("x\n", {"A": 1}).digest
    assert len({first, digest({"A": 1}), digest({"A": 2}), digest({"AA": ""})}) == 4
    (nested / "sub" / "c.cuh").write_text("// changed\n")
    second = digest()
    assert second != first
    (nested / "main.cu").write_text((nested / "main.cu").read_text() + "\n")
    assert digest() not in (first, second)


def test_the_digest_is_the_same_in_another_process():
    use = f"print(Source.read({KERNEL!r}).digest)"
    text = f"from tinygraph.cuda.reading.source import Source; {use}"
    out = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == Source.read(KERNEL).digest


TEXT = """__global__ void k(float *x)
{
\tx[0] = y;
    x[1] = z + 1;
}
"""


def test_gcc_messages_show_the_line_and_a_caret():
    output = (
        "In file included from /tmp/q/unit.cpp:3:\n"
        "<source>: In function ‘void k(float*)’:\n"
        "<source>:3:9: error: ‘y’ was not declared in this scope\n"
        "    3 |         x[0] = y;\n      |                ^\n"
        "<source>:4:12: fatal error: no z\n<source>:4: warning: unused\n"
    )
    assert str(compile_error(Source.read(TEXT), output, "g++")).splitlines() == [
        "<source>: g++ does not compile it",
        "<source>:3:9: error: ‘y’ was not declared in this scope",
        "   3 | \tx[0] = y;",
        "     | \t       ^",
        "<source>:4:12: error: no z",
        "   4 |     x[1] = z + 1;",
        "     |            ^",
    ]


def test_nvrtc_messages_show_the_line_and_the_caret_that_nvrtc_drew():
    output = (
        'default_program(4): error: identifier "z" is undefined\n'
        "      x[1] = z + 1;\n"
        "             ^\n\n"
        'default_program(3): error #20: identifier "y" is undefined\n\n'
        '2 errors detected in the compilation of "default_program".\n'
    )
    assert str(compile_error(Source.read(TEXT), output, "nvrtc")).splitlines() == [
        "<source>: nvrtc does not compile it",
        '<source>:4:12: error: identifier "z" is undefined',
        "   4 |     x[1] = z + 1;",
        "     |            ^",
        '<source>:3: error: identifier "y" is undefined',
        "   3 | \tx[0] = y;",
    ]


@pytest.mark.parametrize(
    ("kind", "output"), [("g++", "{}:2:8: error: no type"), ("nvrtc", "{}(2): error: no type")]
)
def test_an_error_in_an_include_file_shows_the_line_of_that_file(nested, kind, output):
    (nested / "sub" / "c.cuh").write_text("// first\nstruct;\n")
    source = Source.read(nested / "main.cu")
    message = str(compile_error(source, output.format(nested / "sub" / "c.cuh"), kind))
    assert message.startswith(f"{nested / 'main.cu'}: ") and "c.cuh:2" in message
    assert "   2 | struct;" in message


def test_the_source_is_known_under_the_name_of_a_temporary_copy(nested):
    source = Source.read(nested / "main.cu")
    message = str(compile_error(source, "/tmp/tmpabc/0f3e.cubin.cu(3): error: bad", "nvrtc"))
    assert f"main.cu:3: error: bad\n   3 | {KERNEL}" in message


def test_lines_of_files_that_are_not_there_are_not_invented():
    message = str(compile_error(Source.read(TEXT), "entry:1:40: error: no k\n", "g++"))
    assert message.splitlines()[1:] == ["entry:1:40: error: no k"]
    message = str(compile_error(Source.read(TEXT), "<source>:99:1: error: end of file\n", "g++"))
    assert message.splitlines()[1:] == ["<source>:99:1: error: end of file"]


def test_many_errors_are_cut_and_counted():
    output = "".join(f"<source>:3:{n}: error: number {n}\n" for n in range(1, 10))
    message = str(compile_error(Source.read(TEXT), output, "g++"))
    assert "number 5" in message and "number 6" not in message
    assert message.endswith("... and 4 more errors")


def test_output_of_another_form_is_shown_as_it_came():
    message = str(compile_error(Source.read(TEXT), "ld: cannot find -lm\n", "clang++"))
    assert message == "<source>: clang++ does not compile it\nld: cannot find -lm"
    assert "printed nothing" in str(compile_error(Source.read(TEXT), "", "clang++"))
