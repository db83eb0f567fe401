// ELU, SELU, CELU.
//
// instances: unary_forward|unary_backward<T, Elu|Celu> for T in float, double
// operations of unary_forward<T, Elu>: 3 * n  # less where x > 0
// operations of unary_forward: 3 * n  # none where x > 0
// operations of unary_backward<T, Elu>: 4 * n  # less where x > 0
// operations of unary_backward: 3 * n  # none where x > 0
//
// numpy: y = scale * np.where(x > 0, x, alpha * np.expm1(x))
//        gx = gy * scale * np.where(x > 0, 1, alpha * np.exp(x))
//        CELU: x / alpha in the exponentials, which makes the slope np.where(x > 0, 1, np.exp(x / alpha))

#include "unary.cuh"

struct Elu {
    // exp(x) - 1 would lose digits near 0.
    FORMULA T of(T x, T alpha, T scale) { return scale * (x > T(0) ? x : alpha * expm1(x)); }

    FORMULA T gradient(T gy, T x, T alpha, T scale)
    {
        return gy * (x > T(0) ? scale : scale * (alpha * exp(x)));
    }
};

struct Celu {
    FORMULA T of(T x, T alpha, T) { return x > T(0) ? x : alpha * expm1(x / alpha); }
    FORMULA T gradient(T gy, T x, T alpha, T) { return x > T(0) ? gy : gy * exp(x / alpha); }
};
