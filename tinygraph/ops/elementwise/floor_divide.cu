// floor_divide and remainder of operands that broadcast together, and the slope of the latter.
//
// instances: whole<T, FloorDivide>, whole<T, Remainder> for T in float, double, int, long long
// instances: whole<T, MinusQuotient> for T in float, double
// operations of whole: 7 * n  # two less where the rest has the sign of y
//
// Integers of any width do; the host names their types as it needs them.
//
// Which thread owns what, grid and block: the grid-stride loop of prelude.cuh, over z.
// Memory: operands of the shape of z by packs of 16 bytes (packs.cuh).  Else neighbouring threads
// write neighbouring elements of z, and read those of an operand along the axes that it has.
// Operations: a division with its remainder, some dozens of instructions an element.

#include "broadcast.cuh"
#include "element_types.cuh"

template <typename T> struct Whole {
    T quotient, rest;
};

// The quotient rounded down, and the rest, which has the sign of y.  Of integers by 0 both are 0.
template <typename T>
__device__ __forceinline__ Whole<T> divided(T x, T y)
{
    if constexpr (is_float<T>) {
        if (y == T(0))
            return {x / y, fmod(x, y)};
        T rest = fmod(x, y);
        T quotient = (x - rest) / y;
        if (rest != T(0) && (y < T(0)) != (rest < T(0))) {
            rest += y;
            quotient -= T(1);
        }
        const T down = floor(quotient);
        return {quotient - down > T(0.5) ? down + T(1) : down, rest == T(0) ? copysign(rest, y) : rest};
    } else {
        if (y == T(0))
            return {T(0), T(0)};
        if (T(-1) < T(0) && y == T(-1))  // the quotient of the least integer is not one
            return {static_cast<T>(-modular(x)), T(0)};
        const T quotient = x / y, rest = x % y;
        const bool down = rest != T(0) && (y < T(0)) != (rest < T(0));
        return {static_cast<T>(quotient - down), static_cast<T>(down ? rest + y : rest)};
    }
}

struct FloorDivide {
    FORMULA T of(T x, T y) { return divided(x, y).quotient; }
};

struct Remainder {
    FORMULA T of(T x, T y) { return divided(x, y).rest; }
};

struct MinusQuotient {
    FORMULA T of(T x, T y) { return -divided(x, y).quotient; }
};

// x, y T in, of shapes that broadcast to that of z (n) T out.
// numpy: z = x // y, x % y, -(x // y)
template <typename T, typename Operation>
__global__ void __launch_bounds__(THREADS, 2)
whole(const T* __restrict__ x, const T* __restrict__ y, T* __restrict__ z, long long n,
      AXES_PARAMETERS, int x_axes, int y_axes)
{
    const int own[] = {x_axes, y_axes};
    each_element(n, AXES, own, [=](long long i, const long long(&at)[2]) {
        z[i] = Operation::of(x[at[0]], y[at[1]]);
    });
}
