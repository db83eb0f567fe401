// why: each thread fences its own store before the barrier; the markers tell the checker of it
// launch: --kernel relay --grid 4 --block 32 --arg "x=rng.random(32)" --arg "cell=zeros(32)"
// launch: --arg "turn=zeros(1)"
// equals: cell = 4 * x
#include "tinygraph_check.cuh"

__global__ void relay(const float* x, float* cell, int* turn)
{
    if (threadIdx.x == 0)
        while (atomicAdd(turn, 0) != (int)blockIdx.x) { }
    __syncthreads();
    __threadfence();
    TG_HAPPENS_AFTER(turn);
    cell[threadIdx.x] += x[threadIdx.x];
    __threadfence();
    TG_HAPPENS_BEFORE(turn);
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(turn, (int)blockIdx.x + 1);
}
