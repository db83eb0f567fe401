"""CUDA's integer and conversion intrinsics on the emulator, compared with Python's integers."""

import math

import numpy as np
import pytest

from tests.cuda.expressions import DTYPES, evaluate

# ---- integers ----------------------------------------------------------------------------------

RNG = np.random.default_rng(2)
A = np.concatenate(
    [[0, 1, -1, 2**31 - 1, -(2**31), 0xFFFFFF, 0x800000], RNG.integers(-(2**31), 2**31, 60)]
)
B = np.concatenate([[0, 5, -1, 2**31 - 1, -(2**31), 33, 31], RNG.integers(-(2**31), 2**31, 60)])


def signed(value, bits=32):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def low24(value):
    return signed(value & 0xFFFFFF, 24)


def permuted(x, y, selector):
    pool = (y << 32 | x).to_bytes(8, "little")
    return int.from_bytes(bytes(pool[selector >> 4 * i & 7] for i in range(4)), "little")


def lowest_bit(value):
    return (value & -value).bit_length()


U = 2**32 - 1
INTEGERS = {  # over int a, b; Python integers do the rest
    "__popc(a)": lambda a, b: (a & U).bit_count(),
    "__clz(a)": lambda a, b: 32 - (a & U).bit_length(),
    "__ffs(a)": lambda a, b: lowest_bit(a & U),
    "__brev(a)": lambda a, b: int(f"{a & U:032b}"[::-1], 2),
    "__byte_perm(a, b, 0x3715)": lambda a, b: permuted(a & U, b & U, 0x3715),
    "__byte_perm(a, b, b)": lambda a, b: permuted(a & U, b & U, b & 0xFFFF),
    "__mulhi(a, b)": lambda a, b: a * b >> 32,
    "__umulhi(a, b)": lambda a, b: (a & U) * (b & U) >> 32,
    "__mul24(a, b)": lambda a, b: low24(a) * low24(b),
    "__umul24(a, b)": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "__sad(a, b, 7u)": lambda a, b: abs(a - b) + 7,
    "__usad(a, b, 7u)": lambda a, b: abs((a & U) - (b & U)) + 7,
    "__hadd(a, b)": lambda a, b: (a + b) >> 1,
    "__rhadd(a, b)": lambda a, b: (a + b + 1) >> 1,
    "__uhadd(a, b)": lambda a, b: ((a & U) + (b & U)) >> 1,
    "__urhadd(a, b)": lambda a, b: ((a & U) + (b & U) + 1) >> 1,
    "__funnelshift_l(a, b, b)": lambda a, b: ((b & U) << 32 | (a & U)) << (b & 31) >> 32,
    "__funnelshift_r(a, b, b)": lambda a, b: ((b & U) << 32 | (a & U)) >> (b & 31),
    "__funnelshift_lc(a, b, 40)": lambda a, b: a,
    "__funnelshift_rc(a, b, 40)": lambda a, b: b,
    "__funnelshift_lc(a, b, 9)": lambda a, b: ((b & U) << 32 | (a & U)) << 9 >> 32,
    "__funnelshift_rc(a, b, 9)": lambda a, b: ((b & U) << 32 | (a & U)) >> 9,
    "min(a, b)": lambda a, b: min(a, b),
    "max(a, b)": lambda a, b: max(a, b),
    "min(a, (unsigned)b)": lambda a, b: min(a & U, b & U),
    "max((unsigned)a, b)": lambda a, b: max(a & U, b & U),
    "umin(a, b)": lambda a, b: min(a & U, b & U),
    "umax(a, b)": lambda a, b: max(a & U, b & U),
    "abs(a / 2)": lambda a, b: abs(math.trunc(a / 2)),
    "__float_as_int(__int_as_float(a & 0x7f7fffff))": lambda a, b: a & 0x7F7FFFFF,
    "__float_as_uint(__uint_as_float(a & 0x3fffffff))": lambda a, b: a & 0x3FFFFFFF,
    "__double2hiint(__hiloint2double(a & 0x7fefffff, b))": lambda a, b: a & 0x7FEFFFFF,
    "__double2loint(__hiloint2double(a & 0x7fefffff, b))": lambda a, b: b,
}


def test_integer_intrinsics():
    a, b = A.astype(np.int32), B.astype(np.int32)
    got = evaluate(list(INTEGERS), "int", a=("int", a), b=("int", b))
    for expression, y in got.items():
        expected = [signed(INTEGERS[expression](int(p), int(q))) for p, q in zip(a, b, strict=True)]
        assert y.tolist() == expected, expression


