// why: lanes below the offset keep their own value; all lanes call, also in a block of 96
// launch: --kernel segment_scan --grid 2 --block 96 --arg "x=rng.integers(0,100,192)"
// launch: --arg "y=empty(192)"
// equals: y = np.cumsum(x.reshape(6, 32), 1).reshape(192)
__global__ void segment_scan(const int* x, int* y)
{
    int g = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x & 31;
    int v = x[g];
    for (int d = 1; d < 32; d <<= 1) {
        int below = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d) v += below;
    }
    y[g] = v;
}
