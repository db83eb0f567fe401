// about: both branches call one helper that holds the barrier
// launch: --kernel two_paths --grid 1 --block 64 --arg "x=rng.random(64)" --arg "y=empty(64)"
// expect: barrier-divergence
__device__ float share(float* s, float v) {
    s[threadIdx.x] = v;
    __syncthreads();  // <- here
    return s[threadIdx.x ^ 1];
}

__global__ void two_paths(const float* x, float* y) {
    __shared__ float s[64];
    float r;
    if (threadIdx.x < 32)
        r = share(s, x[threadIdx.x]);  // <- here
    else
        r = share(s, -x[threadIdx.x]);  // <- here
    y[threadIdx.x] = r;
}
