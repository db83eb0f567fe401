// why: the mask lies in constant memory and is only read; the image's edge counts as zero
// launch: --kernel convolve --grid 3x3 --block 8x8 --arg "img=rng.random((17,20))"
// launch: --arg "out=empty((17,20))" --arg w=20 --arg h=17
// equals: out = sum(m * np.pad(img, 1)[j:j + 17, i:i + 20]
//     for (j, i), m in np.ndenumerate(np.outer([1, 2, 1], [1, 2, 1]) / 16))
#define RADIUS 1
__constant__ float mask[2 * RADIUS + 1][2 * RADIUS + 1] = {
    {0.0625f, 0.125f, 0.0625f}, {0.125f, 0.25f, 0.125f}, {0.0625f, 0.125f, 0.0625f}};

__global__ void convolve(const float* img, float* out, int w, int h)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float acc = 0.0f;
    for (int j = -RADIUS; j <= RADIUS; ++j)
        for (int i = -RADIUS; i <= RADIUS; ++i) {
            const int yy = y + j, xx = x + i;
            if (yy >= 0 && yy < h && xx >= 0 && xx < w)
                acc += mask[j + RADIUS][i + RADIUS] * img[yy * w + xx];
        }
    out[y * w + x] = acc;
}
