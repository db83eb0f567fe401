// about: vertical differences leave the last row of the output as it was
// launch: --kernel vertical_difference --grid 2x2 --block 16x16 --arg "img=rng.random((20,30))"
// launch: --arg "out=empty((20,30))" --arg w=30 --arg h=20
// expect: unwritten-output
// array: out
__global__ void vertical_difference(const float* img, float* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h - 1)
        out[y * w + x] = img[(y + 1) * w + x] - img[y * w + x];
}
