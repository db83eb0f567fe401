// about: a running mean whose count is set and whose mean is not
// launch: --kernel means --grid 1 --block 16 --arg "x=rng.random((16,5))" --arg "y=empty(16)"
// expect: uninitialized
struct Mean { float mean; int n; };
__device__ void add(Mean& m, float v) { m.n++; m.mean += (v - m.mean) / m.n; }
__global__ void means(const float* x, float* y)
{
    Mean m;
    m.n = 0;
    for (int i = 0; i < 5; i++) add(m, x[threadIdx.x * 5 + i]);
    y[threadIdx.x] = m.mean;  // <- here
}
