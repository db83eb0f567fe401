// about: a producer warp raises a volatile flag without a fence after writing its data
// launch: --kernel handoff --grid 1 --block 64 --arg "x=rng.random(32)" --arg "y=empty(32)"
// expect: race
__global__ void handoff(const float* x, float* y)
{
    __shared__ float box[32];
    __shared__ volatile int ready[32];
    int lane = threadIdx.x & 31;
    if (threadIdx.x < 32) ready[lane] = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        box[lane] = 2.0f * x[lane];  // <- here
        ready[lane] = 1;
    } else {
        while (ready[lane] == 0) { }
        y[lane] = box[lane];  // <- here
    }
}
