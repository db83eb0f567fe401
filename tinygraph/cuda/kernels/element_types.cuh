// What depends on whether elements are floats, integers or bools.

#pragma once

template <typename T> constexpr bool is_float = false;
template <> constexpr bool is_float<float> = true;
template <> constexpr bool is_float<double> = true;

// Integers are added, subtracted and multiplied modulo 2^bits, as in numpy.  The overflow of signed
// integers is undefined in C++, that of unsigned ones is not, and the low bits are the same.
template <typename T>
__device__ __forceinline__ unsigned long long modular(T x)
{
    return static_cast<unsigned long long>(x);
}
