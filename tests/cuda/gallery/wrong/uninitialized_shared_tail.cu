// about: the tail of a shared tile is not filled with zeros, yet it is summed
// launch: --kernel sum_blocks --grid 2 --block 128 --arg "x=rng.random(200)"
// launch: --arg "y=empty(2)" --arg n=200
// expect: uninitialized
__global__ void sum_blocks(const float* x, float* y, int n) {
    __shared__ float s[128];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    if (i < n)
        s[t] = x[i];
    __syncthreads();
    for (int h = 64; h > 0; h /= 2) {
        if (t < h)
            s[t] += s[t + h];  // <- here
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
