// neg, abs, exp, log, sqrt, element by element.
//
// instances: unary_forward<T, Neg>, unary_forward<T, Abs>, unary_forward<T, Exp>,
//            unary_forward<T, Log>, unary_forward<T, Sqrt>, unary_backward<T, Abs>,
//            unary_backward<T, Exp>, unary_backward<T, Log>,
//            unary_backward<T, Sqrt> for T in float, double
// instances: unary_forward<T, Neg>, unary_forward<T, Abs> for T in long long
// instances: unary_forward<bool, Abs>
// operations of unary_forward<T, Exp|Log|Sqrt>: n
// operations of unary_forward: 0
// operations of unary_backward<T, Sqrt>: 2 * n
// operations of unary_backward: n
//
// neg and abs take integers of any width; the host names their types as it needs them.  The
// gradient of neg is neg of the upstream gradient.
//
// A thread owns elements i, i + stride, ... of the flat arrays (a grid-stride loop).
// Grid (min(ceil(n / 256), 1024)), block (256).
// Memory: neighbouring threads touch neighbouring elements, each once: fully coalesced.
// Operations: one function of one element; backward a product or a quotient more.  abs, neg and
// sqrt are bound by memory; exp and log take tens of instructions, the more so in double.
// Deterministic: no two threads write one element.
//
// __launch_bounds__(256, 4): exp of doubles keeps its coefficients in up to 60 registers; without
// the 4, NVRTC gives it 40 and spills the rest.

#include "prelude.cuh"
#include "element_types.cuh"

// `of` is the function; `slope_times` its derivative times gy, from x or y, whichever was saved.

struct Neg {
    template <typename T>
    static __device__ __forceinline__ T of(T x)
    {
        if constexpr (is_float<T>)
            return -x;
        else
            return static_cast<T>(0 - modular(x));
    }
};

struct Abs {
    template <typename T>
    static __device__ __forceinline__ T of(T x)
    {
        if constexpr (is_float<T>)
            return fabs(x);  // -0 becomes 0
        else
            return x < T(0) ? Neg::of(x) : x;
    }

    template <typename T>
    static __device__ __forceinline__ T slope_times(T gy, T x)
    {
        const T sign = x > T(0) ? T(1) : x < T(0) ? T(-1) : x == T(0) ? T(0) : x;
        return sign * gy;
    }
};

struct Exp {
    template <typename T>
    static __device__ __forceinline__ T of(T x)
    {
        return exp(x);
    }

    template <typename T>
    static __device__ __forceinline__ T slope_times(T gy, T y)
    {
        return gy * y;
    }
};

struct Log {
    template <typename T>
    static __device__ __forceinline__ T of(T x)
    {
        return log(x);
    }

    template <typename T>
    static __device__ __forceinline__ T slope_times(T gy, T x)
    {
        return gy / x;
    }
};

struct Sqrt {
    template <typename T>
    static __device__ __forceinline__ T of(T x)
    {
        return sqrt(x);
    }

    template <typename T>
    static __device__ __forceinline__ T slope_times(T gy, T y)
    {
        return gy / y / T(2);
    }
};

// x (n) T in, y (n) T out.
// numpy: y = -x, np.abs(x), np.exp(x), np.log(x), np.sqrt(x)
template <typename T, typename Function>
__global__ void __launch_bounds__(THREADS, 4)
unary_forward(const T* __restrict__ x, T* __restrict__ y, long long n)
{
    for (long long i = first_element(); i < n; i += element_stride())
        y[i] = Function::of(x[i]);
}

// gy (n) T in, saved (n) T in: x for abs and log, y for exp and sqrt; gx (n) T out.
// numpy: gx = np.sign(x) * gy, gy * y, gy / x, gy / y / 2
template <typename T, typename Function>
__global__ void __launch_bounds__(THREADS, 4)
unary_backward(const T* __restrict__ gy, const T* __restrict__ saved, T* __restrict__ gx,
               long long n)
{
    for (long long i = first_element(); i < n; i += element_stride())
        gx[i] = Function::slope_times(gy[i], saved[i]);
}
