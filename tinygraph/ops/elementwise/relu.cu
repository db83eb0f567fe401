// ReLU.
//
// instances: unary_forward<T, Relu>, unary_backward<T, Relu> for T in float, double
// instances: unary_forward<T, Relu> for T in long long
// operations of unary_forward: 0
// operations of unary_backward: 0
//
// Integers of any width do too, forward; the host names their types as it needs them.
//
// numpy: y = np.where(x <= 0, 0, x); gx = np.where(y != 0, gy, 0)

#include "unary.cuh"

struct Relu {
    // This way round NaN stays NaN, and -0 becomes 0.
    FORMULA T of(T x, T, T) { return x <= T(0) ? T(0) : x; }
    FORMULA T gradient(T gy, T y, T, T) { return y != T(0) ? gy : T(0); }
};
