// What depends on whether elements are floats, integers or bools.

#pragma once

template <typename T> constexpr bool is_float = false;
template <> constexpr bool is_float<float> = true;
template <> constexpr bool is_float<double> = true;

// What to add, subtract and multiply in the place of x.  Integers wrap around, as in numpy: the
// overflow of signed ones is undefined in C++, that of unsigned ones is not, and the low bits are
// the same.  A float stays as it is.
template <typename T>
__device__ __forceinline__ auto modular(T x)
{
    if constexpr (is_float<T>)
        return x;
    else
        return static_cast<unsigned long long>(x);
}
