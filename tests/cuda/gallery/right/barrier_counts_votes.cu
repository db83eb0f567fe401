// why: all threads reach the counting barrier, those without work vote no
// launch: --kernel count_positive --grid 3 --block 50 --arg "x=rng.standard_normal(140)"
// launch: --arg n=140 --arg "y=empty(3)"
// equals: y = np.add.reduceat(x > 0, [0, 50, 100], dtype=np.int32)
__global__ void count_positive(const float* x, int n, int* y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int positive = __syncthreads_count(i < n && x[i] > 0.0f);
    if (threadIdx.x == 0) y[blockIdx.x] = positive;
}
