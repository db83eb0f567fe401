// about: the first lane outside of the mask gives the row to read from
// launch: --kernel rows --grid 1 --block 24 --arg "x=rng.random(64)" --arg "start=arange(24)" --arg "y=empty(24)"
// expect: warp-sync
__global__ void rows(const float* x, const int* start, float* y)
{
    int t = threadIdx.x;
    int next = __shfl_down_sync(0x00ffffffu, start[t], 1);  // <- here
    y[t] = x[next];
}
