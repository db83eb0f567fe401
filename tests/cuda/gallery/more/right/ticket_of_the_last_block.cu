// why: the last block adds what the others left; fence, ticket, fence
// launch: --kernel total --grid 4 --block 32 --arg "x=arange(128)" --arg "part=empty(4)" --arg "ticket=zeros(1)" --arg "y=empty(1)"
// equals: y = np.array([x.sum()])
__global__ void total(const int* x, int* part, unsigned* ticket, int* y)
{
    int sum = __reduce_add_sync(0xffffffffu, x[blockIdx.x * 32 + threadIdx.x]);
    if (threadIdx.x) return;
    part[blockIdx.x] = sum;
    __threadfence();
    if (atomicInc(ticket, gridDim.x - 1) != gridDim.x - 1) return;
    __threadfence();
    int all = 0;
    for (unsigned b = 0; b < gridDim.x; b++) all += part[b];
    y[0] = all;
}
