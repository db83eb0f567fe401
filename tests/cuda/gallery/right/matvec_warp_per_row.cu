// why: whole warps leave at the tail, so a full-mask shuffle has all its lanes
// launch: --kernel "matvec<double>" --grid 4 --block 32x4 --arg "A=rng.standard_normal((13,50))"
// launch: --arg "x=rng.standard_normal(50)" --arg "y=empty(13)" --arg m=13 --arg n=50
// equals: y = A @ x
template <typename T>
__global__ void matvec(T const* __restrict__ A, T const* __restrict__ x, T* y, int m, int n)
{
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= m) return;
    T sum = 0;
    for (int c = threadIdx.x; c < n; c += 32) sum += A[row * n + c] * __ldg(x + c);
    for (int o = 16; o >= 1; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if (threadIdx.x == 0) y[row] = sum;
}
