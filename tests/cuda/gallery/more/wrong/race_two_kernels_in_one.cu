// about: the second phase reads what other blocks write in the first
// launch: --kernel twice --grid 4 --block 32 --arg "x=rng.random(128)" --arg "t=inout(zeros(128))"
// launch: --arg "y=empty(128)"
// expect: race
__global__ void twice(const float* x, float* t, float* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    t[i] = 2 * x[i];  // <- here
    __syncthreads();
    y[i] = t[127 - i];  // <- here
}
