// about: half of a warp votes with the mask of the whole
// launch: --kernel vote --grid 1 --block 32 --arg "x=rng.random(32)" --arg "y=inout(zeros(32))"
// expect: warp-sync, deadlock
// also: barrier-divergence
__global__ void vote(const float* x, int* y)
{
    int t = threadIdx.x;
    if (t < 16) {
        unsigned large = __ballot_sync(0xffffffffu, x[t] > 0.5f);  // <- here
        y[t] = __popc(large);
    } else {
        __syncthreads();  // <- here
    }
}
