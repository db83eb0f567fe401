// GELU: x times a gate that opens from 0 to 1.
//
// instances: unary_forward<T, Gelu<Normal>>, unary_forward<T, Gelu<Tanh>>,
//            unary_backward<T, Gelu<Normal>>, unary_backward<T, Gelu<Tanh>> for T in float, double
// operations of unary_forward<T, Gelu<Normal>>: 4 * n
// operations of unary_forward<T, Gelu<Tanh>>: 9 * n
// operations of unary_backward<T, Gelu<Normal>>: 10 * n
// operations of unary_backward<T, Gelu<Tanh>>: 19 * n
//
// Backward computes the gate again: to store it would move 2 elements more, one written by forward
// and one read by backward.
//
// numpy: g = gate(x); y = x * g; gx = gy * (g + x * slope(x, g))

#include "unary.cuh"

// At -40 and below the gate is 0 in float64, at 40 it is 1.  Beyond, x * 0 could be inf * 0.
constexpr int OPEN = 40;

// `of` is the gate; `slope` its derivative, from x and the gate.

// The normal distribution.
struct Normal {
    // erfc, not 1 + erf: where the gate is nearly closed, the sum would lose its digits.
    FORMULA T of(T x) { return erfc(x * T(-0.7071067811865476)) / T(2); }
    FORMULA T slope(T x, T) { return exp(x * x / T(-2)) * T(0.3989422804014327); }  // 1 / sqrt(2 pi)
};

// The hyperbolic tangent of a cubic that is close to it.
struct Tanh {
    FORMULA T of(T x)
    {
        const T u = T(0.7978845608028654) * x * (T(1) + T(0.044715) * x * x);  // sqrt(2 / pi)
        return (T(1) + tanh(u)) / T(2);
    }

    FORMULA T slope(T x, T gate)
    {
        const T du = T(0.7978845608028654) * (T(1) + T(3 * 0.044715) * x * x);
        return T(2) * gate * (T(1) - gate) * du;
    }
};

template <typename Gate>
struct Gelu {
    FORMULA T of(T x, T, T)
    {
        const T value = x < T(-OPEN) ? T(-OPEN) : x;  // this way round NaN stays NaN
        return value * Gate::of(value);
    }

    FORMULA T gradient(T gy, T x, T, T)
    {
        T value = x < T(-OPEN) ? T(-OPEN) : x;
        value = value > T(OPEN) ? T(OPEN) : value;
        const T gate = Gate::of(value);
        return gy * (gate + value * Gate::slope(value, gate));
    }
};
