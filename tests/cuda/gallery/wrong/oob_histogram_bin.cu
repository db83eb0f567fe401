// about: a histogram of bytes with 255 bins in shared memory; the value 255 has none
// launch: --kernel byte_histogram --grid 2 --block 256 --arg "data=full(4096,255)"
// launch: --arg "bins=zeros(255)" --arg n=4096
// expect: out-of-bounds
__global__ void byte_histogram(const unsigned char* data, unsigned int* bins, int n)
{
    __shared__ unsigned int local[255];
    for (int b = threadIdx.x; b < 255; b += blockDim.x) local[b] = 0;
    __syncthreads();

    int stride = blockDim.x * gridDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        atomicAdd(&local[data[i]], 1u);  // <- here
    __syncthreads();

    for (int b = threadIdx.x; b < 255; b += blockDim.x) atomicAdd(&bins[b], local[b]);
}
