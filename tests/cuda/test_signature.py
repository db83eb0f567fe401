"""Signatures read from real CUDA declarations, and what cannot be read refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygraph.base.errors import KernelCompileError
from tinygraph.cuda.reading.signature import KernelName, kernels, parse
from tinygraph.cuda.reading.source import Source


def read(text, name="k", defines=None, parameters=None):
    return parse(Source.read(text + "\n", defines), name, parameters)


def written(text, name="k", defines=None):
    """The parameters as one line of C."""
    return ", ".join(map(str, read(text, name, defines).parameters))


def of(declaration):
    """One parameter of a kernel that is not a template."""
    (parameter,) = read(f"__global__ void k({declaration}) {{}}").parameters
    return parameter


SCALARS = {
    "bool": "bool",
    "char": "int8",
    "signed char": "int8",
    "unsigned char": "uint8",
    "short": "int16",
    "short int": "int16",
    "unsigned short": "uint16",
    "int": "int32",
    "signed": "int32",
    "unsigned": "uint32",
    "unsigned int": "uint32",
    "long": "int64",
    "unsigned long": "uint64",
    "long long": "int64",
    "long long int": "int64",
    "unsigned long long": "uint64",
    "long unsigned int": "uint64",
    "long long unsigned": "uint64",
    "float": "float32",
    "double": "float64",
    "size_t": "uint64",
    "ptrdiff_t": "int64",
    "int8_t": "int8",
    "int16_t": "int16",
    "int32_t": "int32",
    "int64_t": "int64",
    "uint8_t": "uint8",
    "uint16_t": "uint16",
    "uint32_t": "uint32",
    "uint64_t": "uint64",
    "std::size_t": "uint64",
    "std::int32_t": "int32",
}


@pytest.mark.parametrize(("ctype", "dtype"), SCALARS.items())
def test_scalars_and_pointers_of_each_type(ctype, dtype):
    scalar = of(f"{ctype} n")
    assert (scalar.name, scalar.dtype, scalar.pointer) == ("n", np.dtype(dtype), False)
    for declaration, const in ((f"{ctype} *n", False), (f"const {ctype}* n", True)):
        pointer = of(declaration)
        assert (pointer.name, pointer.dtype, pointer.pointer) == ("n", np.dtype(dtype), True)
        assert pointer.const == const and pointer.lanes == 1


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ("const float* __restrict__ x", "const float* x"),
        ("float const *x", "const float* x"),
        ("const float *const __restrict x", "const float* x"),
        ("float *const x", "float* x"),
        ("const int n", "int n"),
        ("int const n", "int n"),
        ("volatile int* flag", "int* flag"),
        ("float x[]", "float* x"),
        ("const float x[16]", "const float* x"),
        ("int n = 3", "int n"),
        ("float scale = f(1, 2)", "float scale"),
        ("[[maybe_unused]] int n", "int n"),
        ("int n [[maybe_unused]]", "int n"),
        ("int n __attribute__((unused))", "int n"),
        ("const __grid_constant__ int n", "int n"),
        ("unsigned long long int* total", "unsigned long long* total"),
        ("int/* rows */n// here", "int n"),
        ("int", "int argument_0"),
        ("const float*", "const float* argument_0"),
    ],
)
def test_ways_to_write_one_parameter(declaration, expected):
    text = f"__global__ void k({declaration}\n) {{}}"
    assert written(text) == expected


@pytest.mark.parametrize(
    ("ctype", "dtype", "lanes", "alignment"),
    [
        ("float4", "float32", 4, 16),
        ("float2", "float32", 2, 8),
        ("double2", "float64", 2, 16),
        ("float3", "float32", 3, 4),
        ("int1", "int32", 1, 4),
        ("uchar4", "uint8", 4, 4),
        ("double4", "float64", 4, 16),
        ("ulonglong2", "uint64", 2, 16),
    ],
)
def test_pointers_to_vectors_are_arrays_of_their_elements(ctype, dtype, lanes, alignment):
    found = of(f"const {ctype}* x")
    assert (found.dtype, found.lanes, found.alignment) == (np.dtype(dtype), lanes, alignment)
    assert found.const and found.ctype == f"const {ctype}*"


HEADS = [
    "__global__ void k",
    'extern "C" __global__ void k',
    "static __global__ void k",
    "__global__ static void k",
    "inline __global__ void k",
    "void __global__ k",
    "__global__ void __launch_bounds__(256) k",
    "__launch_bounds__(256) __global__ void k",
    "__global__ __launch_bounds__(256, 4) void k",
    "__global__ void\n__launch_bounds__(2 * 128)\nk",
    "[[nodiscard]] __global__ void k",
    "__attribute__((used)) __global__ void k",
]


@pytest.mark.parametrize("head", HEADS)
def test_heads_of_kernels(head):
    found = read(f"int before;\n{head}(const float* x, int n)\n{{ if (n) {{ x; }} }}\nint after;")
    assert list(map(str, found.parameters)) == ["const float* x", "int n"]
    assert found.launch_bounds == (256 if "launch_bounds" in head else None)
    assert (found.name, found.function, found.template_args) == ("k", "k", ())


def test_kernels_in_namespaces_and_linkage_blocks():
    text = 'namespace a { namespace { extern "C" { __global__ void k(int n) {} } } }'
    assert written(text, "a::k") == "int n"


def test_a_kernel_without_parameters():
    assert read("__global__ void k() {}").parameters == ()
    assert read("__global__ void k(void) {}").parameters == ()


TEMPLATE = """
template <typename T, int TILE = 16, class U = T>
__global__ void __launch_bounds__(TILE * 8) k(const T* x, U* y, T alpha) {}
"""


@pytest.mark.parametrize(
    ("name", "parameters", "bounds"),
    [
        ("k<float>", "const float* x, float* y, float alpha", 128),
        ("k<double, 32>", "const double* x, double* y, double alpha", 256),
        ("k<float,8,double>", "const float* x, double* y, float alpha", 64),
        (
            "k< unsigned  short >",
            "const unsigned short* x, unsigned short* y, unsigned short alpha",
            128,
        ),
        ("ns::k<long long, 2 * 4>", "const long long* x, long long* y, long long alpha", 64),
    ],
)
def test_template_arguments_are_put_in(name, parameters, bounds):
    found = read(TEMPLATE, name)
    assert ", ".join(map(str, found.parameters)) == parameters
    assert found.launch_bounds == bounds and found.name == name and found.function == "k"


def test_template_arguments_are_kept_as_given():
    assert read(TEMPLATE, "k<unsigned  char, 2*4>").template_args == ("unsigned char", "2*4")


def test_instantiations_specialisations_and_forward_declarations_do_not_count():
    text = """
    template <typename T> __global__ void k(const T*, int);
    template <typename T> __global__ void k(const T* x, int n) {}
    template <> __global__ void k<double>(const double* x, int n) {}
    template __global__ void k<float>(const float*, int);
    """
    assert written(text, "k<double>") == "const double* x, int n"
    assert kernels(Source.read(text)) == [KernelName("k", ("T",))]


@pytest.mark.parametrize(
    "text",
    [
        "#define REAL float",
        "#define NUMBER float\n#define REAL NUMBER",
        "typedef float REAL;",
        "using REAL = float;",
        "namespace n { typedef float number; }\nusing REAL = number;",
        "#ifdef WIDE\ntypedef double REAL;\n#else\ntypedef float REAL;\n#endif",
        "#if WIDE > 1 || (defined(NARROW) && NARROW)\n#define REAL double\n#else\n"
        "#define REAL float\n#endif",
        "#if 0\n#define REAL double\n#elif !defined WIDE\n#define REAL float\n#endif",
        "#ifndef REAL\n#define REAL float\n#endif\n#ifndef REAL\n#define REAL double\n#endif",
        "#if 1\n#define REAL float\n#elif 1\n#define REAL double\n#else\n#define REAL int\n#endif",
        "#define REAL \\\n    float // a number",
        "void f() { typedef double REAL; }\ntypedef float REAL;",
    ],
)
def test_names_of_types(text):
    assert written(f"{text}\n__global__ void k(const REAL* x, REAL a) {{}}") == (
        "const float* x, float a"
    )


def test_names_of_pointers_and_const_types():
    text = """
    typedef const float* input;
    using number = const double;
    __global__ void k(input x, const input y, number* z, const number w) {}
    """
    assert written(text) == "const float* x, const float* y, const double* z, double w"


def test_half_is_numpys_float16_unless_the_source_declares_it():
    body = "__global__ void k(const half* x, __half2* y, const __nv_bfloat16* z) {}"
    x, y, z = read(body).parameters
    assert [(p.dtype.name, p.lanes, p.const) for p in (x, y, z)] == [
        ("float16", 1, True),
        ("float16", 2, False),
        ("uint16", 1, True),
    ]
    body = "__global__ void k(const half* x) {}"
    assert written(f"typedef unsigned short half;\n{body}") == "const unsigned short* x"


def test_enumerations_are_their_integers():
    text = """
    enum Mode { FAST, SLOW };
    enum class Way : unsigned char { UP };
    __global__ void k(Mode m, Way w, enum Mode o) {}
    """
    assert written(text) == "int m, unsigned char w, int o"


def test_bounds_may_be_named_constants():
    text = "constexpr int WARP = 32;\nstatic const int THREADS = 4 * WARP;\n"
    assert read(text + "__global__ void __launch_bounds__(THREADS) k() {}").launch_bounds == 128
    assert read("__global__ void __launch_bounds__(f(2)) k() {}").launch_bounds is None


def test_kernels_and_types_of_include_files(tmp_path):
    (tmp_path / "types.cuh").write_text(
        "#pragma once\n#ifdef T\ntypedef double real;\n#else\n"
        "#define T\ntypedef float real;\n#endif\n"
    )
    (tmp_path / "more.cuh").write_text(
        '#pragma once\n#include "types.cuh"\n__global__ void k(real* x) {}\n'
    )
    (tmp_path / "main.cu").write_text(
        '#include "types.cuh"\n#include "more.cuh"\n#include "more.cuh"\n'
        "__global__ void own(real a) {}\n"
    )
    source = Source.read(tmp_path / "main.cu")
    assert str(parse(source, "k")) == "k(float* x)"
    assert [kernel.name for kernel in kernels(source)] == ["k", "own"]


def test_what_follows_a_struct_is_read():
    text = "struct S { int a; float f() { return 1; } } s;\n__global__ void k(int n) {}"
    assert written(text) == "int n"
    assert (
        written(
            "struct S { int a; };\ntemplate <class T> struct P {};\n__global__ void k(int n) {}"
        )
        == "int n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("struct Size { int w, h; };\n__global__ void k(Size s) {}", "the struct Size"),
        ("typedef struct { int w; } Size;\n__global__ void k(Size s) {}", "Size"),
        ("__global__ void k(float4 v) {}", "float4, a struct by value"),
        ("__global__ void k(dim3 d) {}", "dim3, a struct by value"),
        ("__global__ void k(float** rows) {}", "a pointer to pointers"),
        ("typedef float* row;\n__global__ void k(row* rows) {}", "a pointer to pointers"),
        ("__global__ void k(float* rows[4]) {}", "a pointer to pointers"),
        ("__global__ void k(float m[4][4]) {}", "an array of arrays"),
        ("__global__ void k(int& n) {}", "a reference"),
        ("__global__ void k(float (*f)(float)) {}", "a function"),
        ("__global__ void k(cudaTextureObject_t t) {}", "'cudaTextureObject_t', which"),
        ("__global__ void k(void* p) {}", "'void', which is not known"),
        ("using A = B;\nusing B = A;\n__global__ void k(A a) {}", "not known"),
    ],
)
def test_types_that_have_no_place_in_a_launch(text, message):
    with pytest.raises(KernelCompileError, match=message) as error:
        read(text)
    assert "Way out: " in str(error.value) and "<source>: k: " in str(error.value)


def test_structs_by_value_name_their_way_out():
    with pytest.raises(KernelCompileError, match="pass its members as separate scalars"):
        read("struct S { int a; };\n__global__ void k(S s) {}")


def test_an_unknown_kernel_lists_those_of_the_file():
    text = "__global__ void relu_forward() {}\n__global__ void relu_backward() {}"
    with pytest.raises(KernelCompileError) as error:
        read(text, "relu_forwrd")
    assert "it has relu_forward, relu_backward" in str(error.value)
    assert "did you mean 'relu_forward'?" in str(error.value)
    with pytest.raises(KernelCompileError, match="it has none"):
        read("int x;")


def test_overloads_are_refused_unless_declared():
    text = "__global__ void k(int n) {}\n__global__ void k(float* x) {}"
    with pytest.raises(KernelCompileError, match=r"2 overloads.*parameters="):
        read(text)
    assert str(read(text, parameters={"x": "float*"})) == "k(float* x)"


@pytest.mark.parametrize("name", ["k", "k<float, 8, int, 4>"])
def test_too_few_and_too_many_template_arguments(name):
    with pytest.raises(KernelCompileError, match="template arguments"):
        read(TEMPLATE, name)
    with pytest.raises(KernelCompileError, match="at most 0 template arguments"):
        read("__global__ void k(int n) {}", "k<float>")


def test_declared_parameters_stand_for_the_source():
    text = "template <int N> __global__ void __launch_bounds__(N) k(ODD(x), int n) {}"
    found = read(text, "k<64>", parameters={"x": "const float4 *", "n": "unsigned"})
    assert str(found) == "k<64>(const float4* x, unsigned int n)"
    assert found.launch_bounds == 64 and found.template_args == ("64",)
    with pytest.raises(KernelCompileError, match="'flot', which is not known"):
        read(text, "k<64>", parameters={"x": "flot*"})


BASES = sorted(SCALARS)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(BASES),
            st.booleans(),
            st.booleans(),
            st.sampled_from(["", " ", "\n", " /* , */ ", " // (\n"]),
        ),
        max_size=6,
    )
)
def test_any_list_of_parameters_is_read_back(drawn):
    texts, expected = [], []
    for position, (base, pointer, const, space) in enumerate(drawn):
        star = "*" if pointer else " "
        texts.append(f"{space}{'const ' if const else ''}{base}{space}{star}p{position}{space}")
        expected.append((f"p{position}", np.dtype(SCALARS[base]), pointer, const and pointer))
    found = read(f"__global__ void k({','.join(texts)}) {{}}").parameters
    assert [(p.name, p.dtype, p.pointer, p.const) for p in found] == expected


@given(st.text(alphabet="{}()<>[]#\"'\\/*;,= \nkx_global__void", max_size=60))
def test_no_text_makes_the_reader_fail(text):
    kernels(Source.read(text + "\n"))
