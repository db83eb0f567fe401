// about: the barrier stands inside the guard of the tail block
// launch: --kernel halve --grid 2 --block 128 --arg "x=rng.random(200)" --arg "y=empty(200)"
// launch: --arg n=200
// expect: barrier-divergence
__global__ void halve(const float* x, float* y, int n)
{
    __shared__ float s[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        s[threadIdx.x] = x[i];
        __syncthreads();  // <- here
        y[i] = 0.5f * s[threadIdx.x];
    }
}
