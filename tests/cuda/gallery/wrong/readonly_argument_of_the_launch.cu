// about: a normalisation that leaves its input normalised, where the launch says that it is only read
// launch: --kernel shifted --grid 1 --block 64 --arg "x:in=ones(64)" --arg "y=empty(64)"
// expect: read-only-write
__global__ void shifted(float* x, float* y)
{
    int i = threadIdx.x;
    x[i] -= 0.5f;  // <- here
    y[i] = x[i] * x[i];
}
