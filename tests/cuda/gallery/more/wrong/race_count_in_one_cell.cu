// about: every thread adds to the block's counter in shared memory
// launch: --kernel count --grid 1 --block 64 --arg "x=rng.random(64)" --arg "y=empty(1)"
// expect: race
__global__ void count(const float* x, int* y)
{
    __shared__ int n;
    if (threadIdx.x == 0) n = 0;
    __syncthreads();
    if (x[threadIdx.x] > 0.25f) n++;  // <- here
    __syncthreads();
    if (threadIdx.x == 0) y[0] = n;
}
