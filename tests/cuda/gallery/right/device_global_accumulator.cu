// why: counters at file scope are raised by atomics, and the last block sets them back to zero
// launch: --kernel parity --grid 4 --block 64 --arg "x=rng.integers(0,9,256)"
// launch: --arg "y=empty(2)"
// equals: y = np.bincount(x % 2, minlength=2)
__device__ int totals[2];
__device__ unsigned int blocks_done;

__global__ void parity(const int* x, int* y)
{
    __shared__ int local[2];
    if (threadIdx.x < 2) local[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd_block(&local[x[blockIdx.x * blockDim.x + threadIdx.x] & 1], 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(&totals[0], local[0]);
        atomicAdd(&totals[1], local[1]);
        __threadfence();
        if (atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1) {
            y[0] = atomicExch(&totals[0], 0);
            y[1] = atomicExch(&totals[1], 0);
        }
    }
}
