// about: an integer mean over a window that is empty at the left edge
// launch: --kernel mean_before --grid 1 --block 32 --arg "x=arange(32)" --arg "y=empty(32)"
// expect: arithmetic
__global__ void mean_before(const int* x, int* y)
{
    int t = threadIdx.x, count = t < 4 ? t : 4, sum = 0;
    for (int k = 1; k <= count; k++) sum += x[t - k];
    y[t] = sum / count;  // <- here
}
