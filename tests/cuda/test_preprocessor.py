"""The preprocessor: macros, what conditions leave out, constant expressions."""

import numpy as np
import pytest

from tests.cuda.test_signature import read, written
from tinygraph.base.errors import KernelCompileError
from tinygraph.cuda.reading.preprocessor import evaluate
from tinygraph.cuda.reading.signature import KernelName, kernels
from tinygraph.cuda.reading.source import Source
from tinygraph.cuda.reading.tokens import code


def test_macros_given_to_the_kernel_come_first():
    text = "#ifndef REAL\n#define REAL float\n#endif\n__global__ void k(REAL* x) {}"
    assert written(text) == "float* x"
    assert written(text, defines={"REAL": "double"}) == "double* x"
    text = "__global__ void __launch_bounds__(T) k() {}"
    assert read(text, defines={"T": 64}).launch_bounds == 64


def test_a_macro_may_write_the_head_the_parameters_or_the_whole_kernel():
    assert written("#define ENTRY __global__ void\nENTRY k(int n) {}") == "int n"
    pair = "#define PAIR(type, x) type x##_0, type x##_1\n"
    head = pair + "template <typename T> __global__ void k(PAIR(const T*, a), PAIR(int, n)) {}"
    assert written(head, "k<float>") == "const float* a_0, const float* a_1, int n_0, int n_1"
    assert written("#define MAKE(n) __global__ void n(int x) {}\nMAKE(k)") == "int x"


def test_a_macro_of_any_number_of_arguments_is_not_followed():
    text = "#define MAKE(n, ...) __global__ void n(__VA_ARGS__) {}\nMAKE(k, int x)"
    with pytest.raises(KernelCompileError, match="parameters="):
        read(text)
    assert read(text, parameters={"x": "int"}).parameters[0].dtype == np.int32


def test_a_macro_that_names_itself_ends():
    assert written("#define n n\n#define a b\n#define b a\n__global__ void k(int n) {}") == "int n"


def test_comments_strings_and_excluded_text_hold_no_kernels():
    text = """
    // __global__ void k(double x) {} \\
       __global__ void k(double x) {}
    /* __global__ void k(double x) {} " */
    const char* s = "__global__ void k(double x) {} // \\" ";
    const char c = '"', d = '\\'', e = '{';
    #if 0
    __global__ void k(double x) {}
    #endif
    __device__ void helper(int* x) { if (x) { } }
    __global__ void k(int n) { const char* t = "}"; }
    """
    assert written(text) == "int n"
    assert kernels(Source.read(text)) == [KernelName("k")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 / 2", 3),
        ("1 << 4", 16),
        ("0x10u", 16),
        ("N - 1", 31),
        ("N == 32 && !0", 1),
        ("N > 40 || N < 40", 1),
        ("!N", 0),
        ("(N && 3) + (0 || N)", 2),
        ("9**9", None),
        ("1 < 2 < 3", None),
        ("~0 & 7", 7),
        ("256ULL", 256),
        ("f(2)", None),
        ("M", None),
        ("1 / 0", None),
        ("", None),
        ("1.5", None),
        ("'a'", None),
        ("1 +", None),
    ],
)
def test_constant_expressions(text, value):
    assert evaluate(code(text), {"N": 32}) == value
