"""CUDA's floating-point functions on the emulator, each compared with numpy's or Python's."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.cuda.expressions import DTYPES, evaluate

REAL = {"float": ("f", 1e-6), "double": ("", 4e-15)}  # suffix of the C name, tolerance


def elementwise(function, *arrays):
    """A function of Python floats over arrays; what Python refuses (a pole) is NaN."""

    def one(*values):
        try:
            return function(*(float(v) for v in values))
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.nan

    return np.array([one(*values) for values in zip(*arrays, strict=True)])


def half_away(x):
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


# ---- one argument ------------------------------------------------------------------------------

ANY = np.linspace(-9.7, 9.7, 101)
POSITIVE = np.geomspace(1e-6, 1e6, 101)
UNIT = np.linspace(-0.99, 0.99, 101)
SPECIAL = np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e9, -1e9, np.inf, -np.inf, np.nan])
WIDE = np.concatenate([ANY, SPECIAL])

ONE_ARGUMENT = {
    "exp": (np.exp, ANY),
    "exp2": (np.exp2, ANY),
    "expm1": (np.expm1, ANY),
    "exp10": (lambda x: 10.0**x, ANY),
    "log": (np.log, POSITIVE),
    "log2": (np.log2, POSITIVE),
    "log10": (np.log10, POSITIVE),
    "log1p": (np.log1p, POSITIVE),
    "logb": (lambda x: np.floor(np.log2(x)), POSITIVE),
    "sqrt": (np.sqrt, POSITIVE),
    "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE),
    "cbrt": (np.cbrt, ANY),
    "rcbrt": (lambda x: 1 / np.cbrt(x), POSITIVE),
    "sin": (np.sin, ANY),
    "cos": (np.cos, ANY),
    "tan": (np.tan, UNIT),
    "asin": (np.arcsin, UNIT),
    "acos": (np.arccos, UNIT),
    "atan": (np.arctan, WIDE),
    "sinh": (np.sinh, ANY),
    "cosh": (np.cosh, ANY),
    "tanh": (np.tanh, WIDE),
    "asinh": (np.arcsinh, ANY),
    "acosh": (np.arccosh, POSITIVE + 1),
    "atanh": (np.arctanh, UNIT),
    "erf": (lambda x: elementwise(math.erf, x), WIDE),
    "erfc": (lambda x: elementwise(math.erfc, x), UNIT),
    "lgamma": (lambda x: elementwise(math.lgamma, x), POSITIVE[POSITIVE > 3]),
    "tgamma": (lambda x: elementwise(math.gamma, x), np.linspace(0.1, 9, 50)),
    "floor": (np.floor, WIDE),
    "ceil": (np.ceil, WIDE),
    "trunc": (np.trunc, WIDE),
    "round": (half_away, WIDE),
    "rint": (np.rint, WIDE),
    "nearbyint": (np.rint, WIDE),
    "fabs": (np.abs, WIDE),
    "normcdf": (lambda x: elementwise(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)), x), UNIT),
    "sinpi": (lambda x: elementwise(lambda v: math.sin(math.pi * v), x), UNIT / 2),
    "cospi": (lambda x: elementwise(lambda v: math.sin(math.pi * (0.5 - abs(v))), x), UNIT),
}

FAST = {  # intrinsic: (numpy, arguments)
    "__expf(x)": np.exp,
    "__exp10f(x)": lambda x: 10.0**x,
    "__logf(x)": np.log,
    "__log2f(x)": np.log2,
    "__log10f(x)": np.log10,
    "__sinf(x)": np.sin,
    "__cosf(x)": np.cos,
    "__tanf(x)": np.tan,
    "__tanhf(x)": np.tanh,
    "__saturatef(x - 0.5f)": lambda x: np.clip(x - 0.5, 0, 1),
    "__frcp_rn(x)": lambda x: 1 / x,
    "__fsqrt_rn(x)": np.sqrt,
    "__frsqrt_rn(x)": lambda x: 1 / np.sqrt(x),
    "__fadd_rn(x, 3.0f)": lambda x: x + 3,
    "__fsub_rn(x, 3.0f)": lambda x: x - 3,
    "__fmul_rn(x, 0.7f)": lambda x: x * np.float32(0.7),
    "__fdiv_rn(x, 3.0f)": lambda x: x / 3,
    "__fmaf_rn(x, x, 1.0f)": lambda x: x * x + 1,
    "__fdividef(x, 3.0f)": lambda x: x / 3,
    "fdividef(x, 3.0f)": lambda x: x / 3,
    "__powf(x, 1.5f)": lambda x: x**1.5,
    "abs(-x)": lambda x: x,
}


@pytest.mark.second
@pytest.mark.parametrize("real", REAL)
def test_functions_of_one_argument(real):
    """f(x), and for float also the C name ff(x), agree with float64 numpy."""
    suffix, tolerance = REAL[real]
    for domain in (
        ANY,
        POSITIVE,
        UNIT,
        UNIT / 2,
        WIDE,
        POSITIVE + 1,
        POSITIVE[POSITIVE > 3],
        np.linspace(0.1, 9, 50),
    ):
        names = [n for n, (_, d) in ONE_ARGUMENT.items() if np.array_equal(d, domain, True)]
        x = domain.astype(DTYPES[real])
        got = evaluate(
            [f"{n}(x)" for n in names] + [f"{n}{suffix}(x)" for n in names], real, x=(real, x)
        )
        for expression, y in got.items():
            name = expression[: -len("(x)")]
            reference = ONE_ARGUMENT[name if name in ONE_ARGUMENT else name[:-1]][0]
            with np.errstate(all="ignore"):
                expected = reference(x.astype(np.float64))
            np.testing.assert_allclose(y, expected, tolerance, 1e-30, err_msg=expression)


def test_zeros_keep_their_sign():
    x = np.array([-0.0, -0.3, 0.0, 0.3], np.float32)
    got = evaluate(["rint(x)", "round(x)", "trunc(x)", "sinpi(trunc(x))"], "float", x=("float", x))
    for expression, y in got.items():
        assert not y.any()
        assert np.signbit(y).tolist() == [True, True, False, False], expression


def test_sinpi_and_cospi_are_exact_at_multiples_of_a_half():
    x = np.array([1e6 + 0.5, 2.0**40 + 1, -3.5, 0.25, 1e15 + 0.5])
    got = evaluate(["sinpi(x)", "cospi(x)"], "double", x=("double", x))
    root = math.sqrt(0.5)
    np.testing.assert_allclose(got["sinpi(x)"], [1, 0, 1, root, 1], 1e-15, 1e-300)
    np.testing.assert_allclose(got["cospi(x)"], [0, -1, 0, root, 0], 1e-15, 1e-300)


def test_fast_intrinsics_and_single_roundings():
    x = np.linspace(0.01, 1.5, 90).astype(np.float32)
    got = evaluate(list(FAST), "float", x=("float", x))
    for expression, y in got.items():
        np.testing.assert_allclose(
            y, FAST[expression](x.astype(np.float64)), 1e-6, 1e-7, err_msg=expression
        )


def test_rn_intrinsics_are_never_fused():
    """x * x - x * x rounded twice is 0; a fused multiply-add would leave the rounding error."""
    x = np.linspace(0.1, 1, 64).astype(np.float32)
    y = x * x
    got = evaluate(
        ["__fadd_rn(__fmul_rn(x, x), -y0)", "fmaf(x, x, -y0)"],
        "float",
        x=("float", x),
        y0=("float", y),
    )
    assert not got["__fadd_rn(__fmul_rn(x, x), -y0)"].any()
    assert got["fmaf(x, x, -y0)"].any()


# ---- two and three arguments -------------------------------------------------------------------

TWO_ARGUMENTS = {
    "pow": lambda x, y: np.abs(x) ** y,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "fmod": np.fmod,
    "remainder": lambda x, y: elementwise(math.remainder, x, y),
    "copysign": np.copysign,
    "fdim": lambda x, y: np.maximum(x - y, 0),
    "fmax": np.fmax,
    "fmin": np.fmin,
    "max": np.fmax,
    "min": np.fmin,
}


@pytest.mark.parametrize("real", REAL)
def test_functions_of_two_arguments(real):
    suffix, tolerance = REAL[real]
    rng = np.random.default_rng(1)
    x = rng.normal(0, 3, 200).astype(DTYPES[real])
    y = rng.normal(0, 3, 200).astype(DTYPES[real])
    x[:6], y[:6] = [0, -0.0, 2, -2, 4, 1], [1, 1, 2, 2, -2, -0.5]
    calls = {f"{n}(x, y0)": n for n in TWO_ARGUMENTS}
    calls |= {f"{n}{suffix}(x, y0)": n for n in TWO_ARGUMENTS if n not in ("max", "min")}
    calls = {e.replace("(x", "(fabs(x)") if "pow" in e else e: n for e, n in calls.items()}
    got = evaluate(list(calls), real, x=(real, x), y0=(real, y))
    for expression, z in got.items():
        with np.errstate(all="ignore"):
            wanted = TWO_ARGUMENTS[calls[expression]](x.astype(np.float64), y.astype(np.float64))
        np.testing.assert_allclose(z, wanted, tolerance * 4, 1e-30, err_msg=expression)
    same = evaluate(
        [f"nextafter{suffix}(x, y0)", "nextafter(x, y0)"], real, x=(real, x), y0=(real, y)
    )
    for z in same.values():
        assert np.array_equal(z, np.nextafter(x, y))


@pytest.mark.parametrize("real", REAL)
def test_a_nan_loses_in_min_and_max(real):
    x = np.array([np.nan, 1, np.nan], DTYPES[real])
    y = np.array([2, np.nan, np.nan], DTYPES[real])
    for z in evaluate(
        ["max(x, y0)", "min(x, y0)", "fmax(x, y0)", "fmin(x, y0)"], real, x=(real, x), y0=(real, y)
    ).values():
        assert np.array_equal(z, [2, 1, np.nan], equal_nan=True)


@pytest.mark.parametrize("real", REAL)
def test_parts_of_a_number(real):
    """frexp and ldexp, modf, remquo, sincos, the roundings to integers, the classes."""
    x = np.array([0.0, 1.0, -2.5, 3.5, 1e-3, 12345.678, -7.25], DTYPES[real])
    fraction, exponent = np.frexp(x)
    rest, whole = np.modf(x)
    expressions = {
        "frexp(x, &e)": fraction,
        "(frexp(x, &e), e)": exponent,
        "ldexp(x, 3)": x * 8,
        "scalbn(x, -3)": x / 8,
        "modf(x, &w)": rest,
        "(modf(x, &w), w)": whole,
        "remquo(x, (R)2, &e)": elementwise(math.remainder, x, 0 * x + 2).astype(x.dtype),
        "(remquo(x, (R)2, &e), e & 3)": np.rint(x.astype(float) / 2).astype(int) % 4,
        "ilogb(x + (x == 0))": np.floor(np.log2(np.abs(x + (x == 0)))),
        "lrint(x)": np.rint(x),
        "llrint(x)": np.rint(x),
        "lround(x)": half_away(x),
        "llround(x)": half_away(x),
        "fma(x, x, (R)1)": x.astype(np.float64) ** 2 + 1,
        "pow(x, 2)": x.astype(np.float64) ** 2,
        "(sincos(x, &w, &v), w)": np.sin(x),
        "(sincos(x, &w, &v), v)": np.cos(x),
        "isnan(x) + 2 * isnan((R)NAN)": 0 * x + 2,
        "isinf(x) + 2 * isinf((R)INFINITY)": 0 * x + 2,
        "isfinite(x) + 2 * isfinite((R)INFINITY)": 0 * x + 1,
        "signbit(x)": np.signbit(x),
    }
    calls = [e.replace("R)", f"{real})") for e in expressions]
    lambdas = [
        f"[&]() -> {real} {{ int e = 0; {real} w = 0, v = 0; (void)e, (void)w, (void)v; "
        f"return {call}; }}()"
        for call in calls
    ]
    got = evaluate(lambdas, real, x=(real, x))
    for y, (expression, expected) in zip(got.values(), expressions.items(), strict=True):
        np.testing.assert_allclose(y, expected, 1e-6, 1e-30, err_msg=expression)


def test_numbers_of_the_c_headers():
    numbers = {
        "INFINITY": np.inf,
        "FLT_MAX": np.finfo(np.float32).max,
        "FLT_MIN": np.finfo("f4").tiny,
        "FLT_EPSILON": np.finfo("f4").eps,
        "DBL_MAX": np.finfo("f8").max,
        "M_PI": math.pi,
        "DBL_EPSILON": np.finfo("f8").eps,
        "INT_MAX": 2**31 - 1,
        "INT_MIN": -(2**31),
        "UINT_MAX": 2**32 - 1,
        "HUGE_VAL": np.inf,
        "isnan(NAN)": 1,
    }
    got = evaluate(list(numbers), "double", x=("int", np.zeros(1, np.int32)))
    assert {e: y[0] for e, y in got.items()} == {e: float(v) for e, v in numbers.items()}


# ---- rounding --------------------------------------------------------------------------------

EXACT = {  # of fractions
    "{0}add": lambda x, y: x + y,
    "{0}sub": lambda x, y: x - y,
    "{0}mul": lambda x, y: x * y,
    "{0}div": lambda x, y: x / y,
    "{1}": lambda x, y: x * y - Fraction(1),
}


def neighbours_hold(mode, result, exact):
    """Whether a result is the number next to an exact one, on the side that the mode says."""
    down = mode == "rd" or (mode == "rz" and exact >= 0)
    infinity = type(result)(np.inf)
    with np.errstate(all="ignore"):
        above, below = np.nextafter(result, infinity), np.nextafter(result, -infinity)
    if down:
        return float(result) <= exact < float(above)
    return float(below) < exact <= float(result)


@pytest.mark.second
@pytest.mark.parametrize(
    ("real", "letter", "fma"), [("float", "f", "fmaf"), ("double", "d", "fma")]
)
def test_operations_that_are_rounded_in_a_direction(real, letter, fma):
    """Exact, in fractions: no number of the type lies between the result and what is exact."""
    dtype = DTYPES[real]
    rng = np.random.default_rng(7)
    largest = np.finfo(dtype).max
    x = np.concatenate([rng.normal(size=60), [1, 1, -1, 3, largest, -largest, 1e-30, 0.1]])
    y = np.concatenate([rng.normal(size=60), [3, 1e-30, 1e-30, -7, largest, -largest, 1, -0.1]])
    x, y = x.astype(dtype), y.astype(dtype)
    for mode in ("rd", "ru", "rz"):
        names = {f"__{name.format(letter, fma)}_{mode}": exact for name, exact in EXACT.items()}
        calls = {f"{n}(x, z{', -1' if fma + '_' in n else ''})": e for n, e in names.items()}
        for call, results in evaluate([*calls], real, x=(real, x), z=(real, y)).items():
            for a, b, result in zip(x, y, results, strict=True):
                exact = calls[call](Fraction(float(a)), Fraction(float(b)))
                if abs(result) != np.inf:
                    assert neighbours_hold(mode, result, exact), (call, a, b, result)
                else:  # past the largest number, rounded away from zero
                    assert abs(exact) > largest and mode == ("ru" if exact > 0 else "rd")
        roots = evaluate(
            [f"__{letter}sqrt_{mode}(x)", f"__{letter}rcp_{mode}(x)"], real, x=(real, np.abs(x))
        )
        root, reciprocal = roots.values()
        for a, r, inverse in zip(np.abs(x), root, reciprocal, strict=True):
            exact = Fraction(float(a))
            assert neighbours_hold(mode, inverse, 1 / exact)
            below, above = (r, np.nextafter(r, dtype(np.inf)))
            if mode == "ru":
                below, above = np.nextafter(r, dtype(0)), r
            assert Fraction(float(below)) ** 2 <= exact <= Fraction(float(above)) ** 2


@pytest.mark.second
def test_what_is_exact_keeps_its_sign_and_the_mode_ends_with_the_operation():
    x = np.array([1.0, -0.0], np.float32)
    calls = ["__fadd_rd(x, -1.0f)", "__fadd_rd(x, x == 1 ? -1.0f : 0.0f)", "__fadd_ru(x, -x)"]
    after = "__fadd_ru(1.0f, 1e-30f) - 1.0f + (x + 1e-30f)"
    results = evaluate([*calls, after], "float", x=("float", x))
    assert np.signbit(results[calls[0]]).tolist() == [True, True]
    assert np.signbit(results[calls[1]]).tolist() == [True, True]
    assert not np.signbit(results[calls[2]]).any()
    assert results[after][0] == np.float32(1) + np.spacing(np.float32(1))
