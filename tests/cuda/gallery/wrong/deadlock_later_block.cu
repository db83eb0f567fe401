// about: block 0 waits for a sum that the last block hands over: it may not run before block 0 ends
// launch: --kernel sum_from_the_end --grid 3 --block 32 --arg "x=arange(96)" --arg "sum=zeros(4)"
// launch: --arg "flag=zeros(4)"
// expect: deadlock
__global__ void sum_from_the_end(const int* x, int* sum, int* flag)
{
    const int b = blockIdx.x, last = gridDim.x - 1;
    int part = __reduce_add_sync(0xffffffffu, x[32 * b + threadIdx.x]);
    if (threadIdx.x > 0) return;
    if (b < last) {
        while (atomicAdd(&flag[b + 1], 0) == 0) { }  // <- here
        __threadfence();
        part += sum[b + 1];
    }
    sum[b] = part;
    __threadfence();
    atomicExch(&flag[b], 1);
}
