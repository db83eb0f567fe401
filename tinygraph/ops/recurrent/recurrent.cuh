// One step of a layer of recurrent cells, forward and backward (ops/recurrent/recurrent.py).
//
// A cell is a struct with
//
//     GATES, STATES, KEPT     how many numbers of each kind a unit has
//     forward(i, h, before, after, kept)          from what input and state give to its gates
//     backward(kept, before, after, g, gi, gh)    g: in, the gradient of the state after the step;
//                                                 out, what it passes on to the state before
//
// gi, gh   (N, GATES * H): one gate after the other in each row       kept   (N, KEPT * H), likewise
// h, c     (N, H), c for cells of two states; null pointers for the others
//
// A thread owns units, grid and block: the grid-stride loop of prelude.cuh.
// Memory: neighbouring threads touch neighbouring units of a gate: coalesced.
// Deterministic: no two threads write one element.

#pragma once

#include "logistic.cuh"

// gi, gh in; bias (GATES * H) in, may be null; h, c in; h_after, c_after out; kept out, may be null.
template <typename T, typename Cell>
__global__ void __launch_bounds__(THREADS, 2)
recurrent_forward(const T* __restrict__ gi, const T* __restrict__ gh, const T* __restrict__ bias,
                  const T* __restrict__ h, const T* __restrict__ c, T* __restrict__ h_after,
                  T* __restrict__ c_after, T* __restrict__ kept, long long n, long long units)
{
    for (long long at = first_element(); at < n; at += element_stride()) {
        const long long row = at / units, unit = at - row * units;
        T from_input[Cell::GATES], from_state[Cell::GATES], keep[Cell::KEPT + 1];
#pragma unroll
        for (int k = 0; k < Cell::GATES; ++k) {
            const long long place = (row * Cell::GATES + k) * units + unit;
            from_input[k] = gi[place];
            from_state[k] = gh[place] + (bias ? bias[k * units + unit] : T(0));
        }
        T before[2] = {h[at], T(0)}, after[2];
        if (Cell::STATES == 2)
            before[1] = c[at];
        Cell::forward(from_input, from_state, before, after, keep);
        h_after[at] = after[0];
        if (Cell::STATES == 2)
            c_after[at] = after[1];
        if (kept) {
#pragma unroll
            for (int k = 0; k < Cell::KEPT; ++k)
                kept[(row * Cell::KEPT + k) * units + unit] = keep[k];
        }
    }
}

// gh_after, gc_after (N, H) in: the gradients of the step's own results; through (N, H) in: what the
// gates of the step after gave to h; kept, h, c, h_after, c_after in: what forward read and wrote;
// run_h, run_c (N, H) in and out: what cells passed on; ggi, ggh out, ggh null where they are equal.
template <typename T, typename Cell>
__global__ void __launch_bounds__(THREADS, 2)
recurrent_backward(const T* __restrict__ gh_after, const T* __restrict__ gc_after,
                   const T* __restrict__ through, const T* __restrict__ kept,
                   const T* __restrict__ h, const T* __restrict__ c,
                   const T* __restrict__ h_after, const T* __restrict__ c_after, T* run_h, T* run_c,
                   T* __restrict__ ggi, T* __restrict__ ggh, long long n, long long units)
{
    for (long long at = first_element(); at < n; at += element_stride()) {
        const long long row = at / units, unit = at - row * units;
        T keep[Cell::KEPT + 1], of_input[Cell::GATES], of_state[Cell::GATES];
#pragma unroll
        for (int k = 0; k < Cell::KEPT; ++k)
            keep[k] = kept[(row * Cell::KEPT + k) * units + unit];
        T before[2] = {h[at], T(0)}, after[2] = {h_after[at], T(0)};
        T g[2] = {gh_after[at] + run_h[at] + through[at], T(0)};
        if (Cell::STATES == 2) {
            before[1] = c[at];
            after[1] = c_after[at];
            g[1] = gc_after[at] + run_c[at];
        }
        Cell::backward(keep, before, after, g, of_input, of_state);
        run_h[at] = g[0];
        if (Cell::STATES == 2)
            run_c[at] = g[1];
#pragma unroll
        for (int k = 0; k < Cell::GATES; ++k) {
            const long long place = (row * Cell::GATES + k) * units + unit;
            ggi[place] = of_input[k];
            if (ggh)
                ggh[place] = of_state[k];
        }
    }
}
