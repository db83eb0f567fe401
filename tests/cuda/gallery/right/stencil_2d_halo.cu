// why: the tile with its halo is loaded in strides, indices are clamped at the image's edge
// launch: --kernel blur3 --grid 3x3 --block 16x8 --arg "img=rng.random((21,37))"
// launch: --arg "out=empty((21,37))" --arg w=37 --arg h=21
// equals: out = sum(np.pad(img, 1, 'edge')[j:j + 21, i:i + 37]
//     for j in range(3) for i in range(3)) / 9
constexpr int BX = 16, BY = 8;

__device__ inline int clampi(int v, int hi) { return v < 0 ? 0 : (v > hi ? hi : v); }

__global__ void blur3(const float* img, float* out, int w, int h) {
    __shared__ float tile[BY + 2][BX + 2];
    const int x0 = blockIdx.x * BX - 1, y0 = blockIdx.y * BY - 1;
    for (int k = threadIdx.y * BX + threadIdx.x; k < (BX + 2) * (BY + 2); k += BX * BY) {
        const int ty = k / (BX + 2), tx = k % (BX + 2);
        tile[ty][tx] = img[clampi(y0 + ty, h - 1) * w + clampi(x0 + tx, w - 1)];
    }
    __syncthreads();
    const int x = blockIdx.x * BX + threadIdx.x, y = blockIdx.y * BY + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0;
    for (int j = 0; j < 3; ++j)
        for (int i = 0; i < 3; ++i) s += tile[threadIdx.y + j][threadIdx.x + i];
    out[y * w + x] = s / 9.0f;
}
