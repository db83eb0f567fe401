// silu, mish, logsigmoid, softsign.
//
// instances: unary_forward|unary_backward<T, Silu|Mish|Logsigmoid|Softsign> for T in float, double
// operations of unary_forward<T, Silu|Logsigmoid>: 3 * n
// operations of unary_forward<T, Mish>: 6 * n
// operations of unary_forward<T, Softsign>: 2 * n
// operations of unary_backward<T, Silu>: 8 * n
// operations of unary_backward<T, Mish>: 12 * n
// operations of unary_backward: 3 * n
//
// numpy: ops/elementwise/smooth_activations.py has the formulas, line by line

#include "logistic.cuh"
#include "unary.cuh"

// exp(-800) is 0 in float64; at 40 tanh(ln(1 + exp(x))) is 1, and exp(2 * x) is no infinity in float32.
constexpr int FAR = 800, HIGH = 40;

// Held between -800 and a bound, where formulas have their limits; NaN stays NaN.
template <typename T>
__device__ __forceinline__ T held(T x, int high)
{
    return x < T(-FAR) ? T(-FAR) : x > T(high) ? T(high) : x;
}

struct Silu {
    FORMULA T of(T x, T, T)
    {
        const T z = x < T(-FAR) ? T(-FAR) : x;
        return z / (T(1) + exp(-z));
    }

    FORMULA T gradient(T gy, T x, T, T)
    {
        const T z = held(x, FAR), s = logistic(z);
        return gy * (s * (T(1) + z * (T(1) - s)));
    }
};

struct Mish {
    FORMULA T of(T x, T, T)
    {
        const T w = exp(held(x, HIGH)), n = w * (w + T(2));
        return (x < T(-FAR) ? T(-FAR) : x) * (n / (n + T(2)));
    }

    FORMULA T gradient(T gy, T x, T, T)
    {
        const T z = held(x, HIGH), w = exp(z), n = w * (w + T(2));
        return gy * ((n + T(4) * w * (w + T(1)) * z / (n + T(2))) / (n + T(2)));
    }
};

struct Logsigmoid {
    FORMULA T of(T x, T, T) { return (x > T(0) ? T(0) : x) - softplus_tail(x); }
    FORMULA T gradient(T gy, T x, T, T) { return gy / (T(1) + exp(x)); }
};

struct Softsign {
    FORMULA T of(T x, T, T) { return x / (T(1) + fabs(x)); }

    FORMULA T gradient(T gy, T x, T, T)
    {
        const T root = T(1) + fabs(x);
        return gy / (root * root);
    }
};
