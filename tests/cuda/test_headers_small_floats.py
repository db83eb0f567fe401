"""__half and __nv_bfloat16: every bit of a result is that of exact arithmetic, rounded once.

The oracle for half is numpy's float16 where numpy has the operation; for bfloat16, and for a fused
multiply-add, rational numbers of Python.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from tinygraph.cuda import Kernel

HALF, BFLOAT = ("__half", "half", 10, 15), ("__nv_bfloat16", "bfloat16", 7, 127)
FORMATS = pytest.mark.parametrize(("T", "name", "M", "BIAS"), [HALF, BFLOAT], ids=["half", "bf16"])
PRELUDE = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
"""


def launch(T, expression, *inputs, out=np.uint16):
    """An expression of a, b, c over arrays of bits; the bits of the results."""
    names = "abc"[: len(inputs)]
    loads = " ".join(f"T {n} = T::raw({n}_[i]);" for n in names)
    arguments = "".join(f"const unsigned short* {n}_, " for n in names)
    ctype = {np.uint16: "unsigned short", np.float32: "float", np.int32: "int"}[out]
    text = f"""{PRELUDE}typedef {T} T;
__global__ void k({arguments}{ctype}* y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    {loads}
    y[i] = {expression};
}}"""
    y = np.zeros(inputs[0].size, out)
    Kernel(text, "k")(-(-y.size // 256), 256, *inputs, y, y.size)
    return y


def values(bits, M, BIAS):
    """Exact values of the numbers, NaN and infinities as floats."""
    found = []
    for b in bits.tolist():
        sign, exponent, rest = -1 if b >> 15 else 1, b >> M & 2 * BIAS + 1, b & (1 << M) - 1
        if exponent == 2 * BIAS + 1:
            found.append(math.nan if rest else sign * math.inf)
            continue
        significand = rest + ((1 << M) if exponent else 0)
        found.append(sign * significand * Fraction(2) ** (max(exponent, 1) - BIAS - M))
    return found


def rounded(x, M, BIAS):
    """The bits of the number nearest to a fraction, of two the even one; without the sign of 0."""
    magnitude, sign = abs(x), 0x8000 if x < 0 else 0
    exponent = 1 - BIAS
    while magnitude >= Fraction(2) ** (exponent + 1):
        exponent += 1
    whole = round(magnitude / Fraction(2) ** (exponent - M))  # of halves the even one
    field = ((exponent + BIAS - 1) << M) + whole
    return sign | min(field, (2 * BIAS + 1) << M)


def cases(rng, M, BIAS, count):
    """Bits of numbers that meet each other's last places, and some that do not."""
    near = rng.integers((BIAS - 3) << M, (BIAS + 3) << M, count)
    return np.where(
        rng.random(count) < 0.7,
        near | rng.integers(0, 2, count) << 15,
        rng.integers(0, 1 << 16, count),
    ).astype(np.uint16)


def same(found, wanted):
    """Equal bits; a NaN is any NaN, and a zero has any sign."""
    nan = 0x7FFF
    found, wanted = (np.where(bits == 0x8000, 0, bits) for bits in (found, wanted))
    return np.array_equal(found[wanted != nan], wanted[wanted != nan]) and np.all(
        (found[wanted == nan] & 0x7FFF) > 0x7C00
    )


def test_every_half_as_a_float_and_back():
    bits = np.arange(1 << 16).astype(np.uint16)
    floats = launch("__half", "__half2float(a)", bits, out=np.float32)
    np.testing.assert_array_equal(floats, bits.view(np.float16).astype(np.float32))
    back = launch("__half", "__float2half((float)a).bits", bits)
    number = ~np.isnan(bits.view(np.float16))
    assert np.array_equal(back[number], bits[number])


def test_every_bfloat16_as_a_float():
    bits = np.arange(1 << 16).astype(np.uint16)
    floats = launch("__nv_bfloat16", "__bfloat162float(a)", bits, out=np.float32)
    np.testing.assert_array_equal(floats.view(np.uint32) >> 16, bits)


@FORMATS
def test_floats_are_rounded_to_nearest_even(T, name, M, BIAS):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1 << 32, 4000, dtype=np.uint32)
    x[:3000] = (cases(rng, 7, 127, 3000).astype(np.uint32) << 16) | rng.choice(
        [0, 0x8000, 0x7FFF, 0x8001, 0x1000, 0x0FFF, 0x1001, 0x3000], 3000
    ).astype(np.uint32)
    low, high = (x & 0xFFFF).astype(np.uint16), (x >> 16).astype(np.uint16)
    whole = "__uint_as_float((unsigned)b.bits << 16 | a.bits)"
    found = launch(T, f"__float2{name}({whole}).bits", low, high)
    if T == "__half":
        with np.errstate(over="ignore"):
            wanted = x.view(np.float32).astype(np.float16)
        number = ~np.isnan(wanted)
        assert np.array_equal(found[number], wanted.view(np.uint16)[number])
        return
    number = ~np.isnan(x.view(np.float32))
    nearest = (x.astype(np.uint64) + 0x7FFF + (x >> 16 & 1)) >> 16
    assert np.array_equal(found[number], nearest[number])


OPERATIONS = {
    "__hadd(a, b)": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "a * b": lambda a, b: a * b,
    "__hdiv(a, b)": lambda a, b: a / b,
}


@FORMATS
@pytest.mark.parametrize("operation", OPERATIONS)
def test_arithmetic_is_rounded_once(T, name, M, BIAS, operation):
    rng = np.random.default_rng(1)
    a, b = cases(rng, M, BIAS, 400), cases(rng, M, BIAS, 400)
    exact = OPERATIONS[operation]
    numbers = zip(values(a, M, BIAS), values(b, M, BIAS), strict=True)
    usual = [all(isinstance(v, Fraction) for v in pair) and pair[1] != 0 for pair in numbers]
    a, b = a[usual], b[usual]
    numbers = zip(values(a, M, BIAS), values(b, M, BIAS), strict=True)
    wanted = np.array([rounded(exact(x, y), M, BIAS) for x, y in numbers], np.uint16)
    assert a.size > 300 and same(launch(T, f"({operation}).bits", a, b), wanted)
    pair = f"{T}2"
    packed = operation.replace("__hadd", "__hadd2").replace("__hdiv", "__h2div")
    packed = packed.replace("a", "A").replace("b", "B").replace("__hAdd2", "__hadd2")
    both = f"([&] {{ {pair} A(a, b), B(b, a); return {packed}; }}()).x.bits"
    assert same(launch(T, both, a, b), wanted)


@FORMATS
def test_a_fused_multiply_add_is_rounded_once(T, name, M, BIAS):
    rng = np.random.default_rng(2)
    a, b, c = (cases(rng, M, BIAS, 600) for _ in range(3))
    # Products in the middle between two numbers, and a far smaller summand that decides.
    one = BIAS << M
    a[:100], b[:100] = one + 1, one + (1 << (M - 1))
    c[:100] = rng.integers(1, 1 << (M + 2), 100) | rng.integers(0, 2, 100) << 15
    numbers = list(zip(*(values(v, M, BIAS) for v in (a, b, c)), strict=True))
    usual = [all(isinstance(v, Fraction) for v in three) for three in numbers]
    a, b, c = a[usual], b[usual], c[usual]
    exact = [x * y + z for (x, y, z), ok in zip(numbers, usual, strict=True) if ok]
    wanted = np.array([rounded(x, M, BIAS) for x in exact], np.uint16)
    assert same(launch(T, "__hfma(a, b, c).bits", a, b, c), wanted)


@pytest.mark.second
@FORMATS
def test_infinities_and_nan(T, name, M, BIAS):
    infinite, one, nan = (2 * BIAS + 1) << M, BIAS << M, 0x7FFF
    largest = infinite - 1
    a = np.array([infinite, infinite, largest, one, nan, one], np.uint16)
    b = np.array([infinite, infinite | 0x8000, largest, nan, nan, 0x8000], np.uint16)
    found = launch(T, "(a + b).bits", a, b)
    assert same(found, np.array([infinite, nan, infinite, nan, nan, one], np.uint16))
    assert launch(T, "__hmax(a, b).bits", a[3:4], b[3:4])[0] == one  # a NaN loses
    assert launch(T, "__hmax_nan(a, b).bits", a[3:4], b[3:4])[0] & nan > infinite
    told = launch(T, "(a < b) + 2 * __hltu(a, b) + 4 * __hisnan(b)", a, b, out=np.int32)
    assert told.tolist() == [0, 0, 0, 6, 6, 0]
    rounds = launch(T, f"__float2{name}_rz(FLT_MAX).bits", a[2:3])
    assert rounds[0] == largest
    assert launch(T, f"__float2{name}_ru(FLT_MAX).bits", a[2:3])[0] == infinite


@pytest.mark.second
@FORMATS
def test_integers_and_pairs(T, name, M, BIAS):
    x = np.array([0x4248, 0xC248], np.uint16)  # 3.14 and its negative as half, 50 as bfloat16
    exact = values(x, M, BIAS)
    for mode, to in {"rz": math.trunc, "rd": math.floor, "ru": math.ceil, "rn": round}.items():
        found = launch(T, f"__{name}2int_{mode}(a)", x, out=np.int32)
        assert found.tolist() == [to(v) for v in exact]
    swapped = launch(T, f"__lowhigh2highlow({T}2(a, b)).x.bits", x, x[::-1].copy())
    assert swapped.tolist() == x[::-1].tolist()
    assert launch(T, "hfloor(a).bits", x).tolist() == [
        rounded(Fraction(math.floor(v)), M, BIAS) for v in exact
    ]


@pytest.mark.second
def test_pairs_are_one_access_and_sums_of_atomics_are_rounded():
    text = f"""{PRELUDE}__global__ void k(const half2* x, half2* y, half* sum) {{
    y[threadIdx.x] = __hadd2(x[threadIdx.x], x[threadIdx.x]);
    atomicAdd(sum, x[threadIdx.x].x);
}}"""
    x, y, total = (
        np.ones((32, 2), np.float16),
        np.zeros((32, 2), np.float16),
        np.zeros(1, np.float16),
    )
    report = Kernel(text, "k").check(1, 32, x, y, total, profile=True)
    assert report.ok, report.text()
    assert (y == 2).all() and total[0] == 32
    assert {(line.access, line.size) for line in report.lines} >= {("load", 4), ("store", 4)}
