// why: bins in shared memory, counted by atomics and added by atomics
// launch: --kernel bins --grid 3 --block 64 --arg "x=rng.integers(0,16,500)" --arg "h=zeros(16)" --arg n=500
// equals: h = np.bincount(x, minlength=16)
__global__ void bins(const int* x, int* h, int n)
{
    __shared__ int s[16];
    for (int i = threadIdx.x; i < 16; i += blockDim.x) s[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&s[x[i] & 15], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < 16; i += blockDim.x)
        if (s[i]) atomicAdd(&h[i], s[i]);
}
