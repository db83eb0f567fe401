// about: a register tile of which only the diagonal is cleared
// launch: --kernel outer --grid 1 --block 8 --arg "x=rng.random(32)" --arg "y=empty((8,16))"
// expect: uninitialized
__global__ void outer(const float* x, float* y)
{
    float sums[4][4];
    for (int i = 0; i < 4; i++) sums[i][i] = 0.0f;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) sums[i][j] += x[4 * threadIdx.x + i] * x[4 * threadIdx.x + j];
    for (int i = 0; i < 16; i++) y[16 * threadIdx.x + i] = sums[i / 4][i % 4];  // <- here
}
