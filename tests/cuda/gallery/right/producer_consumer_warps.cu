// why: flags are volatile, data is fenced before the flag is raised and after it is seen
// launch: --kernel pipeline --grid 2 --block 64 --arg "x=rng.random((2,8,32))"
// launch: --arg "y=empty((2,8,32))" --arg rounds=8
// equals: y = 2 * x[:, :, ::-1]
__global__ void pipeline(const float* x, float* y, int rounds)
{
    __shared__ float slot[32];
    __shared__ volatile int full;
    const int lane = threadIdx.x % 32;
    const bool producer = threadIdx.x < 32;
    if (threadIdx.x == 0) full = 0;
    __syncthreads();
    for (int r = 0; r < rounds; ++r) {
        const int at = (blockIdx.x * rounds + r) * 32 + lane;
        if (producer) {
            while (full != 0) { }
            __threadfence();
            __syncwarp();
            slot[lane] = 2.0f * x[at];
            __syncwarp();
            if (lane == 0) {
                __threadfence();
                full = 1;
            }
            __syncwarp();
        } else {
            while (full != 1) { }
            __threadfence();
            __syncwarp();
            y[at] = slot[31 - lane];
            __syncwarp();
            if (lane == 0) {
                __threadfence();
                full = 0;
            }
            __syncwarp();
        }
    }
}
