// about: a hash of signed numbers
// launch: --kernel bucket --grid 1 --block 32 --arg "x=arange(32)" --arg "y=empty(32)"
// expect: overflow
__global__ void bucket(const int* x, int* y)
{
    int h = (x[threadIdx.x] + 7) * 1103515245;  // <- here
    y[threadIdx.x] = h & 15;
}
