// The error function.
//
// instances: unary_forward|unary_backward<T, Erf> for T in float, double
// operations of unary_forward: n
// operations of unary_backward: 4 * n
//
// numpy: y = erf(x), see ops/elementwise/erf.py; gx = gy * 2 / np.sqrt(np.pi) * np.exp(-x * x)

#include "unary.cuh"

struct Erf {
    FORMULA T of(T x, T, T) { return erf(x); }

    FORMULA T gradient(T gy, T x, T, T)
    {
        return gy * (exp(-(x * x)) * T(1.1283791670955126));  // 2 / sqrt(pi)
    }
};
