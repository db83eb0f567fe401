// about: the lanes at the end compare with neighbours that have left
// launch: --kernel peaks --grid 1 --block 32 --arg "x=rng.random(20)" --arg "y=empty(20)" --arg n=20
// expect: warp-sync
__global__ void peaks(const float* x, int* y, int n)
{
    const int t = threadIdx.x;
    if (t >= n) return;
    const unsigned mask = (1u << n) - 1;
    const float next = __shfl_down_sync(mask, x[t], 1);  // <- here
    if (x[t] > next)
        y[t] = 1;
    else
        y[t] = 0;
}
