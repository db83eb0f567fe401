// about: two cases of a switch synchronise, the third does not
// launch: --kernel roles --grid 1 --block 96 --arg "x=arange(96)" --arg "y=empty(96)"
// expect: barrier-divergence
__global__ void roles(const int *x, int *y)
{
    int t = threadIdx.x, v = x[t];
    switch (t / 32) {
    case 0:
        v += 1;
        __syncthreads();  // <- here
        break;
    case 1:
        v += 2;
        __syncthreads();  // <- here
        break;
    default:
        v += 3;
    }
    y[t] = v;
}
