"""The checker on integer arithmetic that C++ leaves undefined, where the result is used and not."""

import numpy as np
import pytest

from tests.cuda.emulator.launching import check
from tinygraph.cuda import InOut

ARGUMENTS = "int n, int m, unsigned u, long long w"


def report_of(line, n=0, m=0, u=0, w=0):
    text = f"__global__ void k(int* y, {ARGUMENTS}) {{\n{line}\n}}"
    return check(text, 1, 1, InOut(np.zeros(8, np.int32)), n, m, u, w)


@pytest.mark.parametrize(
    "line, values, words",
    [
        ("int all = n * m; (void)all;", (70000, 70000), "70000 * 70000 is 4900000000, which 'int'"),
        ("y[0] = n + m;", (2**31 - 1, 1), "2147483647 + 1 is 2147483648, which 'int'"),
        ("y[0] = n - m;", (-(2**31), 1), "-2147483648 - 1 is -2147483649, which 'int'"),
        ("y[0] = -n;", (-(2**31),), "0 - -2147483648 is 2147483648, which 'int'"),
        ("y[0] = n++;", (2**31 - 1,), "2147483647 + 1 is 2147483648"),
        ("y[n * 65536 & 1] = 1;", (2**20,), "1048576 * 65536 is 68719476736"),
        ("w *= w; y[0] = (int)w;", (0, 0, 0, 2**40), "is 1208925819614629174706176, which 'long"),
        (
            "y[0] = n / m;",
            (-(2**31), -1),
            "the quotient of -2147483648 and -1 does not fit in 'int'",
        ),
    ],
)
def test_overflow_is_told_with_its_numbers(line, values, words):
    report = report_of(line, *values)
    (finding,) = report.findings
    assert (finding.kind, finding.line) == ("overflow", 2), report.text()
    assert words in finding.message and finding.thread == (0, 0, 0)


@pytest.mark.parametrize(
    "line, values, words",
    [
        ("y[0] = n / m;", (7, 0), "7 is divided by zero"),
        ("y[0] = n % m;", (-7, 0), "-7 is divided by zero"),
        ("y[0] = 1u / u;", (), "1 is divided by zero"),
        ("y[0] = 1 << n;", (32,), "which has 32 bits, by 32"),
        ("y[0] = u >> n;", (-1,), "which has 32 bits, by -1"),
        ("y[0] = (int)(w << n);", (64,), "which has 64 bits, by 64"),
    ],
)
def test_undefined_arithmetic_is_told(line, values, words):
    report = report_of(line, *values)
    (finding,) = report.findings
    assert (finding.kind, finding.line) == ("arithmetic", 2), report.text()
    assert words in finding.message


@pytest.mark.parametrize("n", [-1, 4, 70000])
def test_an_index_beyond_a_local_array_is_told(n):
    report = report_of("int a[4] = {1, 2, 3, 4}; y[0] = a[n];", n)
    (finding,) = report.findings
    assert (finding.kind, finding.line) == ("out-of-bounds", 2)
    assert f"index {n} into an array of type 'int [4]'" in finding.message


@pytest.mark.parametrize(
    "line, values",
    [
        ("y[0] = (int)(u * u + 4294967295u);", (0, 0, 2**31 + 5)),  # unsigned sums wrap
        ("y[0] = (int)(u ^ u << 31);", (0, 0, 2**32 - 1)),
        ("w = (long long)n * m; y[0] = (int)(w >> 32);", (70000, 70000)),
        ("y[0] = 1 << n;", (31,)),  # to the sign bit, as everybody does
        ("unsigned char b = 255; b += 1; y[0] = b;", ()),  # in int, and then cut
        ("y[0] = (int)w;", (0, 0, 0, 2**40)),
        ("y[0] = __mul24(n, m) ^ abs(n) ^ (int)__sad(n, m, 1);", (2**30, 2**30)),
        ("y[0] = atomicAdd(&y[1], n); atomicAdd(&y[1], n); atomicSub(&y[2], n);", (2**31 - 1,)),
        ("y[0] = __reduce_add_sync(1u, n);", (2**31 - 1,)),
        ("int a[4] = {0}; int* end = &a[n]; y[0] = end - a;", (4,)),
    ],
)
def test_defined_arithmetic_is_not_blamed(line, values):
    report = report_of(line, *values)
    assert report.ok, report.text()
