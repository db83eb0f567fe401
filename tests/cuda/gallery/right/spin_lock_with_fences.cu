// why: one thread of a warp asks for the lock, and fences stand after taking and before giving
// launch: --kernel guarded_sum --grid 4 --block 64 --arg x=int32[256]:randint(0,9)
// launch: --arg total=int32[1]:zeros --arg lock=int32[1]:zeros
// equals: total = x.sum(keepdims=True)
__global__ void guarded_sum(const int* x, int* total, int* lock)
{
    int v = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int d = 16; d; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(lock, 0, 1) != 0) { }
        __threadfence();
        *total = *total + v;
        __threadfence();
        atomicExch(lock, 0);
    }
}
