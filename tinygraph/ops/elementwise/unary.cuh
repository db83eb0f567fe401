// Functions of one number, element by element: the two kernels of all of them.
//
// A function is a struct in the .cu file of its op, with two members:
//
//     of(x, a, b)                   y
//     gradient(gy, kept, a, b)      gx = gy * dy/dx; kept is x or y, whichever forward has kept
//
// a and b are its hyper-parameters, 0 where it has none.  The file of the op names its instances and
// its operations; ops/elementwise/unary.py launches them.
//
// Which thread owns what, grid, block and memory: packs.cuh.
// Forward moves 2, backward 3 elements: what takes no exponential is bound by memory.
//
// __launch_bounds__(256, 2): exp of doubles keeps its coefficients in up to 60 registers, and two packs
// of them are on the way; left to itself, NVRTC gives it 40 and spills the rest.

#pragma once

#include "packs.cuh"

// A function that is flat between its jumps has its gradient from here.
struct Flat {
    FORMULA T gradient(T, T, T, T) { return T(0); }
};

// x (n) T in, y (n) T out.
template <typename T, typename Function>
__global__ void __launch_bounds__(THREADS, 2)
unary_forward(const T* __restrict__ x, T* __restrict__ y, long long n, T a, T b)
{
    by_packs(n, [=](T in, T& out) { out = Function::of(in, a, b); }, reads(x), writes(y));
}

// gy, kept (n) T in, gx (n) T out.
template <typename T, typename Function>
__global__ void __launch_bounds__(THREADS, 2)
unary_backward(const T* __restrict__ gy, const T* __restrict__ kept, T* __restrict__ gx,
               long long n, T a, T b)
{
    const auto gradient = [=](T g, T x_or_y, T& out) { out = Function::gradient(g, x_or_y, a, b); };
    by_packs(n, gradient, reads(gy), reads(kept), writes(gx));
}
