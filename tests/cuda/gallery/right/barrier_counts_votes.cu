// why: all threads reach the counting barrier, those without work vote no
// launch: --kernel count_positive --grid 3 --block 50 --arg x=float32[140]:randn
// launch: --arg n=140 --arg y=int32[3]:empty
// equals: y = np.add.reduceat(x > 0, [0, 50, 100], dtype=np.int32)
__global__ void count_positive(const float* x, int n, int* y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int positive = __syncthreads_count(i < n && x[i] > 0.0f);
    if (threadIdx.x == 0) y[blockIdx.x] = positive;
}
