// why: a block waits for the flag of the block before it only; data is fenced on both sides
// launch: --kernel chained_scan --grid 5 --block 32 --arg "x=rng.integers(0,50,160)"
// launch: --arg "y=empty(160)" --arg "carry=zeros(5)" --arg "flag=zeros(5)"
// equals: y = np.cumsum(x)
__global__ void chained_scan(const int* x, int* y, int* carry, volatile int* flag)
{
    const int lane = threadIdx.x, g = blockIdx.x * 32 + lane;
    int v = x[g];
    for (int d = 1; d < 32; d *= 2) {
        int below = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d) v += below;
    }
    int before = 0;
    if (lane == 31) {
        if (blockIdx.x > 0) {
            while (flag[blockIdx.x - 1] == 0) { }
            __threadfence();
            before = carry[blockIdx.x - 1];
        }
        carry[blockIdx.x] = before + v;
        __threadfence();
        flag[blockIdx.x] = 1;
    }
    before = __shfl_sync(0xffffffffu, before, 31);
    y[g] = before + v;
}
