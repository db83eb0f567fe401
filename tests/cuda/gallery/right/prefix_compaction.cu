// why: a scan of the flags in shared memory gives each kept element its own place
// launch: --kernel keep_even --grid 1 --block 128 --arg "x=rng.integers(0,1000,128)"
// launch: --arg "y=inout(full(128,-1))" --arg "kept=empty(1)"
// equals: y = np.concatenate([x[x % 2 == 0], np.full((x % 2 == 1).sum(), -1)])
__global__ void keep_even(const int* x, int* y, int* kept) {
    __shared__ unsigned short place[128];
    const int t = threadIdx.x;
    const int even = x[t] % 2 == 0;
    place[t] = even;
    __syncthreads();
    for (int d = 1; d < 128; d *= 2) {
        const unsigned short left = t >= d ? place[t - d] : 0;
        __syncthreads();
        place[t] += left;
        __syncthreads();
    }
    if (even) y[place[t] - 1] = x[t];
    if (t == 127) *kept = place[127];
}
