// why: doubles first, then floats, then bytes, so each part is aligned; the sizes are in bytes
// launch: --kernel three_parts --grid 1 --block 40 --shared 520 --arg "x=rng.random(40)"
// launch: --arg "y=empty(40)"
// equals: y = x[::-1].astype(np.float64) ** 2 + np.roll(x, -1) + np.roll(np.arange(40), -3) % 7
__global__ void three_parts(const float* x, double* y)
{
    extern __shared__ __align__(16) unsigned char raw[];
    const int n = blockDim.x, t = threadIdx.x;
    double* d = reinterpret_cast<double*>(raw);
    float* f = reinterpret_cast<float*>(d + n);
    unsigned char* b = reinterpret_cast<unsigned char*>(f + n);
    d[t] = (double)x[t] * x[t];
    f[t] = x[t];
    b[t] = (unsigned char)(t % 7);
    __syncthreads();
    y[t] = d[n - 1 - t] + f[(t + 1) % n] + b[(t + 3) % n];
}
