"""What the translation of a program makes of launches, indices and addresses of kernels."""

import pytest

from tinygraph.base.errors import KernelCompileError
from tinygraph.cuda.emulator.host.launches import rewrite
from tinygraph.cuda.emulator.host.refused import explained
from tinygraph.cuda.reading.source import Source
from tinygraph.cuda.reading.tokens import tokens


def rewritten(text):
    return "".join(token.text for token in rewrite(list(tokens(text))))


@pytest.mark.parametrize(
    ("callee", "before"),
    [
        ("k", ""),
        ("k<float, 2>", ""),
        ("k<(A > B), N>", ""),
        ("ns::k<T>", "else "),
        ("::k", "; "),
        ("(*table[i])", ""),
        ("table[i]", "if (x) "),
        ("self->kernel", ""),
        ("T::template k<int>", ""),
    ],
)
def test_what_is_launched(callee, before):
    found = rewritten(f"{before}{callee}<<<dim3(1, 2), n>>>(x, f(y));")
    wanted = f'{before}tg_launch("{callee}", TG_KERNEL({callee})).with(dim3(1, 2), n)(x, f(y));'
    assert found.replace(" ", "") == wanted.replace(" ", "")


def test_lines_and_comments_stay():
    text = "k <<< // grid\n  1,\n  2 >>>\n  (x);\n"
    assert rewritten(text).count("\n") == 4 and "// grid" in rewritten(text)


def test_shifts_are_no_launches():
    assert rewritten("a << b; c >> d; v<v<v<int>>> x;") == "a << b; c >> d; v<v<v<int>>> x;"


def test_launches_in_macros():
    text = "#define RUN(k, g, ...) k<<<g, \\\n  32>>>(__VA_ARGS__)\n"
    assert rewritten(text) == (
        '#define RUN(k, g, ...) tg_launch("k", TG_KERNEL(k)).with(g, \\\n  32)(__VA_ARGS__)\n'
    )


def test_indices_are_not_variables_of_the_host():
    text = "struct P { dim3 g; }; void f(P p) { p.gridDim = 1; } int i() { return threadIdx.x; }"
    assert rewritten(text) == text.replace("threadIdx", "tg_threadIdx")
    host = "void g() { dim3 a(1), gridDim(2); k<<<gridDim, blockDim.x>>>(); }"
    assert ".with(gridDim, tg_blockDim.x)" in rewritten(host)


def test_addresses_of_kernels_keep_their_types():
    text = (
        "template <class T> __global__ void k(T* x); void* p = (void*)k<int>; f((const void *)&k);"
    )
    assert "(void*)tg_known(k<int>);" in rewritten(text)
    assert "(const void *)tg_known(&k));" in rewritten(text)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("'cudaCreateTextureObject' was not declared in this scope", "no textures"),
        ("'cudaGraph_t' was not declared in this scope", "no CUDA graphs"),
        ("'cudaFoo' was not declared in this scope", "cudaFoo: the emulator does not have"),
        ("'block_tile_memory' in namespace 'cg' does not name a template type", "of at most 32"),
        ("cublas_v2.h: No such file or directory", "not cuBLAS"),
        ("thrust/sort.h: No such file or directory", "not Thrust"),
        ("nvtx3/nvToolsExt.h: No such file or directory", "not NVTX"),
        ("cuda.h: No such file or directory", "driver API"),
        ("mine.h: No such file or directory", "--include DIR"),
    ],
)
def test_what_is_missing_is_named(error, words):
    source = Source("int main() {}\n")
    told = explained(source, KernelCompileError(f"<source>: g++\na.cu:3:5: error: {error}\n"))
    assert str(told).startswith("a.cu:3: ") and words in str(told)


@pytest.mark.parametrize(
    ("parameters", "mask"),
    [
        ("int x, float* y", 0),
        ("int& x", 1),
        ("Pair<A&, B> x, const T &y", 2),
        ("T (&out)[3], int n = f(&g), T& last", 5),
    ],
)
def test_parameters_that_are_references_are_named(parameters, mask):
    found = rewritten(f"__global__ void k({parameters});\nvoid f() {{ ns::k<2><<<1, 1>>>(a); }}")
    known = f", tg_references<{mask:#x}>()" if mask else ""
    assert f'tg_launch("ns::k<2>", TG_KERNEL(ns::k<2>){known}).with(1, 1)(a);' in found


def test_all_of_a_pack_may_be_references():
    text = (
        "template <class... A> __global__ void k(int n, A&... a); void f() { k<<<1, 1>>>(1, x); }"
    )
    mask = int(rewritten(text).partition("tg_references<")[2].partition(">")[0], 16)
    assert mask & 1 == 0 and mask >> 1 & 0xFF == 0xFF


def test_what_two_files_define_is_named():
    source = Source("int main() {}\n")
    error = KernelCompileError("/usr/bin/ld: b.o: multiple definition of `scan(int*)'; a.o: first")
    assert "scan: two files of the program define it" in str(explained(source, error))


def test_a_file_that_is_missing_at_the_link_is_asked_for():
    source = Source("int main() {}\n")
    error = KernelCompileError("/usr/bin/ld: a.cu:3: undefined reference to `scan(float*, int)'")
    assert "scan: no file of the program defines it" in str(explained(source, error))


def test_other_errors_stay_as_they_are():
    error = KernelCompileError("a.cu:3:5: error: 'x' was not declared in this scope")
    assert explained(Source("int main() {}\n"), error) is error
