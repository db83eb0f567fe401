// sign, floor, ceil, trunc, round.
//
// instances: unary_forward|unary_backward<T, Sign|Floor|Ceil|Trunc|Round> for T in float, double
// instances: unary_forward<T, Sign> for T in long long
// operations of unary_forward: 0
// operations of unary_backward: 0
//
// sign takes integers of any width; the host names their types as it needs them.
//
// numpy: y = np.sign(x), np.floor(x), np.ceil(x), np.trunc(x), np.rint(x); gx = 0

#include "unary.cuh"

struct Sign : Flat {
    FORMULA T of(T x, T, T)
    {
        // What is not 0, and neither above nor below, is NaN.
        return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == T(0) ? T(0) : x;
    }
};

struct Floor : Flat {
    FORMULA T of(T x, T, T) { return floor(x); }
};

struct Ceil : Flat {
    FORMULA T of(T x, T, T) { return ceil(x); }
};

struct Trunc : Flat {
    FORMULA T of(T x, T, T) { return trunc(x); }
};

struct Round : Flat {
    FORMULA T of(T x, T, T) { return rint(x); }  // of two, the even one
};
