// why: a tile of registers without a value at first, each of which is set before it is added to
// launch: --kernel outer --grid 2x2 --block 4x4 --arg "a=rng.random((32,8))" --arg "b=rng.random((8,32))"
// launch: --arg "c=empty((32,32))"
// equals: c = a @ b
__global__ void outer(const float* a, const float* b, float* c)
{
    float sums[4][4], u[4], v[4];
    const int row = 4 * (blockIdx.y * 4 + threadIdx.y), column = 4 * (blockIdx.x * 4 + threadIdx.x);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) sums[i][j] = 0;
    for (int k = 0; k < 8; k++) {
        for (int i = 0; i < 4; i++) u[i] = a[(row + i) * 8 + k], v[i] = b[k * 32 + column + i];
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) sums[i][j] += u[i] * v[j];
    }
    for (int i = 0; i < 4; i++)
        *(float4*)(c + (row + i) * 32 + column) =
            make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
}
