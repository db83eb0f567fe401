// about: a shared counter is raised by atomics but was never set to zero
// launch: --kernel count_even --grid 2 --block 64 --arg v=int32[128]:randint(0,9)
// launch: --arg counts=int32[2]:empty
// expect: uninitialized
extern "C" __global__ void count_even(const int* v, int* counts)
{
    __shared__ int n;
    if (v[blockIdx.x * blockDim.x + threadIdx.x] % 2 == 0)
        atomicAdd(&n, 1);  // <- here
    __syncthreads();
    if (threadIdx.x == 0)
        counts[blockIdx.x] = n;  // <- here
}
