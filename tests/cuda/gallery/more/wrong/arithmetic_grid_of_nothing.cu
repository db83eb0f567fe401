// about: the share of each thread is computed with a count that may be zero
// launch: --kernel share --grid 1 --block 8 --arg "x=arange(8)" --arg "y=empty(8)" --arg groups=0
// expect: arithmetic
__global__ void share(const int* x, int* y, int groups)
{
    int each = blockDim.x / groups;  // <- here
    y[threadIdx.x] = x[threadIdx.x] / each;
}
