// why: one thread of a warp asks for the lock, and fences stand after taking and before giving
// launch: --kernel guarded_sum --grid 4 --block 64 --arg "x=rng.integers(0,9,256)"
// launch: --arg "total=zeros(1)" --arg "lock=zeros(1)"
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
