// A matrix product through tiles in shared memory; the tile is a template argument.
#include <iostream>
#include <vector>

template <int TILE> __global__ void product(const float *a, const float *b, float *c, int n)
{
    __shared__ float rows[TILE][TILE], columns[TILE][TILE];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int k = 0; k < n; k += TILE) {
        rows[y][x] = row < n && k + x < n ? a[row * n + k + x] : 0;
        columns[y][x] = k + y < n && column < n ? b[(k + y) * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum += rows[y][i] * columns[i][x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

template <int TILE> float trace_of_square(int n)
{
    std::vector<float> a(n * n), c(n * n);
    for (int i = 0; i < n * n; i++) a[i] = i % 5 - 2;
    float *da, *dc;
    cudaMalloc(&da, a.size() * sizeof(float));
    cudaMalloc(&dc, c.size() * sizeof(float));
    cudaMemcpy(da, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice);
    const dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
    product<TILE><<<grid, block>>>(da, da, dc, n);
    cudaMemcpy(c.data(), dc, c.size() * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(da);
    cudaFree(dc);
    float trace = 0;
    for (int i = 0; i < n; i++) trace += c[i * n + i];
    return trace;
}

int main()
{
    const int n = 37;
    float expected = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) expected += (float)((i * n + k) % 5 - 2) * ((k * n + i) % 5 - 2);
    std::cout << "trace " << trace_of_square<8>(n) << " " << trace_of_square<16>(n) << ", expected "
              << expected << std::endl;
    return cudaGetLastError() != cudaSuccess;
}
