// Heaviside's step function.
//
// instances: unary_forward<T, Heaviside>, unary_backward<T, Heaviside> for T in float, double
// operations of unary_forward: 0
// operations of unary_backward: 0
//
// numpy: y = np.heaviside(x, at_zero); gx = 0

#include "unary.cuh"

struct Heaviside : Flat {
    FORMULA T of(T x, T at_zero, T)
    {
        // What is not 0, and neither above nor below, is NaN.
        return x > T(0) ? T(1) : x < T(0) ? T(0) : x == T(0) ? at_zero : x;
    }
};
