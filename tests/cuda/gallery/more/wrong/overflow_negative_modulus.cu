// about: the remainder of the smallest int is made positive by a minus
// launch: --kernel distance --grid 1 --block 4 --arg "x=array([-2147483648,5,-7,9])" --arg "y=empty(4)"
// expect: overflow
__global__ void distance(const int* x, int* y)
{
    int v = x[threadIdx.x];
    y[threadIdx.x] = v < 0 ? -v : v;  // <- here
}
