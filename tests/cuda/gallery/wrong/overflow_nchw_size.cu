// about: the size of a batch of images is formed in int, and the guard compares with what is left of it
// launch: --kernel scale --grid 2 --block 128 --arg "x=rng.random(256)" --arg "y=inout(zeros(256))"
// launch: --arg N=4096 --arg C=1024 --arg HW=1024
// expect: overflow
__global__ void scale(const float* x, float* y, int N, int C, int HW)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * C * HW) return;  // <- here
    y[i] = 2.0f * x[i];
}
