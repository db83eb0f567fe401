// why: only the first lane's sum is used; what the last lanes get is undefined and thrown away
// launch: --kernel total --grid 3 --block 8 --arg "x=rng.random(24)" --arg "y=empty(3)"
// equals: y = x.reshape(3, 8).sum(axis=1)
__inline__ __device__ float warp_sum(unsigned mask, float v)
{
    for (int o = 4; o > 0; o >>= 1) v += __shfl_down_sync(mask, v, o);
    return v;
}
__global__ void total(const float* x, float* y)
{
    float v = warp_sum(0xffu, x[blockIdx.x * 8 + threadIdx.x]);
    if (threadIdx.x == 0) y[blockIdx.x] = v;
}
