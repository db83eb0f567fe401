// about: atomicMax into an output that holds no lowest value yet
// launch: --kernel column_max --grid 4 --block 32 --arg "m=rng.integers(0,100,(4,32))"
// launch: --arg "top=empty(32)"
// expect: uninitialized
__global__ void column_max(const int *m, int *top)
{
    atomicMax(&top[threadIdx.x], m[blockIdx.x * 32 + threadIdx.x]);  // <- here
}
