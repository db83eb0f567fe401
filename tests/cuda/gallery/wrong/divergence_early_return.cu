// about: threads past the end return before the barriers that the rest of the block waits at
// launch: --kernel block_sum --grid 3 --block 128 --arg "x=rng.random(300)"
// launch: --arg "y=empty(3)" --arg n=300
// expect: barrier-divergence
// also: uninitialized
__global__ void block_sum(const float* x, float* y, int n) {
    __shared__ float s[128];
    int t = threadIdx.x;
    int i = blockIdx.x * 128 + t;
    if (i >= n) return;  // <- here
    s[t] = x[i];
    __syncthreads();  // <- here
    for (int h = 64; h > 0; h >>= 1) {
        if (t < h) s[t] += s[t + h];
        __syncthreads();  // <- here
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
