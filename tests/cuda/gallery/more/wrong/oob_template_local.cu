// about: a device function with a window of its own writes one element more than the window has
// launch: --kernel median --grid 1 --block 32 --arg "x=rng.random(40)" --arg "y=empty(32)"
// expect: out-of-bounds
template <int N> __device__ float middle(const float* x)
{
    float v[N];
    for (int i = 0; i <= N; i++) v[i] = x[i];  // <- here
    return v[N / 2];
}
__global__ void median(const float* x, float* y) { y[threadIdx.x] = middle<3>(x + threadIdx.x); }
