"""What a trace knows of variables, held against the same loops in Python."""

import numpy as np

from tests.cuda.emulator.launching import kernel
from tinygraph.cuda.emulator.trace import KINDS

POLYNOMIAL = """
struct Pair { int a, b; };
__device__ double scaled(double value, short factor) {
    double product = value * factor;
    if (product > 1e9) product = 0;
    return product;
}
__global__ void polynomial(const float* x, double* y, int degree, bool twice) {
    __shared__ int seen[4][8];
    extern __shared__ short more[];
    int i = threadIdx.x;
    float sum = 0;
    Pair pair = {1, 2};
    seen[i / 8][i % 8] = i;
    for (int k = 0; k <= degree; k++) {
        float term = k;
        for (int p = 0; p < k; p++)
            term *= x[i];
        sum += term;
    }
    unsigned char small = i;
    more[i] = small + pair.a;
    y[i] = scaled(sum, twice ? 2 : 1);
}"""
LINE = {text.strip(): n for n, text in enumerate(POLYNOMIAL.splitlines(), 1)}


def traced(threads=8, degree=3):
    x = np.linspace(-2, 2, 32, dtype=np.float32)
    y = np.zeros(32)
    report = kernel(POLYNOMIAL).trace(1, threads, x, y, degree, True, shared=64)
    return x, y, report


def test_arrays_of_the_source_have_dtype_and_shape():
    _, _, trace = traced()
    arrays = {array.name: array for array in trace.arrays}
    assert (arrays["seen"].dtype, arrays["seen"].shape) == (np.int32, (4, 8))
    assert arrays["seen"].space == "shared" and arrays["seen"].initial is None
    assert (arrays["more"].dtype, arrays["more"].shape) == (np.int16, (32,))
    assert (arrays["x"].dtype, arrays["x"].shape) == (np.float32, (32,))


def test_variables_have_their_types():
    _, _, trace = traced()
    types = {(v.function, v.name): v.dtype for v in trace.variables}
    assert types == {
        ("polynomial", "degree"): np.int32,
        ("polynomial", "twice"): np.bool_,
        ("polynomial", "i"): np.int32,
        ("polynomial", "sum"): np.float32,
        ("polynomial", "k"): np.int32,
        ("polynomial", "term"): np.float32,
        ("polynomial", "p"): np.int32,
        ("polynomial", "small"): np.uint8,
        ("scaled", "value"): np.float64,
        ("scaled", "factor"): np.int16,
        ("scaled", "product"): np.float64,
    }


def test_variables_hold_what_the_loops_say():
    """At each load of x[i]: i, k, p, and what term and sum are before it."""
    x, y, trace = traced()
    names = [array.name for array in trace.arrays]
    for thread in range(8):
        expected, total = [], np.float32(0)
        for k in range(4):
            term = np.float32(k)
            for p in range(k):
                expected.append({"i": thread, "k": k, "p": p, "term": term, "sum": total})
                term = np.float32(term * x[thread])
            total = np.float32(total + term)
        loads = trace.events["kind"] == KINDS.index("load")
        loads &= (trace.events["array"] == names.index("x")) & (trace.events["thread"] == thread)
        told = [trace.locals(number) for number in np.flatnonzero(loads)]
        keys = ("i", "k", "p", "term", "sum")
        assert [{key: row[key] for key in keys} for row in told] == expected
        assert all(row["degree"] == 3 and row["twice"] is True for row in told)
        last = trace.locals(np.flatnonzero(trace.events["thread"] == thread)[-1])
        assert (last["small"], last["factor"]) == (thread, 2)
        assert last["product"] == last["value"] * 2 == y[thread] == 2 * float(total)


def test_a_variable_has_no_value_before_its_line():
    _, _, trace = traced()
    for number, event in enumerate(trace.events):
        if event["place"] < 0 or trace.places[event["place"]].line < LINE["int i = threadIdx.x;"]:
            continue
        known = trace.locals(number)
        if trace.places[event["place"]].line <= LINE["seen[i / 8][i % 8] = i;"]:
            assert not {"term", "p", "small", "value", "product"} & set(known)


def test_values_are_those_of_the_own_thread():
    _, _, trace = traced()
    for number in np.flatnonzero(trace.events["kind"] == KINDS.index("store")):
        assert trace.locals(number)["i"] == trace.events["thread"][number]


def test_at_a_branch_variables_hold_what_it_asks_for():
    """A choice is no event of the run time: it is found afterwards, before the code it leads to."""
    text = """
__global__ void strides(int* x, int n) {
    int i = threadIdx.x;
    for (int step = 1; step < n; step *= 2) {
        int at = 2 * step * i;
        if (at + step < n)
            x[i] = at;
    }
}"""
    trace = kernel(text).trace(1, 8, np.zeros(8, np.int32), 8)
    lines = np.array([place.line for place in trace.places])[trace.events["place"]]
    asked = np.flatnonzero((trace.events["kind"] == KINDS.index("branch")) & (lines == 6))
    told = [(int(trace.events["thread"][number]), trace.locals(number)) for number in asked]
    wanted = [
        (i, {"n": 8, "i": i, "step": step, "at": 2 * step * i})
        for i in range(8)
        for step in (1, 2, 4)
    ]
    assert told == wanted
