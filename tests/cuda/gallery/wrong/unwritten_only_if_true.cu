// about: a mask is written where the condition holds and left alone elsewhere
// launch: --kernel mark --grid 2 --block 128 --arg "x=rng.standard_normal(256)"
// launch: --arg "mask=empty(256)"
// expect: unwritten-output
// array: mask
__global__ void mark(const float* x, unsigned char* mask)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] > 0.0f)
        mask[i] = 1;
}
