// about: a mask is written where the condition holds and left alone elsewhere
// launch: --kernel mark --grid 2 --block 128 --arg x=float32[256]:randn --arg mask=uint8[256]:empty
// expect: unwritten-output
// array: mask
__global__ void mark(const float* x, unsigned char* mask)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] > 0.0f)
        mask[i] = 1;
}
