// Sigmoid.
//
// instances: unary_forward<T, Sigmoid>, unary_backward<T, Sigmoid> for T in float, double
// operations of unary_forward: 3 * n
// operations of unary_backward: 3 * n
//
// numpy: y = 1 / (1 + np.exp(-x)); gx = gy * (y * (1 - y))

#include "logistic.cuh"
#include "unary.cuh"

struct Sigmoid {
    FORMULA T of(T x, T, T) { return logistic(x); }
    FORMULA T gradient(T gy, T y, T, T) { return gy * (y * (T(1) - y)); }
};
