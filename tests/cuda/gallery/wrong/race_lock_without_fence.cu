// about: a spin lock by atomicCAS / atomicExch guards plain data, but nothing fences the data
// launch: --kernel guarded_sum --grid 4 --block 32 --arg "x=rng.random(128)"
// launch: --arg "total=zeros(1)" --arg "lock=zeros(1)"
// expect: race
__global__ void guarded_sum(const float* x, float* total, int* lock)
{
    float v = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int d = 16; d; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) { }
        *total = *total + v;  // <- here
        atomicExch(lock, 0);
    }
}
