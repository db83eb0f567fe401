// SAXPY in unified memory, by a grid-stride loop; a kernel that prints.
#include <stdio.h>

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        y[i] = a * x[i] + y[i];
}

__global__ void hello() { printf("block %d thread %d\n", blockIdx.x, threadIdx.x); }

int main(void)
{
    int n = 1 << 12;
    float *x, *y;
    cudaMallocManaged(&x, n * sizeof(float));
    cudaMallocManaged(&y, n * sizeof(float));
    for (int i = 0; i < n; i++) x[i] = 1.0f, y[i] = 2.0f;
    saxpy<<<4, 128>>>(n, 3.0f, x, y);
    cudaDeviceSynchronize();
    float error = 0;
    for (int i = 0; i < n; i++) error = fmaxf(error, fabsf(y[i] - 5.0f));
    printf("largest error: %g\n", error);
    hello<<<1, 2>>>();
    cudaDeviceSynchronize();
    cudaFree(x);
    cudaFree(y);
    return 0;
}
