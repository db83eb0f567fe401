// about: a block of 40: the last eight lanes add lanes that do not exist, and keep the result
// launch: --kernel sums --grid 1 --block 40 --arg "x=rng.random(40)" --arg "y=empty(40)"
// expect: warp-sync
__global__ void sums(const float* x, float* y)
{
    float v = x[threadIdx.x];
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);  // <- here
    y[threadIdx.x] = v;
}
