"""The one reader of CUDA text: tokens, comments that state something, include files."""

import re
import subprocess

import pytest

from tinygraph.base.errors import KernelCompileError
from tinygraph.cuda.emulator.compiler import find_compiler
from tinygraph.cuda.reading.preprocessor import preprocess
from tinygraph.cuda.reading.source import Source, kernel_files
from tinygraph.cuda.reading.tokens import code, stated, tokens


@pytest.mark.parametrize(
    "path", [*kernel_files(), *kernel_files(".cuh")], ids=lambda path: path.name
)
def test_tokens_joined_are_the_text(path):
    if path.suffix in (".cu", ".cuh"):
        text = path.read_text()
        assert "".join(token.text for token in tokens(text)) == text


@pytest.mark.parametrize(
    "text, kinds",
    [
        ("a /* b // c */ d", "word space comment space word"),
        ("a // b \\\n c\nd", "word space comment space word"),
        ('"// no comment" "\\"" R"(// " )"', "text space text space text"),
        ("'\\'' '//'", "text space text"),
        ("1'000.5e-3f .5 0x1fu a.b", "number space number space number space word mark word"),
        ("#define A /* x\n y */ 3\nb", "directive space word"),
        ("  # if 1 \\\n && 2 // c\n", "directive space"),
        ("a # b", "word space mark space word"),
        ("/* never closed", "comment"),
        ("std::max", "word mark word"),
    ],
)
def test_kinds(text, kinds):
    assert [token.kind for token in tokens(text)] == kinds.split()


def test_comments_state_things_over_several_lines():
    text = (
        "/* sizes: 1,\n *  2 */\nint x; // sizes: 3\n//     4\n// sizes: 5,\n\n// 6\n"
        'const char* s = "// sizes: 7";\n/// sizes: 8,\n/// 9\n// sizes:'
    )
    found = stated(text, re.compile("sizes:"), lambda text: text.endswith(","))
    assert [(number, text) for number, _, text in found] == [
        (1, "1, 2"),
        (3, "3"),
        (5, "5,"),
        (9, "8, 9"),
        (11, ""),
    ]


@pytest.fixture
def folder(tmp_path):
    """Include files in two folders, with and without #pragma once, some in branches not taken."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "main.cu").write_text(
        '  #  include "sub/a.cuh"\n// #include "comment.cuh"\n/*\n#include "comment.cuh"\n*/\n'
        '#include "b.cuh"\n#include "absent.cuh"\n#if defined(N) && N > 1 /* a\n comment */\n'
        "int n = N; // N\n#else\nint none;\n#endif\n"
        '#include "sub/a.cuh"\nlong last;\n'
    )
    (tmp_path / "comment.cuh").write_text("int wrong;\n")
    (tmp_path / "sub/a.cuh").write_text('#pragma once\n#include "b.cuh"\n#define N 2\nint a;')
    (tmp_path / "sub/b.cuh").write_text("int near;\n")
    (tmp_path / "b.cuh").write_text('int far;\n#include "sub/a.cuh"\n')
    (tmp_path / "absent.cuh").write_text("#define ABSENT\n")
    return tmp_path


def test_includes_are_read_as_a_compiler_reads_them(folder):
    source = Source.read(folder / "main.cu")
    names = ["sub/a.cuh", "sub/b.cuh", "b.cuh", "absent.cuh"]
    assert source.includes == tuple(folder / name for name in names)
    compiler = find_compiler()
    result = subprocess.run(
        [*compiler.command, "-E", "-P", "-x", "c++", str(folder / "main.cu")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert list(preprocess(source)) == code(result.stdout)


def test_macros_are_replaced_as_a_compiler_replaces_them(tmp_path):
    path = tmp_path / "macros.cu"
    path.write_text(
        "#define N 3\n#define TWICE(x) x + x\n#define SUM(a, b) TWICE(a) * (b)\n"
        "#define NAMES(x) x##_0, x##_ ## 1\n#define NONE() none\n#define G(x) G(x + 1)\n"
        "int i = SUM(N, (f(1, 2))), TWICE = TWICE (\n N\n), NAMES(n), NAMES(N);\n"
        "int NAMES(SUM); NONE() NONE; G(N) TWICE(SUM(1, 2)) #\n;"
    )
    compiler = find_compiler()
    command = [*compiler.command, "-E", "-P", "-x", "c++", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert list(preprocess(Source.read(path))) == code(result.stdout)


def test_line_directives_tell_where_each_token_comes_from(folder):
    source = Source.read(folder / "main.cu")
    place, found = ("", 0), {}
    for token in source.tokens:
        match = re.fullmatch(r'#line (\d+) "(.*)"', token.text)
        if match:
            place = match[2], int(match[1]) - 1
        if token.kind == "word":
            found[token.text] = place
        place = place[0], place[1] + token.text.count("\n")
    wanted = {"near": ("sub/b.cuh", 1), "a": ("sub/a.cuh", 4), "far": ("b.cuh", 1)}
    wanted |= {"none": ("main.cu", 12), "last": ("main.cu", 15)}
    assert {word: found[word] for word in wanted} == {
        word: (str(folder / name), line) for word, (name, line) in wanted.items()
    }


def test_a_file_that_includes_itself_is_told(tmp_path):
    (tmp_path / "k.cu").write_text('#include "a.cuh"\n')
    (tmp_path / "a.cuh").write_text('int x;\n#include "b.cuh"\n')
    (tmp_path / "b.cuh").write_text('#include "a.cuh"\n#include "a.cuh"\n')
    with pytest.raises(KernelCompileError, match=r"b\.cuh:[12]: #include: a\.cuh includes itself"):
        assert Source.read(tmp_path / "k.cu").tokens
