// why: loops of very different length, but nothing is shared and nothing waits
// launch: --kernel mandelbrot --grid 3x2 --block 16x16 --arg "count=empty((24,40))"
// launch: --arg w=40 --arg h=24 --arg limit=60
// equals: count[12, 26] = np.int32(60)
// equals: count[12, 0] = np.int32(1)
// equals: count.min() >= 1 = np.bool_(True)
__global__ void mandelbrot(int* count, int w, int h, int limit)
{
  int px = blockIdx.x * blockDim.x + threadIdx.x;
  int py = blockIdx.y * blockDim.y + threadIdx.y;
  if (px >= w || py >= h) return;
  float cx = -2.0f + 3.0f * px / w;
  float cy = -1.2f + 2.4f * py / h;
  float zx = 0.0f, zy = 0.0f;
  int k = 0;
  while (k < limit && zx * zx + zy * zy < 4.0f) {
    float t = zx * zx - zy * zy + cx;
    zy = 2.0f * zx * zy + cy;
    zx = t;
    ++k;
  }
  count[py * w + px] = k;
}
