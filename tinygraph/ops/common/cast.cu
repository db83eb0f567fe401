// cast: the same numbers in another dtype.
//
// instances: cast<float, double>, cast<double, float>, cast<float, int>, cast<float, long long>,
//            cast<int, float>, cast<long long, float>, cast<long long, double>,
//            cast<bool, float>, cast<float, bool>, cast<unsigned char, float>
// instances: cast_from_half<T>, cast_to_half<T> for T in float, double
// instances: cast_from_half<bool>, cast_to_half<long long>
// operations of cast: 0
// operations of cast_from_half: 0
// operations of cast_to_half: 0
//
// Any pair of floats, integers and bool does; the host names the types as it needs them.
//
// Which thread owns what, grid, block and memory: packs.cuh.
// Operations: one conversion an element, a few more for float16: bound by memory.
//
// A float beyond the range of an integer becomes some integer, on a GPU another than on a CPU: C++
// leaves it open, as numpy does.

#include "packs.cuh"

// x (n) From in, y (n) To out.
// numpy: y = x.astype(To)
template <typename From, typename To>
__global__ void __launch_bounds__(THREADS)
cast(const From* __restrict__ x, To* __restrict__ y, long long n)
{
    if constexpr (sizeof(To) > sizeof(From))
        by_packs(n, [](To& out, From in) { out = static_cast<To>(in); }, writes(y), reads(x));
    else
        by_packs(n, [](From in, To& out) { out = static_cast<To>(in); }, reads(x), writes(y));
}

// ---- float16 --------------------------------------------------------------------------------

// Sign, 5 bits of exponent, 10 of fraction.  Written out in bits, for C++ has no type for it and
// CUDA's needs a header; it is converted, and never computed with.
// Source: IEEE 754-2019, section 3.4.

__device__ __forceinline__ float half_to_float(unsigned short bits)
{
    const unsigned sign = (bits & 0x8000u) << 16;
    const unsigned exponent = bits >> 10 & 31u, fraction = bits & 0x3ffu;
    if (exponent == 0) {  // no leading 1: multiples of 2^-24
        const float size = static_cast<float>(fraction) * 5.9604644775390625e-8f;
        return sign ? -size : size;
    }
    const unsigned wide = exponent == 31 ? 255u : exponent + 112;  // infinity and NaN, or a number
    return __uint_as_float(sign | wide << 23 | fraction << 13);
}

// To the nearest, halves to even: from a double, so that nothing is rounded twice.
__device__ __forceinline__ unsigned short double_to_half(double value)
{
    const double size = fabs(value);
    const unsigned sign = signbit(value) ? 0x8000u : 0;
    unsigned bits;
    if (is_nan(value)) {
        bits = 0x7e00u;
    } else if (size >= 65520.0) {  // half a step above the largest number
        bits = 0x7c00u;
    } else if (size < 6.103515625e-5) {  // 2^-14: below are multiples of 2^-24
        bits = static_cast<unsigned>(rint(size * 16777216.0));
    } else {
        int exponent;
        frexp(size, &exponent);  // size = 0.1... * 2^exponent
        // 11 bits, the first of them 1; rounding up to 2^11 carries into the exponent, as it shall.
        const unsigned digits = static_cast<unsigned>(rint(ldexp(size, 11 - exponent)));
        bits = (static_cast<unsigned>(exponent + 13) << 10) + digits;
    }
    return static_cast<unsigned short>(sign | bits);
}

// x (n) float16 in, as its bits, y (n) To out.
// numpy: y = x.astype(To)
template <typename To>
__global__ void __launch_bounds__(THREADS)
cast_from_half(const unsigned short* __restrict__ x, To* __restrict__ y, long long n)
{
    for (long long i = first_element(); i < n; i += element_stride())
        y[i] = static_cast<To>(half_to_float(x[i]));
}

// x (n) From in, y (n) float16 out, as its bits.
// numpy: y = x.astype(np.float16)
template <typename From>
__global__ void __launch_bounds__(THREADS)
cast_to_half(const From* __restrict__ x, unsigned short* __restrict__ y, long long n)
{
    for (long long i = first_element(); i < n; i += element_stride())
        y[i] = double_to_half(static_cast<double>(x[i]));
}
