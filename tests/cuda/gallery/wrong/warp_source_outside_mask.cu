// about: eight lanes shuffle among themselves, but the upper four read from lanes outside the mask
// launch: --kernel sum8 --grid 1 --block 32 --arg "x=rng.random(32)" --arg "y=empty(8)"
// expect: warp-sync
__global__ void sum8(const float* x, float* y)
{
    unsigned lane = threadIdx.x % 32;
    if (lane < 8) {
        float v = x[lane];
        v += __shfl_down_sync(0x000000ffu, v, 4);  // <- here
        y[lane] = v;
    }
}
