// about: a const input is normalised in place through a cast
// launch: --kernel normalise --grid 1 --block 32 --arg "x=rng.random(32)" --arg "y=empty(32)"
// expect: read-only-write
__global__ void normalise(const float* x, float* y) {
    float sum = x[threadIdx.x];
    for (int m = 16; m; m >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, m);
    float share = x[threadIdx.x] / sum;
    ((float*)x)[threadIdx.x] = share;  // <- here
    y[threadIdx.x] = 2.0f * share;
}
