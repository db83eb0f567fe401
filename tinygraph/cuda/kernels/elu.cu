// ELU.
//
// instances: unary_forward<T, Elu>, unary_backward<T, Elu> for T in float, double
// operations of unary_forward: 2 * n  # none where x > 0
// operations of unary_backward: 3 * n  # none where x > 0
//
// numpy: y = np.where(x > 0, x, alpha * np.expm1(x)); gx = np.where(x > 0, gy, gy * alpha * np.exp(x))

#include "unary.cuh"

struct Elu {
    // exp(x) - 1 would lose digits near 0.
    FORMULA T of(T x, T alpha, T) { return x > T(0) ? x : alpha * expm1(x); }
    FORMULA T gradient(T gy, T x, T alpha, T) { return x > T(0) ? gy : gy * (alpha * exp(x)); }
};
