// Tanh.
//
// instances: unary_forward<T, Tanh>, unary_backward<T, Tanh> for T in float, double
// operations of unary_forward: n
// operations of unary_backward: 3 * n
//
// numpy: y = np.tanh(x); gx = gy * (1 - y**2)

#include "unary.cuh"

struct Tanh {
    FORMULA T of(T x, T, T) { return tanh(x); }
    FORMULA T gradient(T gy, T y, T, T) { return gy * (T(1) - y * y); }
};
