// why: producer and consumer are in one block, so the fence of the block is enough
// launch: --kernel handoff --grid 2 --block 64 --arg "x=rng.random((2,32))"
// launch: --arg "y=empty((2,32))"
// equals: y = 2 * x
__global__ void handoff(const float* x, float* y)
{
    __shared__ float box[32];
    __shared__ volatile int ready[32];
    int lane = threadIdx.x & 31, at = blockIdx.x * 32 + lane;
    if (threadIdx.x < 32) ready[lane] = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        box[lane] = 2.0f * x[at];
        __threadfence_block();
        ready[lane] = 1;
    } else {
        while (ready[lane] == 0) { }
        __threadfence_block();
        y[at] = box[lane];
    }
}
