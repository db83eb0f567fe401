// about: each thread halves its number until it is odd, with a barrier in the loop
// launch: --kernel halve --grid 1 --block 32 --arg "x=1+arange(32)" --arg "y=empty(32)"
// expect: barrier-divergence
__global__ void halve(const int* x, int* y)
{
    int v = x[threadIdx.x];
    while (v % 2 == 0) {
        v /= 2;
        __syncthreads();  // <- here
    }
    y[threadIdx.x] = v;
}
