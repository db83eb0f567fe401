// about: atomicMax into an output that holds no lowest value yet
// launch: --kernel column_max --grid 4 --block 32 --arg m=int32[4,32]:randint(0,100)
// launch: --arg top=int32[32]:empty
// expect: uninitialized
__global__ void column_max(const int *m, int *top)
{
    atomicMax(&top[threadIdx.x], m[blockIdx.x * 32 + threadIdx.x]);  // <- here
}
