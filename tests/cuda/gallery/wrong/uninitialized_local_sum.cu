// about: the sum of a row begins with whatever the register held
// launch: --kernel row_sums --grid 1 --block 32 --arg "x=rng.random((32,20))" --arg "y=empty(32)"
// launch: --arg n=20
// expect: uninitialized
__global__ void row_sums(const float* x, float* y, int n)
{
    const float* row = x + threadIdx.x * n;
    float sum;
    for (int i = 0; i < n; i++) sum += row[i];
    y[threadIdx.x] = sum;  // <- here
}
