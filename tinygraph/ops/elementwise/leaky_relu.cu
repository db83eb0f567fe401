// Leaky ReLU.
//
// instances: unary_forward<T, LeakyRelu>, unary_backward<T, LeakyRelu> for T in float, double
// operations of unary_forward: n  # none where x > 0
// operations of unary_backward: n  # none where x > 0
//
// numpy: y = np.where(x > 0, x, slope * x); gx = np.where(x > 0, gy, slope * gy)

#include "unary.cuh"

struct LeakyRelu {
    FORMULA T of(T x, T slope, T) { return x > T(0) ? x : slope * x; }
    FORMULA T gradient(T gy, T x, T slope, T) { return x > T(0) ? gy : slope * gy; }
};
