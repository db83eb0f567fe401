// Random numbers: uniform in [0, 1).
//
// operations of uniform: n
//
// A thread owns blocks b, b + stride, ... of the generator (a grid-stride loop), which are four
// elements each: elements i of the stream with i / 4 == b.
// Grid (min(ceil(blocks / 256), 1024)), block (256); any other grid of one dimension works too.
// Memory: a warp writes 128 neighbours in four requests that take every fourth one: each sector
// is written by several requests, and put together in the cache.  Bound by arithmetic: 20 products
// of 128 bits for 16 bytes of float.
// Deterministic: element i is a function of (seed, stream, step, i) alone, on any grid.

#include "philox.cuh"

// out (n) T out: elements first ... first + n - 1 of the stream (seed, stream, step).  start (2)
// uint64 in or null: the seed, and what is added to the stream, where a graph of launches is
// replayed and draws anew each time.
// numpy: out = (words >> 40) * 2**-24 for float32, (words >> 11) * 2**-53 for float64, with
//        words = philox(seed, stream, step).random_raw(first + n)[first:]
template <typename T>
__global__ void __launch_bounds__(THREADS)
uniform(T* __restrict__ out, long long n, unsigned long long seed, unsigned long long stream,
        unsigned long long step, long long first,
        const unsigned long long* __restrict__ start)
{
    if (start) {
        seed = start[0];
        stream += start[1];
    }
    const long long first_block = first / 4, last_block = (first + n - 1) / 4;
    for (long long b = first_block + first_element(); b <= last_block; b += element_stride()) {
        const FourWords words = philox(seed, stream, step, b);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const long long i = 4 * b + j - first;
            if (i >= 0 && i < n)
                to_uniform(words.word[j], out[i]);
        }
    }
}
