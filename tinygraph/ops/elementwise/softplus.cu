// Softplus.
//
// instances: unary_forward<T, Softplus>, unary_backward<T, Softplus> for T in float, double
// operations of unary_forward: 5 * n  # less above the threshold
// operations of unary_backward: 5 * n  # less above the threshold
//
// numpy: z = beta * x; y = np.where(z > threshold, x, np.log1p(np.exp(z)) / beta)
//        gx = np.where(z > threshold, gy, gy / (1 + np.exp(-z)))

#include "logistic.cuh"
#include "unary.cuh"

struct Softplus {
    FORMULA T of(T x, T beta, T threshold)
    {
        const T z = beta * x;
        // A NaN is not above the threshold, and comes through the tail.
        return z > threshold ? x : (x > T(0) ? x : T(0)) + softplus_tail(z) / beta;
    }

    FORMULA T gradient(T gy, T x, T beta, T threshold)
    {
        const T z = beta * x;
        return z > threshold ? gy : gy * logistic(z);
    }
};
