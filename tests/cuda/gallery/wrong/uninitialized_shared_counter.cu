// about: a shared counter is raised by atomics but was never set to zero
// launch: --kernel count_even --grid 2 --block 64 --arg "v=rng.integers(0,9,128)"
// launch: --arg "counts=empty(2)"
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
