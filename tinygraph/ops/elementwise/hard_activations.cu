// hardtanh (relu6), hardsigmoid, hardswish.
//
// instances: unary_forward|unary_backward<T, Hardtanh|Hardsigmoid|Hardswish> for T in float, double
// instances: unary_forward<T, Hardtanh> for T in long long
// operations of unary_forward<T, Hardtanh>: 0
// operations of unary_forward<T, Hardsigmoid>: 2 * n
// operations of unary_forward: 3 * n
// operations of unary_backward<T, Hardtanh>: 0
// operations of unary_backward<T, Hardsigmoid>: n  # none outside
// operations of unary_backward: 3 * n  # none outside
//
// hardtanh takes integers of any width, forward; the host names their types as it needs them.
//
// numpy: y = np.clip(x, low, high), np.clip(x + 3, 0, 6) / 6, x * np.clip(x + 3, 0, 6) / 6
//        gx = np.where((y == low) | (y == high), 0, gy), np.where((y == 0) | (y == 1), 0, gy / 6),
//             np.where(x <= -3, 0, np.where(x >= 3, gy, gy * (x / 3 + 0.5)))

#include "unary.cuh"

// This way round NaN stays NaN.
template <typename T>
__device__ __forceinline__ T clamped(T x, T low, T high)
{
    return x <= low ? low : x >= high ? high : x;
}

struct Hardtanh {
    FORMULA T of(T x, T low, T high) { return clamped(x, low, high); }

    FORMULA T gradient(T gy, T y, T low, T high)
    {
        return y == low || y == high ? T(0) : gy;
    }
};

struct Hardsigmoid {
    FORMULA T of(T x, T, T) { return clamped(x + T(3), T(0), T(6)) / T(6); }

    FORMULA T gradient(T gy, T y, T, T)
    {
        return y == T(0) || y == T(1) ? T(0) : gy / T(6);
    }
};

struct Hardswish {
    FORMULA T of(T x, T, T)
    {
        const T value = x < T(-3) ? T(-3) : x;  // -inf * 0 would be NaN
        return value * (clamped(x + T(3), T(0), T(6)) / T(6));
    }

    FORMULA T gradient(T gy, T x, T, T)
    {
        return x <= T(-3) ? T(0) : x >= T(3) ? gy : gy * (x / T(3) + T(0.5));
    }
};
