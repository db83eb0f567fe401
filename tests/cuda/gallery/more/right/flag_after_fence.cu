// why: a block hands its sum to the next one: data, fence, flag
// launch: --kernel chain --grid 4 --block 32 --arg "x=arange(128)" --arg "sum=zeros(4)" --arg "flag=zeros(4)"
// equals: sum = np.cumsum(x.reshape(4, 32).sum(axis=1))
__global__ void chain(const int* x, volatile int* sum, volatile int* flag)
{
    int b = blockIdx.x, part = __reduce_add_sync(0xffffffffu, x[b * 32 + threadIdx.x]);
    if (threadIdx.x) return;
    if (b) {
        while (flag[b - 1] == 0) { }
        __threadfence();
        part += sum[b - 1];
    }
    sum[b] = part;
    __threadfence();
    flag[b] = 1;
}
