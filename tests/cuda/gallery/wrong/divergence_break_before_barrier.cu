// about: a thread that has found its key leaves the loop before the barrier
// launch: --kernel find --grid 1 --block 64 --arg "keys=arange(256)" --arg "at=empty(64)"
// expect: barrier-divergence
#define TILE 64
__global__ void find(const int* keys, int* at) {
    __shared__ int tile[TILE];
    const int t = threadIdx.x, wanted = 3 * t;
    int found = -1;
    for (int base = 0; base < 256; base += TILE) {
        tile[t] = keys[base + t];
        __syncthreads();  // <- here
        for (int k = 0; k < TILE; ++k)
            if (tile[k] == wanted) found = base + k;
        if (found >= 0) break;  // <- here
        __syncthreads();  // <- here
    }
    at[t] = found;
}
