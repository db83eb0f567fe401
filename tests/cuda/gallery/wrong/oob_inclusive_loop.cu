// about: a matrix-vector product whose inner loop runs to k <= n
// launch: --kernel matvec --grid 1 --block 64 --arg "A=rng.random((50,30))"
// launch: --arg "x=rng.random(30)"
// launch: --arg "y=empty(50)" --arg m=50 --arg n=30
// expect: out-of-bounds
template <typename real>
__device__ real dot(const real* a, const real* b, int n)
{
    real sum = 0;
    for (int k = 0; k <= n; ++k)
        sum += a[k] * b[k];  // <- here
    return sum;
}

__global__ void matvec(const float* A, const float* x, float* y, int m, int n)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m)
        y[row] = dot(A + row * n, x, n);
}
