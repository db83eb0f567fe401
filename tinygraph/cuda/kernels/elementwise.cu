// neg, abs, exp, log, sqrt.
//
// instances: unary_forward<T, Neg>, unary_forward<T, Abs>, unary_forward<T, Exp>,
//            unary_forward<T, Log>, unary_forward<T, Sqrt>, unary_backward<T, Neg>,
//            unary_backward<T, Abs>, unary_backward<T, Exp>, unary_backward<T, Log>,
//            unary_backward<T, Sqrt> for T in float, double
// instances: unary_forward<T, Neg>, unary_forward<T, Abs> for T in long long
// instances: unary_forward<bool, Abs>
// operations of unary_forward<T, Exp|Log|Sqrt>: n
// operations of unary_forward: 0
// operations of unary_backward<T, Neg>: 0
// operations of unary_backward<T, Sqrt>: 2 * n
// operations of unary_backward: n
//
// neg and abs take integers of any width; the host names their types as it needs them.
//
// numpy: y = -x, np.abs(x), np.exp(x), np.log(x), np.sqrt(x)
//        gx = -gy, np.sign(x) * gy, gy * y, gy / x, gy / y / 2

#include "unary.cuh"
#include "element_types.cuh"

struct Neg {
    FORMULA T of(T x, T, T) { return static_cast<T>(-modular(x)); }
    FORMULA T gradient(T gy, T, T, T) { return -gy; }
};

struct Abs {
    FORMULA T of(T x, T, T)
    {
        if constexpr (is_float<T>)
            return fabs(x);  // -0 becomes 0
        else
            return x < T(0) ? static_cast<T>(-modular(x)) : x;
    }

    FORMULA T gradient(T gy, T x, T, T)
    {
        const T sign = x > T(0) ? T(1) : x < T(0) ? T(-1) : x == T(0) ? T(0) : x;
        return sign * gy;
    }
};

struct Exp {
    FORMULA T of(T x, T, T) { return exp(x); }
    FORMULA T gradient(T gy, T y, T, T) { return gy * y; }
};

struct Log {
    FORMULA T of(T x, T, T) { return log(x); }
    FORMULA T gradient(T gy, T x, T, T) { return gy / x; }
};

struct Sqrt {
    FORMULA T of(T x, T, T) { return sqrt(x); }
    FORMULA T gradient(T gy, T y, T, T) { return gy / y / T(2); }
};
