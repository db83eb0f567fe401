// about: dynamic shared memory is cut after an odd number of floats, then used as double
// launch: --kernel mix --grid 1 --block 32 --shared 512 --arg "x=rng.random(32)"
// launch: --arg "y=empty(32)"
// expect: misaligned
extern "C" __global__ void mix(const float* x, double* y)
{
    extern __shared__ __align__(16) char pool[];
    float* f = (float*)pool;
    double* d = (double*)(f + 33);
    int t = threadIdx.x;
    f[t] = x[t];
    __syncthreads();
    d[t] = (double)f[31 - t] * 2.0;  // <- here
    y[t] = d[t];  // <- here
}
