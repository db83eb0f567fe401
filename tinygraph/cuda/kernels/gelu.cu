// GELU, forward and backward: x times a gate that opens from 0 to 1.
//
// instances: gelu_forward<T, Normal>, gelu_forward<T, Tanh>, gelu_backward<T, Normal>,
//            gelu_backward<T, Tanh> for T in float, double
// operations of gelu_forward<T, Normal>: 4 * n
// operations of gelu_forward<T, Tanh>: 9 * n
// operations of gelu_backward<T, Normal>: 10 * n
// operations of gelu_backward<T, Tanh>: 19 * n
//
// A thread owns elements i, i + stride, ... of the flat arrays (a grid-stride loop).
// Grid (min(ceil(n / 256), 1024)), block (256); any other grid of one dimension works too.
// Memory: neighbouring threads read and write neighbouring elements, each once: fully coalesced.
// Forward moves 2 elements for one erfc or tanh.  Backward moves 3 and computes the gate again: to
// store it would move 2 elements more, one written by forward and one read by backward.
// Deterministic: no two threads write one element.

#include "prelude.cuh"

// At -40 and below the gate is 0 in float64, at 40 it is 1.  Beyond, x * 0 could be inf * 0.
constexpr int OPEN = 40;

// `of` is the gate; `slope` its derivative, from x and the gate.

// The normal distribution.
struct Normal {
    // erfc, not 1 + erf: where the gate is nearly closed, the sum would lose its digits.
    template <typename T>
    static __device__ __forceinline__ T of(T x)
    {
        return erfc(x * T(-0.7071067811865476)) / T(2);
    }

    template <typename T>
    static __device__ __forceinline__ T slope(T x, T)
    {
        return exp(x * x / T(-2)) * T(0.3989422804014327);  // 1 / sqrt(2 pi)
    }
};

// The hyperbolic tangent of a cubic that is close to it.
struct Tanh {
    template <typename T>
    static __device__ __forceinline__ T of(T x)
    {
        const T u = T(0.7978845608028654) * x * (T(1) + T(0.044715) * x * x);  // sqrt(2 / pi)
        return (T(1) + tanh(u)) / T(2);
    }

    template <typename T>
    static __device__ __forceinline__ T slope(T x, T gate)
    {
        const T du = T(0.7978845608028654) * (T(1) + T(3 * 0.044715) * x * x);
        return T(2) * gate * (T(1) - gate) * du;
    }
};

// x (n) T in, y (n) T out.
// numpy: y = x * gate(x)
template <typename T, typename Gate>
__global__ void __launch_bounds__(THREADS)
gelu_forward(const T* __restrict__ x, T* __restrict__ y, long long n)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T value = x[i] < T(-OPEN) ? T(-OPEN) : x[i];  // this way round NaN stays NaN
        y[i] = value * Gate::of(value);
    }
}

// gy, x (n) T in, gx (n) T out.
// numpy: g = gate(x); gx = gy * (g + x * slope(x, g))
template <typename T, typename Gate>
__global__ void __launch_bounds__(THREADS)
gelu_backward(const T* __restrict__ gy, const T* __restrict__ x, T* __restrict__ gx, long long n)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        T value = x[i] < T(-OPEN) ? T(-OPEN) : x[i];
        value = value > T(OPEN) ? T(OPEN) : value;
        const T gate = Gate::of(value);
        gx[i] = gy[i] * (gate + value * Gate::slope(value, gate));
    }
}
