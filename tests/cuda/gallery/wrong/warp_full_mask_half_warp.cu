// about: half a warp shuffles with the mask of the whole warp, the other half goes on to a vote
// launch: --kernel half_sum --grid 1 --block 32 --arg "x=rng.random(32)" --arg "y=empty(32)"
// expect: warp-sync
__global__ void half_sum(const float* x, float* y)
{
    int lane = threadIdx.x;
    float v = x[lane];
    if (lane < 16)
        v += __shfl_down_sync(0xffffffff, v, 8, 16);  // <- here
    int positive = __all_sync(0xffffffff, v >= 0.0f);  // <- here
    y[lane] = positive ? v : 0.0f;
}
