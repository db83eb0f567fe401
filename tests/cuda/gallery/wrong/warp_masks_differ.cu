// about: lanes meet at one vote with two different masks
// launch: --kernel vote --grid 1 --block 32 --arg "x=rng.integers(0,2,32)" --arg "y=empty(32)"
// expect: warp-sync
__global__ void vote(const int* x, int* y)
{
    const int lane = threadIdx.x;
    const unsigned mask = lane < 16 ? 0x0000ffffu : 0xffffffffu;
    y[lane] = __any_sync(mask, x[lane]);  // <- here
}
