// about: a shared row has as many elements as threads, and the halo has none
// launch: --kernel blur --grid 1 --block 64 --arg "x=rng.random(64)" --arg "y=empty(64)"
// expect: out-of-bounds
__global__ void blur(const float* x, float* y)
{
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    y[t] = (s[t] + s[t + 1]) / 2;  // <- here
}
