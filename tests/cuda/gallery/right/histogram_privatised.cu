// why: bins are cleared, filled by shared atomics and merged by global ones, barriers between
// launch: --kernel histogram256 --grid 3 --block 128 --arg "data=rng.integers(0,256,5000)"
// launch: --arg "bins=zeros(256)" --arg n=5000
// equals: bins = np.bincount(data, minlength=256)
__global__ void histogram256(const unsigned char* data, unsigned int* bins, int n)
{
    __shared__ unsigned int local[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) local[b] = 0;
    __syncthreads();
    int stride = blockDim.x * gridDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        atomicAdd(&local[data[i]], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        if (local[b]) atomicAdd(&bins[b], local[b]);
}
