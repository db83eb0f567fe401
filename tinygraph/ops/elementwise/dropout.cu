// Dropout, forward and backward.
//
// operations of dropout_forward: 2 * n
// operations of dropout_backward: 2 * n
//
// Which thread owns what, grid, block and memory: packs.cuh.
// The mask is kept as one byte for each element.
// Deterministic: the numbers come from a counter (random.cu).

#include "packs.cuh"

// What is dropped is multiplied by 0, not replaced: a NaN or an infinity stays visible.
template <typename T>
__device__ __forceinline__ T masked(T value, bool keep, T scale)
{
    return value * (keep ? T(1) : T(0)) * scale;
}

// x (n) T in, r (n) float in: uniform in [0, 1), keep (n) bool out or null: for backward,
// y (n) T out.  scale is 1 / (1 - p).
// numpy: keep = r >= p; y = x * keep * scale
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
dropout_forward(const T* __restrict__ x, const float* __restrict__ r, bool* __restrict__ keep,
                T* __restrict__ y, long long n, float p, T scale)
{
    const auto drop = [=](T in, float number, T& out, bool& kept) {
        kept = number >= p;
        out = masked(in, kept, scale);
    };
    const auto forget = [=](T in, float number, T& out) {
        bool kept;
        drop(in, number, out, kept);
    };
    if (keep)
        by_packs(n, drop, reads(x), reads(r), writes(y), writes(keep));
    else
        by_packs(n, forget, reads(x), reads(r), writes(y));
}

// gy (n) T in, keep (n) bool in, gx (n) T out.
// numpy: gx = gy * keep * scale
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
dropout_backward(const T* __restrict__ gy, const bool* __restrict__ keep, T* __restrict__ gx,
                 long long n, T scale)
{
    const auto drop = [=](T g, bool kept, T& out) { out = masked(g, kept, scale); };
    by_packs(n, drop, reads(gy), reads(keep), writes(gx));
}
