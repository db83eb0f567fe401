// about: a kernel adjusts a coefficient in constant memory
// launch: --kernel decay --grid 1 --block 32 --arg "x=rng.random(32)" --arg "y=empty(32)"
// expect: read-only-write
__constant__ float rate[2] = {0.9f, 0.1f};

__global__ void decay(const float* x, float* y)
{
    int t = threadIdx.x;
    y[t] = x[t] * rate[t & 1];
    __syncthreads();
    if (t == 0) {
        float* writable = (float*)&rate[0];
        *writable = 0.5f;  // <- here
    }
}
