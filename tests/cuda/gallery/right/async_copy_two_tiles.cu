// why: a group is closed in each round, an empty one at last, so at most one lies after the tile's
// launch: --kernel "reversed_tiles<64>" --grid 2 --block 64 --arg "x=rng.random((2,5,64))"
// launch: --arg "y=empty((2,5,64))" --arg tiles=5
// equals: y = x[:, :, ::-1]
#include "async_copy.cuh"

template <int SIZE>
__global__ void reversed_tiles(const float* x, float* y, int tiles) {
    __shared__ float tile[2][SIZE];
    const int t = threadIdx.x;
    x += blockIdx.x * tiles * SIZE;
    y += blockIdx.x * tiles * SIZE;
    cp_async<4>(&tile[0][t], &x[t]);
    cp_async_commit_group();
    for (int n = 0; n < tiles; n++) {
        if (n + 1 < tiles) cp_async<4>(&tile[(n + 1) % 2][t], &x[(n + 1) * SIZE + t]);
        cp_async_commit_group();
        cp_async_wait_group<1>();
        __syncthreads();
        y[n * SIZE + t] = tile[n % 2][SIZE - 1 - t];
        __syncthreads();
    }
}
