// about: the mask of the first n lanes is made by a shift, and for all 32 lanes there is none
// launch: --kernel count --grid 1 --block 32 --arg "x=arange(32)" --arg "y=empty(1)" --arg n=32
// expect: arithmetic
__global__ void count(const int* x, int* y, int n)
{
    unsigned first = (1u << n) - 1;  // <- here
    unsigned odd = __ballot_sync(0xffffffffu, x[threadIdx.x] & 1);
    if (threadIdx.x == 0) y[0] = __popc(odd & first);
}
