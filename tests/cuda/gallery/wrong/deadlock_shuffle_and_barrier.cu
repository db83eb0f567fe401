// about: a shuffle waits for lanes that wait at a barrier for the shuffling lanes
// launch: --kernel half_then_all --grid 1 --block 32 --arg "x=rng.random(32)"
// launch: --arg "y=empty(32)"
// expect: deadlock, warp-sync
__global__ void half_then_all(const float* x, float* y)
{
    float v = x[threadIdx.x];
    if (threadIdx.x < 16)
        v += __shfl_xor_sync(0xffffffffu, v, 1);  // <- here
    __syncthreads();  // <- here
    y[threadIdx.x] = v;
}
