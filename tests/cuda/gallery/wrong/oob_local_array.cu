// about: five coefficients in a thread's own array, and a loop over six
// launch: --kernel smooth --grid 1 --block 64 --arg "x=rng.random(80)" --arg "y=empty(64)"
// expect: out-of-bounds
__global__ void smooth(const float* x, float* y)
{
    float c[5] = {1, 4, 6, 4, 1};
    float sum = 0;
    for (int k = 0; k <= 5; k++) sum += c[k] * x[threadIdx.x + k];  // <- here
    y[threadIdx.x] = sum / 16;
}
