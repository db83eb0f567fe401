// about: a shuffle between the store and the load is taken for a memory fence
// launch: --kernel neighbour --grid 1 --block 64 --arg "x=rng.random(64)" --arg "y=empty(64)"
// expect: race
__global__ void neighbour(const float* x, float* y)
{
    __shared__ float line[64];
    const int t = threadIdx.x;
    const int lane = t % 32;
    const float v = x[t];
    line[t] = v;  // <- here
    const float sum = v + __shfl_xor_sync(0xffffffffu, v, 1);
    y[t] = sum * line[(t / 32) * 32 + (lane + 5) % 32];  // <- here
}
