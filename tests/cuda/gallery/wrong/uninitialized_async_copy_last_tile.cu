// about: one group of cp.async may be under way, and in the last round that is the tile's own
// launch: --kernel reversed_tiles --grid 1 --block 64 --arg "x=rng.random((2,64))"
// launch: --arg "y=empty((2,64))" --arg tiles=2
// expect: uninitialized
#include "async_copy.cuh"

__global__ void reversed_tiles(const float* x, float* y, int tiles) {
    __shared__ float tile[2][64];
    const int t = threadIdx.x;
    cp_async<4>(&tile[0][t], &x[t]);
    cp_async_commit_group();
    for (int n = 0; n < tiles; n++) {
        if (n + 1 < tiles) {
            cp_async<4>(&tile[(n + 1) % 2][t], &x[(n + 1) * 64 + t]);
            cp_async_commit_group();
        }
        cp_async_wait_group<1>();
        __syncthreads();
        y[n * 64 + t] = tile[n % 2][63 - t];  // <- here
        __syncthreads();
    }
}