M = 2**64 - 1
LONG_INTEGERS = {
    "__popcll(a)": lambda a, b: (a & M).bit_count(),
    "__clzll(a)": lambda a, b: 64 - (a & M).bit_length(),
    "__ffsll(a)": lambda a, b: lowest_bit(a & M),
    "__brevll(a)": lambda a, b: int(f"{a & M:064b}"[::-1], 2),
    "__mul64hi(a, b)": lambda a, b: a * b >> 64,
    "__umul64hi(a, b)": lambda a, b: (a & M) * (b & M) >> 64,
    "llmin(a, b)": lambda a, b: min(a, b),
    "llmax(a, b)": lambda a, b: max(a, b),
    "ullmin(a, b)": lambda a, b: min(a & M, b & M),
    "max(a, (unsigned long long)b)": lambda a, b: max(a & M, b & M),
    "llabs(a / 2)": lambda a, b: abs(a) // 2,
    "__double_as_longlong(__longlong_as_double(a & 0x7fefffffffffffff))": lambda a, b: (
        a & 0x7FEFFFFFFFFFFFFF
    ),
}


def test_64_bit_integer_intrinsics():
    a = np.concatenate([A, RNG.integers(-(2**63), 2**63 - 1, 40), [-(2**63), 2**63 - 1]])
    b = np.concatenate([B, RNG.integers(-(2**63), 2**63 - 1, 40), [-(2**63), -1]])
    got = evaluate(list(LONG_INTEGERS), "long long", a=("long long", a), b=("long long", b))
    for expression, y in got.items():
        function = LONG_INTEGERS[expression]
        expected = [signed(function(int(p), int(q)), 64) for p, q in zip(a, b, strict=True)]
        assert y.tolist() == expected, expression


# ---- conversions -------------------------------------------------------------------------------

ROUNDINGS = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}
INTEGER_NAMES = {
    "int": "int",
    "uint": "unsigned int",
    "ll": "long long",
    "ull": "unsigned long long",
}


@pytest.mark.parametrize("integer", INTEGER_NAMES)
@pytest.mark.parametrize("real", ["float", "double"])
def test_floating_point_to_integer_rounds_and_clamps(real, integer):
    """Out of range: the nearest end. NaN: 0, or the top bit where PTX says so."""
    result = INTEGER_NAMES[integer]
    limits = np.iinfo(DTYPES[result])
    x = np.array(
        [
            0,
            0.5,
            -0.5,
            1.5,
            2.5,
            -2.5,
            1e6 + 0.5,
            -3e9,
            3e9,
            1e19,
            -1e19,
            3e19,
            np.inf,
            -np.inf,
            np.nan,
        ],
        DTYPES[real],
    )
    top = 1 << (limits.bits - 1)
    nan = 0 if real == "float" and limits.bits == 32 else (-top if limits.min else top)
    names = {f"__{real}2{integer}_{mode}(x)": mode for mode in ROUNDINGS}
    for expression, y in evaluate(list(names), result, x=(real, x)).items():
        rounded = ROUNDINGS[names[expression]](x.astype(np.float64))
        expected = [
            nan
            if math.isnan(v)
            else limits.max
            if v > limits.max
            else limits.min
            if v < limits.min
            else int(v)
            for v in rounded
        ]
        assert y.tolist() == expected, expression


def test_to_float_in_the_four_directions():
    x = np.concatenate([RNG.normal(0, 1, 60), [1e300, -1e300, 0.1, 1e-50, 2.0, np.inf]])
    got = evaluate([f"__double2float_{m}(x)" for m in ROUNDINGS], "float", x=("double", x))
    nearest, zero, up, down = (got[f"__double2float_{m}(x)"] for m in ROUNDINGS)
    with np.errstate(over="ignore"):
        assert np.array_equal(nearest, x.astype(np.float32))
    assert (up.astype(float) >= x).all() and (down.astype(float) <= x).all()
    assert np.array_equal(zero, np.where(x < 0, up, down))
    exact = nearest.astype(float) == x
    assert np.array_equal(up[exact], down[exact])
    finite = ~exact & np.isfinite(up) & np.isfinite(down)
    assert np.array_equal(np.nextafter(down[finite], np.float32(np.inf)), up[finite])


@pytest.mark.parametrize("kind", ["int", "uint"])
def test_integer_to_float(kind):
    c = INTEGER_NAMES[kind]
    x = np.array([0, 1, 2**24 + 1, 2**31 - 1, 2**24 + 3], DTYPES[c])
    names = [f"__{kind}2float_{mode}(x)" for mode in ROUNDINGS]
    got = evaluate(names, "float", x=(c, x))
    low, high = [0, 1, 2**24, 2**31 - 128, 2**24 + 2], [0, 1, 2**24 + 2, 2**31, 2**24 + 4]
    nearest = [0, 1, 2**24, 2**31, 2**24 + 4]
    expected = [nearest, low, high, low]  # rn, rz, ru, rd of numbers that are not negative
    assert [got[name].tolist() for name in names] == expected
    exact = evaluate(
        [f"__{kind}2double_rn(x)", "__ll2double_rn(x)", "__ull2double_rn(x)"], "double", x=(c, x)
    )
    for y in exact.values():
        assert y.tolist() == x.tolist()
    for y in evaluate(["__ll2float_rn(x)", "__ull2float_rn(x)"], "float", x=(c, x)).values():
        assert y.tolist() == expected[0]
