// Functions of one number: neg, abs, square, sqrt, rsqrt, reciprocal, exp, expm1, log, log1p, log2, sin, cos.
//
// instances: unary_forward|unary_backward<T, Neg|Abs|Square|Sqrt|Rsqrt|Reciprocal> for T in float, double
// instances: unary_forward|unary_backward<T, Exp|Expm1|Log|Log1p|Log2|Sin|Cos> for T in float, double
// instances: unary_forward<T, Neg|Abs|Square> for T in long long
// instances: unary_forward<bool, Abs>
// operations of unary_forward<T, Neg|Abs>: 0
// operations of unary_forward<T, Rsqrt>: 2 * n
// operations of unary_forward: n
// operations of unary_backward<T, Neg>: 0
// operations of unary_backward<T, Abs|Exp|Log>: n
// operations of unary_backward<T, Rsqrt>: 4 * n
// operations of unary_backward: 2 * n
//
// neg, abs and square take integers of any width; the host names their types as it needs them.
//
// numpy: y as in ops/elementwise/elementwise.py, with np.exp, np.log, ...; the gradients as they stand there

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

struct Square {
    FORMULA T of(T x, T, T) { return static_cast<T>(modular(x) * modular(x)); }
    FORMULA T gradient(T gy, T x, T, T) { return gy * x * T(2); }
};

struct Sqrt {
    FORMULA T of(T x, T, T) { return sqrt(x); }
    FORMULA T gradient(T gy, T y, T, T) { return gy / y / T(2); }
};

struct Rsqrt {
    FORMULA T of(T x, T, T) { return T(1) / sqrt(x); }
    FORMULA T gradient(T gy, T y, T, T) { return y * y * y / T(-2) * gy; }
};

struct Reciprocal {
    FORMULA T of(T x, T, T) { return T(1) / x; }
    FORMULA T gradient(T gy, T y, T, T) { return -(y * y) * gy; }
};

struct Exp {
    FORMULA T of(T x, T, T) { return exp(x); }
    FORMULA T gradient(T gy, T y, T, T) { return gy * y; }
};

struct Expm1 {
    FORMULA T of(T x, T, T) { return expm1(x); }
    FORMULA T gradient(T gy, T x, T, T) { return gy * exp(x); }
};

struct Log {
    FORMULA T of(T x, T, T) { return log(x); }
    FORMULA T gradient(T gy, T x, T, T) { return gy / x; }
};

struct Log1p {
    FORMULA T of(T x, T, T) { return log1p(x); }
    FORMULA T gradient(T gy, T x, T, T) { return gy / (T(1) + x); }
};

struct Log2 {
    FORMULA T of(T x, T, T) { return log2(x); }
    FORMULA T gradient(T gy, T x, T, T) { return gy / (x * T(0.6931471805599453)); }  // ln(2)
};

struct Sin {
    FORMULA T of(T x, T, T) { return sin(x); }
    FORMULA T gradient(T gy, T x, T, T) { return cos(x) * gy; }
};

struct Cos {
    FORMULA T of(T x, T, T) { return cos(x); }
    FORMULA T gradient(T gy, T x, T, T) { return -sin(x) * gy; }
};
