// Functions of one number, element by element: the two kernels of all of them.
//
// A function is a struct in the .cu file of its op, with two members:
//
//     of(x, a, b)                   y
//     gradient(gy, kept, a, b)      gx = gy * dy/dx; kept is x or y, whichever forward has kept
//
// a and b are its hyper-parameters, 0 where it has none.  The file of the op names its instances and
// its operations; ops/shared/unary.py launches them.
//
// Which thread owns what, grid, block and memory: the grid-stride loop of prelude.cuh.
// Forward moves 2, backward 3 elements: what takes no exponential is bound by memory.
//
// __launch_bounds__(256, 4): exp of doubles keeps its coefficients in up to 60 registers; without
// the 4, NVRTC gives it 40 and spills the rest.

#pragma once

#include "prelude.cuh"

// x (n) T in, y (n) T out.
template <typename T, typename Function>
__global__ void __launch_bounds__(THREADS, 4)
unary_forward(const T* __restrict__ x, T* __restrict__ y, long long n, T a, T b)
{
    for (long long i = first_element(); i < n; i += element_stride())
        y[i] = Function::of(x[i], a, b);
}

// gy, kept (n) T in, gx (n) T out.
template <typename T, typename Function>
__global__ void __launch_bounds__(THREADS, 4)
unary_backward(const T* __restrict__ gy, const T* __restrict__ kept, T* __restrict__ gx,
               long long n, T a, T b)
{
    for (long long i = first_element(); i < n; i += element_stride())
        gx[i] = Function::gradient(gy[i], kept[i], a, b);
}
