// about: a grid-stride loop steps by twice the size of the grid
// launch: --kernel negate --grid 2 --block 64 --arg x=int32[1024]:arange --arg y=int32[1024]:empty
// launch: --arg n=1024
// expect: unwritten-output
// array: y
__global__ void negate(const int* x, int* y, int n)
{
    int step = 2 * gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        y[i] = -x[i];
}
