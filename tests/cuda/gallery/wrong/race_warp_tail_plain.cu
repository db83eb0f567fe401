// about: the loop of a reduction stops its barriers at one warp, "which runs in lock step"
// launch: --kernel block_max --grid 2 --block 256 --arg "x=rng.standard_normal(512)"
// launch: --arg "y=empty(2)"
// expect: race
extern "C" __global__ void block_max(const float *x, float *y)
{
    __shared__ float m[256];
    int t = threadIdx.x;
    m[t] = x[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half >>= 1) {
        if (t < half)
            m[t] = fmaxf(m[t], m[t + half]);  // <- here
        if (half > 32)
            __syncthreads();
    }
    if (t == 0)
        y[blockIdx.x] = m[0];
}
