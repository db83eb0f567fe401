// about: the last thread reads one element behind a shared array without a halo
// launch: --kernel smooth --grid 2 --block 128 --arg "in=rng.random(256)"
// launch: --arg "out=empty(256)"
// expect: out-of-bounds
#define BLOCK 128

__global__ void smooth(const float* in, float* out) {
    __shared__ float s[BLOCK];
    const int t = threadIdx.x;
    const int g = blockIdx.x * BLOCK + t;
    s[t] = in[g];
    __syncthreads();
    out[g] = 0.5f * (s[t] + s[t + 1]);  // <- here
}
