// why: whole vectors by float4, the last few elements one by one
// launch: --kernel scale --grid 2 --block 64 --arg "x=rng.random(1003)" --arg "y=empty(1003)"
// launch: --arg n=1003 --arg a=3.0
// equals: y = 3 * x
__global__ void scale(const float* __restrict__ x, float* __restrict__ y, int n, float a) {
  int first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
  for (int v = first; v < n / 4; v += step) {
    float4 q = reinterpret_cast<const float4*>(x)[v];
    q.x *= a; q.y *= a; q.z *= a; q.w *= a;
    reinterpret_cast<float4*>(y)[v] = q;
  }
  for (int i = n / 4 * 4 + first; i < n; i += step) y[i] = a * x[i];
}
