// A dot product of halves with float sums, timed by events, each block leaving one number.
#include <cuda_fp16.h>
#include <stdio.h>
#include <stdlib.h>

const int THREADS = 128, BLOCKS = 4;

__global__ void dot(const half2 *x, const half2 *y, float *parts, int pairs)
{
    __shared__ float cache[THREADS];
    float sum = 0;
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < pairs; i += blockDim.x * gridDim.x) {
        const float2 product = __half22float2(__hmul2(x[i], y[i]));
        sum += product.x + product.y;
    }
    cache[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) cache[threadIdx.x] += cache[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) parts[blockIdx.x] = cache[0];
}

int main()
{
    const int n = 2048;
    half *x = (half *)malloc(n * sizeof(half)), *y = (half *)malloc(n * sizeof(half));
    for (int i = 0; i < n; i++) x[i] = __float2half(i % 4), y[i] = __float2half(0.5f);
    half2 *d_x, *d_y;
    float *d_parts, parts[BLOCKS], sum = 0, milliseconds = -1;
    cudaMalloc((void **)&d_x, n * sizeof(half));
    cudaMalloc((void **)&d_y, n * sizeof(half));
    cudaMalloc((void **)&d_parts, sizeof parts);
    cudaMemcpy(d_x, x, n * sizeof(half), cudaMemcpyHostToDevice);
    cudaMemcpy(d_y, y, n * sizeof(half), cudaMemcpyHostToDevice);
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    cudaEventRecord(begin);
    dot<<<BLOCKS, THREADS>>>(d_x, d_y, d_parts, n / 2);
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    cudaEventElapsedTime(&milliseconds, begin, end);
    cudaMemcpy(parts, d_parts, sizeof parts, cudaMemcpyDeviceToHost);
    for (int i = 0; i < BLOCKS; i++) sum += parts[i];
    printf("dot product %.1f, %s\n", sum, milliseconds > 0 ? "timed" : "not timed");
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    free(x);
    free(y);
    return 0;
}
