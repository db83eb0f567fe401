// about: a 3x3 box filter loads the four edges of its halo but not the corners
// launch: --kernel box3 --grid 2x2 --block 8x8 --arg "in=rng.random((18,18))"
// launch: --arg "out=empty((16,16))"
// expect: uninitialized
#define T 8
__global__ void box3(const float* in, float* out) {
    __shared__ float s[T + 2][T + 2];
    int tx = threadIdx.x, ty = threadIdx.y;
    int x = blockIdx.x * T + tx, y = blockIdx.y * T + ty;
    const float* p = in + (y + 1) * 18 + (x + 1);
    s[ty + 1][tx + 1] = p[0];
    if (tx == 0) s[ty + 1][0] = p[-1];
    if (tx == T - 1) s[ty + 1][T + 1] = p[1];
    if (ty == 0) s[0][tx + 1] = p[-18];
    if (ty == T - 1) s[T + 1][tx + 1] = p[18];
    __syncthreads();
    float sum = 0.0f;
    for (int j = 0; j < 3; ++j)
        for (int i = 0; i < 3; ++i) sum += s[ty + j][tx + i];  // <- here
    out[y * 16 + x] = sum / 9.0f;
}
