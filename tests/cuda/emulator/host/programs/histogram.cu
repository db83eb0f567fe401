// A histogram: counts in shared memory, limits in constant memory, a counter of the device.
#include <cassert>
#include <cstdio>
#include <cstring>

constexpr int BINS = 8;
__constant__ int limits[2];
__device__ unsigned int beyond;

__global__ void histogram(const unsigned char *data, unsigned int *counts, int n)
{
    extern __shared__ unsigned int mine[];
    for (int i = threadIdx.x; i < BINS; i += blockDim.x) mine[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const int value = data[i];
        if (value < limits[0] || value >= limits[1]) {
            atomicAdd(&beyond, 1u);
            continue;
        }
        const int bin = (value - limits[0]) * BINS / (limits[1] - limits[0]);
        assert(bin >= 0 && bin < BINS);
        atomicAdd(&mine[bin], 1u);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < BINS; i += blockDim.x) atomicAdd(&counts[i], mine[i]);
}

int main()
{
    const int n = 4096;
    unsigned char *data = new unsigned char[n], *d_data;
    for (int i = 0; i < n; i++) data[i] = (unsigned char)(i * 37);
    unsigned int counts[BINS], *d_counts, outside = 0;
    const int range[2] = {16, 240};
    cudaMalloc(&d_data, n);
    cudaMalloc(&d_counts, sizeof counts);
    cudaMemcpy(d_data, data, n, cudaMemcpyHostToDevice);
    cudaMemset(d_counts, 0, sizeof counts);
    cudaMemcpyToSymbol(limits, range, sizeof range);
    cudaMemcpyToSymbol(beyond, &outside, sizeof outside);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    histogram<<<4, 64, BINS * sizeof(unsigned int), stream>>>(d_data, d_counts, n);
    cudaMemcpyAsync(counts, d_counts, sizeof counts, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    cudaMemcpyFromSymbol(&outside, beyond, sizeof outside);
    for (int i = 0; i < BINS; i++) printf("%u ", counts[i]);
    printf("outside %u, %s\n", outside, cudaGetErrorName(cudaGetLastError()));
    delete[] data;
    return 0;
}
