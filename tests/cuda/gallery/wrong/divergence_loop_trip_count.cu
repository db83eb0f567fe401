// about: a loop with a barrier runs a different number of times for different threads
// launch: --kernel running_max --grid 1 --block 64 --arg "x=rng.random(100)"
// launch: --arg "y=empty(1)" --arg n=100
// expect: barrier-divergence
extern "C" __global__ void running_max(const float *x, float *y, int n)
{
    __shared__ float best[64];
    int t = threadIdx.x;
    best[t] = 0.0f;
    for (int i = t; i < n; i += blockDim.x) {
        best[t] = fmaxf(best[t], x[i]);
        __syncthreads();  // <- here
    }
    if (t == 0) {
        float m = best[0];
        y[0] = m;
    }
}
