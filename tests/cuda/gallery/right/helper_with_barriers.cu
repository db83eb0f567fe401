// why: a helper with barriers is called twice by all threads, and it ends on a barrier
// launch: --kernel standardise --grid 3 --block 64 --arg "x=rng.standard_normal((3,64))"
// launch: --arg "y=empty((3,64))"
// equals: y = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
__device__ float block_mean(float v)
{
    __shared__ float s[64];
    s[threadIdx.x] = v;
    __syncthreads();
    for (int h = 32; h > 0; h >>= 1) {
        if (threadIdx.x < h) s[threadIdx.x] += s[threadIdx.x + h];
        __syncthreads();
    }
    float mean = s[0] / 64;
    __syncthreads();
    return mean;
}

__global__ void standardise(const float* x, float* y)
{
    int i = blockIdx.x * 64 + threadIdx.x;
    float d = x[i] - block_mean(x[i]);
    float variance = block_mean(d * d);
    y[i] = d * rsqrtf(variance);
}
