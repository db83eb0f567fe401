// about: even and odd lanes call two different shuffles, each with the full mask
// launch: --kernel swap_pairs --grid 1 --block 32 --arg "x=rng.random(32)"
// launch: --arg "y=empty(32)"
// expect: warp-sync
__global__ void swap_pairs(const float* x, float* y) {
    int lane = threadIdx.x;
    float v = x[lane], w;
    if (lane & 1) {
        w = __shfl_up_sync(0xffffffffu, v, 1);  // <- here
    } else {
        w = __shfl_down_sync(0xffffffffu, v, 1);  // <- here
    }
    y[lane] = v + w;
}
