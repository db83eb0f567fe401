// about: float2 loads from a shared array at an odd offset
// launch: --kernel pairs --grid 1 --block 32 --arg "x=rng.random(66)" --arg "y=empty(32)"
// expect: misaligned
__global__ void pairs(const float* x, float* y) {
    __shared__ __align__(16) float s[66];
    for (int i = threadIdx.x; i < 66; i += 32) s[i] = x[i];
    __syncthreads();
    float2 p = *(float2*)&s[2 * threadIdx.x + 1];  // <- here
    y[threadIdx.x] = p.x * p.y;
}
