// about: a block of 48: the second warp shuffles from sixteen lanes that do not exist
// launch: --kernel warp_sums --grid 1 --block 48 --arg "x=rng.random(48)" --arg "y=empty(2)"
// expect: warp-sync
__global__ void warp_sums(const float *x, float *y)
{
    float v = x[threadIdx.x];
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
        v += __shfl_down_sync(0xffffffff, v, offset);  // <- here
    if (threadIdx.x % warpSize == 0)
        y[threadIdx.x / warpSize] = v;
}
