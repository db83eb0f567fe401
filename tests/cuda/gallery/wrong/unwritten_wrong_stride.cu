// about: a grid-stride loop steps by twice the size of the grid
// launch: --kernel negate --grid 2 --block 64 --arg "x=arange(1024)" --arg "y=empty(1024)"
// launch: --arg n=1024
// expect: unwritten-output
// array: y
__global__ void negate(const int* x, int* y, int n)
{
    int step = 2 * gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        y[i] = -x[i];
}
